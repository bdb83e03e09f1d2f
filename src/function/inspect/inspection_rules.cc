// What all lanes share (inspection.h).
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "function/inspect/inspection.h"

namespace sluice::function {
namespace {

using match::Buffer;

// Buffers in which some rule looks for a pattern.
template <typename Use>
void for_each_searched(const match::Detector& detector, Use use) {
  for (std::size_t b = 0; b < match::buffer_count; ++b) {
    if (const auto buffer = static_cast<Buffer>(b); !detector.patterns(buffer).empty() || buffer == Buffer::payload)
      use(buffer);
  }
}

}  // namespace

Expected<std::shared_ptr<InspectionRules>> InspectionRules::make(match::RuleSet rules, const InspectionRules* before,
                                                                 const Progress& progress) {
  static std::atomic<std::uint64_t> made_so_far{0};
  auto made = std::make_shared<InspectionRules>();
  made->generation_ = ++made_so_far;
  auto detector = match::Detector::make(std::move(rules), before == nullptr ? nullptr : &before->detector());
  if (!detector) return tl::unexpected(detector.error());
  made->detector_ = std::move(*detector);
  const match::Detector& patterns_of = *made->detector_;
  std::vector<Buffer> buffers;
  std::size_t done = 0, total = 0;
  for_each_searched(patterns_of, [&](Buffer buffer) {
    buffers.push_back(buffer);
    total += patterns_of.patterns(buffer).size();
  });
  const auto stopped = [&] { return progress && !progress(done, total); };
  constexpr const char* interrupted = "interrupted while rules were compiled";
  for (const Buffer buffer : buffers) {
    if (stopped()) return make_error(interrupted);
    const auto patterns = patterns_of.patterns(buffer);
    done += patterns.size();
    using Mode = match::CpuMatcher::Mode;
    auto matcher = match::CpuMatcher::create(patterns, buffer == Buffer::payload ? Mode::slices : Mode::once);
    if (!matcher) return tl::unexpected(matcher.error());
    made->matchers_[static_cast<std::size_t>(buffer)] = std::move(*matcher);
  }
  made->longest_ = patterns_of.longest_pattern(Buffer::payload);
  made->keys_ = std::make_unique<match::KeySet>(patterns_of.patterns(Buffer::payload));
  made->gram_table_ = std::make_unique<match::GramTable>(*made->keys_);
  if (stopped()) return make_error(interrupted);
  malloc_trim(0);  // what Hyperscan compiled with: as much as the rules take
  return made;
}

InspectionSearch::InspectionSearch(std::shared_ptr<const InspectionRules> of, const match::RateSettings& rate_settings)
    : rules(std::move(of)),
      detector(rules->detector()),
      rates(rules->detector().rules(), rate_settings),
      alerts(rules->detector().rules(), rate_settings) {
  std::size_t most = rules->detector().number_count();
  for_each_searched(rules->detector(), [&](Buffer buffer) {
    matching[static_cast<std::size_t>(buffer)] = std::make_unique<match::CpuMatcher::Scratch>(rules->matcher(buffer));
    most = std::max(most, rules->detector().patterns(buffer).size());
  });
  found.resize(most + 1);
  prefilter_matches.reserve(2 * most + 1);  // of a window's patterns and of keys
  listed.resize(rules->detector().number_count() / 8 + 1);
  matched.reserve(rules->detector().rules().rules.size());
  keys.reserve(std::size_t{match::max_hits} * 4);
}

InspectionSearch::~InspectionSearch() = default;

}  // namespace sluice::function
