// Datagrams that came in fragments, inspected once they are whole.
#include <utility>

#include "function/inspect/inspection.h"

namespace sluice::function {

using flow::Direction;

// What a fragment, which has been inspected by itself, makes whole; the flow that it then is of.
[[gnu::noinline]] flow::Flow* Inspection::inspect_datagram(flow::Flow* flow, bool& by_flow) {
  if (judgement_.drop) return flow;
  const flow::Fragments::Taken taken = fragments_.take(frame_, packet_, now_ / 1000);
  if (taken == flow::Fragments::Taken::kept) return flow;
  if (taken == flow::Fragments::Taken::whole) {
    waited_allowance_ = frame_.size();
    frame_ = fragments_.datagram();
    read_facts();
    // No device has seen it whole, and a core would be busy with it for as long as with 45 frames.
    is_datagram_ = too_many_hits_ = true;
    has_hits_ = frame_passed_ = false;
    flow = nullptr;
    flow_ = nullptr;
    direction_ = Direction::to_server;
    flow::Packet packet;
    if (flow::read_packet(packet_, packet) && !packet.fragment) {
      flow = conversations_.packet(packet, now_ / 1000).flow;
      if (flow == nullptr) ++counters_.no_flow;
    }
    if (flow == nullptr) {
      inspect_packet(nullptr, false);
    } else if ((flow->user & FlowMark::dropped) != 0) {
      by_flow = !std::exchange(judgement_.drop, true);
    }
  }
  // A datagram of fragments is taken by nobody.
  if (taken == flow::Fragments::Taken::refused || packet_.fragment()) {
    judgement_.fragment = true;
    judgement_.drop |= drops_left_;
  }
  // Else the same fragment, sent again, would be nothing new.
  if (judgement_.drop) fragments_.forbid();
  return flow;
}

}  // namespace sluice::function
