#include "control/conversation_notes.h"

#include <algorithm>
#include <array>

#include "base/units.h"
#include "engine/element.h"
#include "port/virtual_device.h"

namespace sluice::control {
namespace {

// Whose queues have frames of their own each, not parts of what one link brings.
bool has_queues_apart(const std::string& device) {
  constexpr std::array apart{"net_pcap", "net_null"};
  return port::device_name(device) == "replay" ||
         std::ranges::any_of(apart, [&](const char* driver) { return port::is_driver(device, driver); });
}

}  // namespace

std::vector<std::string> conversation_notes(const engine::Options& options) {
  const std::string* const follower = engine::find_such(options.chain, &engine::ElementType::follows_conversations);
  if (follower == nullptr) return {};
  std::vector<std::string> notes;
  for (const port::PortOptions& port : options.ports) {
    if (port.queues < 2 || has_queues_apart(port.device)) continue;
    notes.push_back(*follower + ": the device of port '" + port.name + "' spreads frames over its " +
                    counted_text(port.queues, "queue") +
                    " by a hash of its own: IPv6 packets with extension headers (hop-by-hop, routing, destination "
                    "options, fragment), and frames with VLAN tags that it does not look behind, may come to another "
                    "lane than the rest of their conversation, and what is split over them is not found; set queues = "
                    "1 and lanes = " +
                    std::to_string(port.lane_count()) + ", and Sluice spreads them by conversations");
  }
  return notes;
}

}  // namespace sluice::control
