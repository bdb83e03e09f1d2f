// Datagrams that came in fragments, inspected once they are whole.
#include "function/inspect/inspection.h"

namespace sluice::function {

using flow::Direction;

// What a fragment, which has been inspected by itself, makes whole; the flow that it then is of.
[[gnu::noinline]] flow::Flow* Inspection::inspect_datagram(flow::Flow* flow, bool& by_flow) {
  if (subject_.judgement.drop) return flow;
  const flow::Fragments::Taken taken = fragments_.take(subject_.frame, subject_.packet, now_ / 1000);
  if (taken == flow::Fragments::Taken::kept) return flow;
  if (taken == flow::Fragments::Taken::whole) {
    share_.waited = subject_.frame.size();
    subject_.frame = fragments_.datagram();
    read_facts();
    // No device has seen it whole, and a core would be busy with it for as long as with 45 frames.
    is_datagram_ = subject_.hits.too_many = true;
    subject_.hits.known = subject_.passed = false;
    flow = nullptr;
    flow_ = nullptr;
    subject_.direction = Direction::to_server;
    flow::Packet packet;
    if (flow::read_packet(subject_.packet, packet) && !packet.fragment) {
      flow = conversations_.packet(packet, now_ / 1000).flow;
      if (flow == nullptr) ++counters_.no_flow;
    }
    if (flow == nullptr) {
      inspect_packet(nullptr, false);
    } else if ((flow->user & FlowMark::dropped) != 0) {
      by_flow = drop_by_flow(*flow);
    }
  }
  // A datagram of fragments is taken by nobody.
  if (taken == flow::Fragments::Taken::refused || subject_.packet.fragment()) {
    subject_.judgement.fragment = true;
    subject_.judgement.drop |= drops_left_;
  }
  // Else the same fragment, sent again, would be nothing new.
  if (subject_.judgement.drop) fragments_.forbid();
  return flow;
}

}  // namespace sluice::function
