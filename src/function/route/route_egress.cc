// By which port a frame would leave: for elements whose rules ask for it.
#include <cstring>

#include "function/route/route.h"
#include "function/route/route_batch.h"
#include "packet/flow_hash.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);

}  // namespace

// Also of a next hop that the kernel is to resolve, for it sends the frame on then.
std::uint16_t Router::egress_by(lookup::NextHopId id, const std::uint8_t* frame, std::uint32_t length) const {
  Adjacency adjacency = adjacencies_->at(id);
  if (adjacency.kind() == AdjacencyKind::group) {
    // Of what parse_frame() leaves to the kernel the flow is not known here, nor is the kernel's choice.
    packet::FrameView view;
    if (packet::parse_frame(frame, length, view) != packet::no_reason || view.kind == packet::FrameKind::host) {
      return engine::no_port;
    }
    adjacency = adjacencies_->at(adjacencies_->member(adjacency.group(), packet::flow_hash(frame, length, view)));
  }
  const AdjacencyKind kind = adjacency.kind();
  return kind == AdjacencyKind::forward || kind == AdjacencyKind::unresolved ? adjacency.port() : engine::no_port;
}

std::uint16_t Router::egress(const engine::Batch& batch, std::uint32_t i) const {
  // In a batch of an earlier pass there is no answer of the device's yet.
  if (!batch.goes_on(i) || area(batch) == nullptr) return egress_of_transit(batch.data(i), batch.length[i]);
  const RouteArea a = area_of(batch);
  const bool v6 = batch.data(i)[12] == 0x86;  // admit() took nothing but IPv4 and IPv6
  return egress_by(v6 ? a.answers6[a.argument[i]] : a.verdict[i], batch.data(i), batch.length[i]);
}

// Behind VLAN tags the kernel has links of its own, of which this router knows nothing.
std::uint16_t Router::egress_of_transit(const std::uint8_t* frame, std::uint32_t length) const {
  if (length < ethernet) return engine::no_port;
  lookup::NextHopId id;
  switch (packet::be16(packet::header_at<packet::EthernetHeader>(frame, 0).ethertype)) {
    case packet::ethertype_ipv4: {
      if (length < ethernet + sizeof(packet::Ipv4Header)) return engine::no_port;
      const std::uint32_t destination =
          packet::be32(packet::header_at<packet::Ipv4Header>(frame, ethernet).destination);
      fib_->lookup4(&destination, &id, 1);
      break;
    }
    case packet::ethertype_ipv6: {
      if (length < ethernet + sizeof(packet::Ipv6Header)) return engine::no_port;
      Key6 key;
      std::memcpy(key, packet::header_at<packet::Ipv6Header>(frame, ethernet).destination, key6_bytes);
      fib_->lookup6(&key, &id, 1);
      break;
    }
    default:
      return engine::no_port;
  }
  return egress_by(id, frame, length);
}

}  // namespace sluice::function
