// How an Inspection inspects, and what it counts (inspection.h).
#pragma once

#include <cstdint>

#include "flow/conversations.h"
#include "flow/fragments.h"

namespace sluice::function {

struct InspectionSettings {
  flow::ConversationSettings conversations;
  flow::FragmentSettings fragments;
  std::uint32_t budget = 1000;  // prefilter matches for a frame
  bool tunnels = true;          // packets in tunnels are inspected, too
  bool drop_on_overload = false;
  bool drop_on_http_limit = false;
};

struct InspectionCounters {
  std::uint64_t frames = 0;
  std::uint64_t not_ip = 0;      // looked at by nobody
  std::uint64_t in_tunnels = 0;  // packets found in tunnels
  std::uint64_t confirmed = 0;   // prefilter matches
  std::uint64_t alerts = 0;
  std::uint64_t left = 0;           // prefilter matches that the budget did not reach, or that were given up
  std::uint64_t given_up = 0;       // of these, those whose payload checks took too long (payload_matcher.h)
  std::uint64_t releases_left = 0;  // frames, and ends of other flows, that release more than there was time for
  std::uint64_t http_left = 0;      // frames of HTTP that were not parsed because their batch was late
  std::uint64_t overloaded = 0;     // such frames, and those with prefilter matches that were left
  std::uint64_t no_flow = 0;        // frames whose flow the table refused: inspected as packets
  std::uint64_t searched = 0;       // bytes that this core searched
  std::uint64_t refused = 0;        // searches of this core's that Hyperscan refused: their frames are overloaded
  std::uint64_t by_device = 0;      // frames whose payload a device has searched, for the keys of these rules
  std::uint64_t many_keys = 0;      // of these, frames with more keys than it says
};

}  // namespace sluice::function
