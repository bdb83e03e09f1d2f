#include "function/inspect/tunnel_inspector.h"

#include <cstddef>
#include <cstring>

namespace sluice::function {
namespace {

constexpr std::size_t ethernet = sizeof(packet::EthernetHeader),
                      addresses = offsetof(packet::EthernetHeader, ethertype);
constexpr std::size_t longest_packet = sizeof(packet::Ipv6Header) + 0xffff;

}  // namespace

TunnelInspector::TunnelInspector(InspectionEnvironment& env)
    : env_(env), enabled_(env.settings.tunnels), frame_(enabled_ ? ethernet + longest_packet : 0) {}

bool TunnelInspector::find(PacketContext& outer, std::optional<PacketContext>& inner) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(outer.frame.data());
  const auto length = static_cast<std::uint32_t>(outer.frame.size());
  packet::Metadata meta, inside;
  packet::read_metadata(bytes, length, packet::Depth::transport, meta);
  const packet::Tunnel kind = packet::read_inner(bytes, length, meta, inside);
  if (kind == packet::Tunnel::none || inside.family == 0) return false;
  ++env_.counters.in_tunnels;
  outer.verdict.passed = false;  // a rule of `pass` was about the packet outside
  const TunnelEnds& ends = ends_of(outer, kind);
  inner.emplace(frame_of(outer.frame, inside), outer.microseconds, PrefilterMatches::of_unseen(), outer.verdict,
                outer.budget);
  inner->tunnel = &ends;
  return true;
}

const TunnelEnds& TunnelInspector::ends_of(PacketContext& outer, packet::Tunnel kind) {
  const unsigned around = outer.tunnel == nullptr ? 0 : outer.tunnel->depth;
  TunnelEnds& ends = ends_[around];
  if (outer.tunnel != nullptr) {
    ends = *outer.tunnel;
  } else {
    const match::PacketFacts& packet = outer.packet();
    ends.family = packet.family;
    ends.protocol = packet.protocol;
    ends.source_port = packet.source_port;
    ends.destination_port = packet.destination_port;
    ends.source = packet.source;
    ends.destination = packet.destination;
  }
  ends.kind = kind;
  ends.depth = static_cast<std::uint8_t>(around + 1);
  return ends;
}

// What puts fragments together, and who reports, take frames with a link. `outer` may lie in frame_ itself.
std::string_view TunnelInspector::frame_of(std::string_view outer, const packet::Metadata& inner) {
  if (inner.link != inner.network) return outer.substr(inner.link, inner.end - inner.link);
  const std::string_view packet = outer.substr(inner.network, inner.end - inner.network).substr(0, longest_packet);
  std::memmove(frame_.data() + ethernet, packet.data(), packet.size());
  std::memmove(frame_.data(), outer.data(), addresses);
  const std::uint16_t type = packet::be16(inner.type);
  std::memcpy(frame_.data() + addresses, &type, sizeof type);
  return {frame_.data(), ethernet + packet.size()};
}

}  // namespace sluice::function
