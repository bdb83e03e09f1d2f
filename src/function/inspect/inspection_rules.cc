// What all lanes share (inspection.h).
#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "function/inspect/inspection.h"

namespace sluice::function {
namespace {

using match::Point;

constexpr Point points[] = {Point::packet,       Point::request_line,     Point::request_headers,
                            Point::request_body, Point::response_headers, Point::response_body};

}  // namespace

Expected<std::shared_ptr<InspectionRules>> InspectionRules::make(match::RuleSet rules, const InspectionRules* before,
                                                                 const Progress& progress) {
  static std::atomic<std::uint64_t> made_so_far{0};
  auto made = std::make_shared<InspectionRules>();
  made->generation_ = ++made_so_far;
  auto detector = match::Detector::make(std::move(rules), before == nullptr ? nullptr : &before->detector());
  if (!detector) return tl::unexpected(detector.error());
  made->detector_ = std::move(*detector);
  std::size_t done = 0, total = 0;
  for (const Point point : points) total += made->detector_->patterns(point).size();
  for (const Point point : points) {
    if (progress && !progress(done, total)) return make_error("interrupted while rules were compiled");
    const auto patterns = made->detector_->patterns(point);
    done += patterns.size();
    auto matcher = match::CpuMatcher::create(patterns, point == Point::packet);
    if (!matcher) return tl::unexpected(matcher.error());
    made->matchers_[static_cast<std::size_t>(point)] = std::move(*matcher);
    if (point != Point::packet) continue;
    for (const match::Pattern& pattern : patterns) made->longest_ = std::max(made->longest_, pattern.bytes.size());
    made->keys_ = std::make_unique<match::KeySet>(made->detector_->key_patterns());
    made->gram_table_ = std::make_unique<match::GramTable>(*made->keys_);
  }
  return made;
}

InspectionSearch::InspectionSearch(std::shared_ptr<const InspectionRules> of, const match::RateSettings& rate_settings)
    : rules(std::move(of)),
      detector(rules->detector()),
      rates(rules->detector().rules(), rate_settings),
      alerts(rules->detector().rules(), rate_settings) {
  std::size_t most = 0;
  for (const Point point : points) {
    matching[static_cast<std::size_t>(point)] = std::make_unique<match::CpuMatcher::Scratch>(rules->matcher(point));
    most = std::max(most, rules->detector().patterns(point).size());
  }
  found.resize(most + 1);
  candidates.reserve(most + 1);
  matched.reserve(rules->detector().rules().rules.size());
  keys.reserve(std::size_t{match::max_hits} * 4);
}

InspectionSearch::~InspectionSearch() = default;

}  // namespace sluice::function
