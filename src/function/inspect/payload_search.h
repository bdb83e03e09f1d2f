// Which patterns of the rules are in a payload or a buffer: what a device has found stands for a search (prefilter
// matches), else this core searches. Patterns are left in InspectionSearch::found, and how many is returned.
//
// Bounded: what is not searched freely is part of the packet's time (PacketBudget), and what there is no time for is
// left (InspectionEnvironment::leave()).
//
// Thread-safety: none, of one lane. Cost: some ns with a device's matches, else Hyperscan's.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "function/inspect/inspection_environment.h"

namespace sluice::function {

// The first so many of InspectionSearch::found.
struct PatternsFound {
  std::size_t count = 0;
  bool by_keys = false;  // by a device's keys, or it is not known what keys there are
  bool all = true;       // false: there was no time for the rest
};

class PayloadSearch {
 public:
  explicit PayloadSearch(InspectionEnvironment& env) : env_(env) {}

  // Those of the packet's own payload.
  PatternsFound in_packet(PacketContext& context) {
    const std::string_view payload = context.packet().payload;
    return context.matches.known() ? by_matches(context, context.matches.keys(), payload, 0)
                                   : by_core(context, payload, 0);
  }
  // Those that the keys stand for. `bytes`: what was searched, with the stream's `history` before it, where keys may
  // begin that end in it. `before_by_core`: of patterns that reach into the new bytes, keys that end before them are
  // not known either.
  PatternsFound by_matches(PacketContext& context, std::span<const std::uint32_t> keys, std::string_view bytes,
                           std::size_t history, bool before_by_core = false);
  // Those that end behind `from`. Of a payload with too many matches as in_slices().
  PatternsFound by_core(PacketContext& context, std::string_view bytes, std::size_t from);
  // Likewise, as part of the time, for as long as there is some. `has_waited`: as much as PacketBudget::waited says is
  // searched whatever time there is.
  PatternsFound in_slices(PacketContext& context, std::string_view bytes, std::size_t from, bool has_waited);

  // Of any buffer, freely. `before`: so many patterns of earlier slices of the same bytes stay.
  std::size_t in_buffer(PacketContext& context, match::Buffer buffer, std::string_view bytes, std::size_t from = 0,
                        std::size_t before = 0);
  // As part of the time. Nothing: there was none.
  std::optional<std::size_t> in_buffer_in_time(PacketContext& context, match::Buffer buffer, std::string_view bytes);

  // What the device has found in the packet is left, for its batch is late.
  bool leaves_matches(PacketContext& context);

 private:
  bool may_search(PacketContext& context);

  InspectionEnvironment& env_;
};

}  // namespace sluice::function
