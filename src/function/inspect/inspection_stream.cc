// Of a piece of a stream: what is found in it, and what earlier pieces have left open (flow/carried.h).
#include <algorithm>
#include <utility>

#include "function/inspect/inspection.h"

namespace sluice::function {
using match::Point;

// The patterns that end in the new piece; of a device's keys, also some whose rest is still to come.
std::size_t Inspection::find_in(const flow::StreamData& data, flow::Carried& carried) {
  const std::size_t history = data.window.size() - data.fresh.size();
  const char* const payload = packet_.payload.data();
  const bool of_packet = data.origin >= payload && data.origin + data.fresh.size() <= payload + packet_.payload.size();
  const bool before_by_keys = std::exchange(carried.by_keys, has_hits_ && of_packet);
  if (carried.by_keys) return take_hits(data.window, history, !before_by_keys || carried.lost());
  const std::size_t before = std::min(history, rules().longest_pattern());
  return search_payload(data.window.substr(history - before), before);
}

// Besides what was found now, what earlier pieces have left open; where that was too much to be kept, all that the
// window holds, but for rules that have held since their pattern came. `all`: what is open now is known from the
// candidates.
bool Inspection::has_stream_candidates(flow::Carried& carried, std::size_t found, const flow::StreamData& data,
                                       bool& all) {
  const match::Detector& detector = rules().detector();
  match::Detector::Found what;
  what.patterns = {search_->found.data(), found};
  what.by_keys = by_keys_;
  what.inspected = data.window.size();
  what.stream = true;
  what.piece = data.fresh;
  what.window = data.window;
  if (carried.empty()) {
    return detector.collect(Point::packet, packet_, what, search_->detector);
  }
  if (carried.lost()) {
    what.open_unknown = true;
    // Besides, for rules whose pattern's rest is to come, what keys say.
    search_->keys.assign(what.patterns.begin(), what.patterns.end());
    const auto in_window = search_in_time(match::Buffer::payload, data.window, 0);
    all = in_window.has_value();
    std::vector<std::uint32_t>& patterns = search_->candidates;
    patterns.assign(search_->found.begin(),
                    search_->found.begin() + static_cast<std::ptrdiff_t>(in_window.value_or(0)));
    patterns.insert(patterns.end(), search_->keys.begin(), search_->keys.end());
    std::sort(patterns.begin(), patterns.end());
    patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
    what.patterns = patterns;
  }
  std::vector<std::uint32_t>& again = search_->matched;
  again.assign(carried.open().begin(), carried.open().end());
  for (std::size_t h = carried.held().size(); h-- > 0;) {
    const std::uint32_t rule = carried.held()[h];
    if (!detector.comes(rule, data.window, data.fresh.size())) continue;
    again.push_back(rule);
    carried.renew(rule);
  }
  what.open = again;
  what.begun = carried.begun();
  what.without = carried.held();
  return detector.collect(Point::packet, packet_, what, search_->detector);
}

// The window begins anew.
void Inspection::stream_gap(flow::Flow&, flow::Extra& extra, flow::Direction direction, std::uint64_t) {
  extra.carried[static_cast<unsigned>(direction)] = {};
}

}  // namespace sluice::function
