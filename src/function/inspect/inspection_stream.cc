// Of a piece of a stream: what is found in it, and what earlier pieces have left open (flow/carried.h).
#include <rte_cycles.h>

#include <algorithm>
#include <utility>

#include "function/inspect/inspection_as_if.h"

namespace sluice::function {
using match::Point;

namespace {

// Of bytes that wait, as the mark that comes back with them: no pattern is in them, or, by a device, no key. Both are
// true of the rules that searched; those of other generations may find something.
enum class Waited : std::uint8_t { unknown, without_patterns, without_keys };

std::uint8_t mark_of(Waited what, std::uint64_t generation) {
  if (what == Waited::unknown) return 0;
  return static_cast<std::uint8_t>((generation % 127 + 1) * 2 + (what == Waited::without_keys ? 1 : 0));
}

Waited waited_of(std::uint8_t mark, std::uint64_t generation) {
  for (const Waited what : {Waited::without_patterns, Waited::without_keys}) {
    if (mark == mark_of(what, generation)) return what;
  }
  return Waited::unknown;
}

// Measured: 0.4 to 0.8 us for a segment that nothing is found in, with its flow's memory from afar.
constexpr std::uint64_t ticks_to_hand_over(std::uint64_t segments, std::uint64_t bytes) {
  return 1000 * segments + bytes / 2;
}

// Searched between two looks at the time.
constexpr std::size_t least_slice = 1536;

}  // namespace

// Now, when it costs no more than the packet's own bytes would if they were next: who releases them pays for what is
// then still to be searched.
std::uint8_t Inspection::waits(flow::Flow& flow, flow::Direction) {
  const std::uint64_t generation = rules().generation();
  if ((flow.user & (FlowMark::dropped | FlowMark::passed)) != 0 || subject_.passed) return 0;
  if (subject_.hits.known)
    return mark_of(subject_.hits.keys.count == 0 ? Waited::without_keys : Waited::unknown, generation);
  if (subject_.hits.too_many) return 0;
  const bool is_clean = search(match::Buffer::payload, subject_.packet.payload) == 0;
  return mark_of(is_clean ? Waited::without_patterns : Waited::unknown, generation);
}

// It has all the time that it needs, in a batch that is not late.
bool Inspection::is_first_release(const flow::Flow& flow) {
  if (!releases_.allowed || is_late()) return false;
  if (&flow != flow_) {
    if (releases_.first_other_flow == nullptr) releases_.first_other_flow = &flow;
    return releases_.first_other_flow == &flow;
  }
  if (releases_.first_frame == 0) releases_.first_frame = counters_.frames;
  return releases_.first_frame == counters_.frames;
}

// Sent again, it is asked for anew.
bool Inspection::may_release(flow::Flow& flow, flow::Direction, flow::Waiting waiting) {
  if (!drops_left_ || !share_.time.limited() || is_passed(flow)) return true;
  if (ticks_to_hand_over(waiting.segments, waiting.bytes) <= share_.time.left_for_waiting() || is_first_release(flow)) {
    releases_.frame = counters_.frames;
    return true;
  }
  ++counters_.releases_left;
  overload();
  return false;
}

bool Inspection::takes_waiting(flow::Flow& flow, flow::Direction direction, std::size_t bytes) {
  if (!share_.time.limited()) return true;
  const AsIf as_if(*this, flow, direction);
  const std::uint64_t left = share_.time.left_for_waiting(), ticks = ticks_to_hand_over(1, bytes);
  const bool is_allowed = &flow == flow_ && releases_.frame == counters_.frames;
  if (left < ticks && !is_allowed && !is_first_release(flow)) {
    if (is_passed(flow)) return false;
    ++counters_.releases_left;
    overload();
    keep_dropping(flow);
    return false;
  }
  const std::uint64_t within = std::min(left, ticks);
  share_.time.spend_on_waiting(within);
  releases_.beyond += ticks - within;
  return true;
}

// The patterns that end in the new piece; of a device's keys, also some whose rest is still to come.
std::size_t Inspection::find_in(const flow::StreamData& data, flow::Carried& carried) {
  const std::size_t history = data.window.size() - data.fresh.size();
  const char* const payload = subject_.packet.payload.data();
  const bool of_packet =
      data.origin >= payload && data.origin + data.fresh.size() <= payload + subject_.packet.payload.size();
  const Waited waited = waited_of(data.mark, rules().generation());
  if (of_packet && !is_datagram_) share_.waited += data.fresh.size();
  const bool by_keys = of_packet ? subject_.hits.known : waited == Waited::without_keys;
  const bool before_by_keys = std::exchange(carried.by_keys, by_keys);
  if (by_keys) {
    return take_hits(of_packet ? subject_.hits.keys : KeyHits(), data.window, history,
                     !before_by_keys || carried.lost());
  }
  const std::size_t longest = rules().longest_pattern(), before = std::min(history, longest);
  std::string_view bytes = data.window.substr(history - before);
  if (of_packet) return search_payload(bytes, before);
  // Those that begin before it.
  if (waited == Waited::without_patterns) bytes = bytes.substr(0, before == 0 ? 0 : before + longest);
  return search_slices(bytes, before, true).found;
}

// Of a payload, what ends behind `from`, as part of the time: in slices as long as a packet, each with what a pattern
// may have before it, for as long as there is time. Of what has waited as much as the frame has brought itself is
// searched whatever time there is.
Inspection::Searched Inspection::search_slices(std::string_view bytes, std::size_t from, bool has_waited) {
  if (!share_.time.limited()) return {search(match::Buffer::payload, bytes, from)};
  by_keys_ = false;
  const std::size_t before = rules().longest_pattern(), step = std::max(least_slice, before);
  Searched searched;
  for (std::size_t at = from; at < bytes.size(); at += step) {
    const std::size_t begin = at - std::min(at, before);
    const std::string_view slice = bytes.substr(begin, at - begin + step);
    const bool is_free = has_waited && slice.size() <= share_.waited;
    const bool of_waiting = !is_free && has_waited && share_.time.left_for_waiting() != 0;
    if (is_free) {
      share_.waited -= slice.size();
    } else if (!of_waiting && !may_search()) {
      searched.all = false;
      break;
    }
    const std::uint64_t began = rte_rdtsc();
    searched.found += search(match::Buffer::payload, slice, at - begin, searched.found);
    const std::uint64_t took = rte_rdtsc() - began;
    if (of_waiting) {
      share_.time.spend_on_waiting(took);
    } else if (!is_free) {
      share_.time.spend(took);
    }
  }
  return searched;
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
  what.scope = match::Detector::Scope::streams;
  what.stream = true;
  what.piece = data.fresh;
  what.window = data.window;
  if (carried.empty()) {
    return detector.collect(Point::packet, subject_.packet, what, search_->detector);
  }
  if (carried.lost()) {
    what.open_unknown = true;
    // Besides, for rules whose pattern's rest is to come, what keys say.
    search_->keys.assign(what.patterns.begin(), what.patterns.end());
    const Searched in_window = search_slices(data.window, 0, false);
    all = in_window.all;
    std::vector<std::uint32_t>& patterns = search_->candidates;
    patterns.assign(search_->found.begin(), search_->found.begin() + static_cast<std::ptrdiff_t>(in_window.found));
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
  return detector.collect(Point::packet, subject_.packet, what, search_->detector);
}

// The window begins anew.
void Inspection::stream_gap(flow::Flow&, flow::Extra& extra, flow::Direction direction, std::uint64_t) {
  extra.carried[static_cast<unsigned>(direction)] = {};
}

}  // namespace sluice::function
