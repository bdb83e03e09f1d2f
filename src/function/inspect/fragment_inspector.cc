#include "function/inspect/fragment_inspector.h"

namespace sluice::function {

void FragmentInspector::inspect(PacketContext& fragment, std::optional<PacketContext>& datagram) {
  Verdict& verdict = fragment.verdict;
  if (verdict.judgement.drop) return;
  const flow::Fragments::Taken taken = fragments_.take(fragment.frame, fragment.packet(), fragment.microseconds / 1000);
  if (taken == flow::Fragments::Taken::kept) return;
  bool is_taken = taken != flow::Fragments::Taken::refused;
  if (taken == flow::Fragments::Taken::whole) {
    verdict.passed = false;
    fragment.budget.waited = fragment.frame.size();
    // A core would be busy with it for as long as with 45 frames.
    datagram.emplace(fragments_.datagram(), fragment.microseconds, PrefilterMatches::of_unseen(), verdict,
                     fragment.budget);
    datagram->is_datagram = true;
    datagram->tunnel = fragment.tunnel;
    inspect_datagram(*datagram);
    is_taken = !datagram->packet().fragment();  // a datagram of fragments is taken by nobody
  }
  if (!is_taken) {
    verdict.judgement.fragment = true;
    verdict.judgement.drop |= env_.drops_left;
  }
  // Else the same fragment, sent again, would be nothing new.
  if (verdict.judgement.drop) fragments_.forbid();
}

void FragmentInspector::inspect_datagram(PacketContext& datagram) {
  flow::Packet packet;
  if (flow::read_packet(datagram.packet(), packet) && !packet.fragment) {
    events_.follow(datagram, packet, env_.conversations.table().hash(packet));
  } else {
    events_.inspect_alone(datagram);
  }
}

}  // namespace sluice::function
