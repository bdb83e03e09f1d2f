// What the router does itself where the kernel need not have the route (Adjacency::own()): ICMP errors, and frames with
// options.
#include <algorithm>

#include "engine/batch_edit.h"
#include "engine/emitter.h"
#include "function/route/route.h"
#include "function/route/route_batch.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

using packet::FrameKind;
using packet::Reason;

const Reason icmp_error_limit = packet::register_reason(
    "icmp_error_limit", "an ICMP error was due, above the 1,000 a second that a lane sends");  // RFC 1812 4.3.2.8
static_assert(engine::Emitter::answers_per_second == 1000, "as the text says");

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);

bool is_ipv4_link_local(std::uint32_t address) {
  return address >> 16 == 0xa9fe;
}

// What a well-formed frame that parse_frame() gives to the host is without its options; host: that is not why.
FrameKind kind_without_options(const std::uint8_t* frame) {
  if ((frame[0] & 1) != 0) {
    return FrameKind::host;
  }
  const std::uint16_t type = packet::be16(packet::header_at<packet::EthernetHeader>(frame, 0).ethertype);
  if (type == packet::ethertype_ipv4) {
    const auto& ip = packet::header_at<packet::Ipv4Header>(frame, ethernet);
    const std::uint32_t destination = packet::be32(ip.destination);
    const bool forwardable = (ip.version_ihl & 0xf) != 5 && destination >> 28 < 0xe &&
                             !is_ipv4_link_local(destination) && !is_ipv4_link_local(packet::be32(ip.source));
    return forwardable ? FrameKind::ipv4 : FrameKind::host;
  }
  if (type == packet::ethertype_ipv6) {
    const auto& ip = packet::header_at<packet::Ipv6Header>(frame, ethernet);
    const bool forwardable = ip.next_header == packet::protocol_hop_by_hop &&
                             packet::detail::ordinary_ipv6(ip.source) && packet::detail::ordinary_ipv6(ip.destination);
    return forwardable ? FrameKind::ipv6 : FrameKind::host;
  }
  return FrameKind::host;
}

}  // namespace

// Whether the frame is for the host only because of its options, and its route is one that the kernel need not have;
// then `kind` is what it is without them.
bool Router::is_own_with_options(const std::uint8_t* frame, FrameKind& kind) const {
  const FrameKind without = kind_without_options(frame);
  lookup::NextHopId id;
  if (without == FrameKind::ipv4) {
    const std::uint32_t destination = packet::be32(packet::header_at<packet::Ipv4Header>(frame, ethernet).destination);
    fib_->lookup4(&destination, &id, 1);
  } else if (without == FrameKind::ipv6) {
    Key6 key;
    std::copy_n(packet::header_at<packet::Ipv6Header>(frame, ethernet).destination, key6_bytes, key);
    fib_->lookup6(&key, &id, 1);
  } else {
    return false;
  }
  if (!adjacencies_->at(id).own()) {
    return false;
  }
  kind = without;
  return true;
}

// Makes frame `i` the ICMP error that notifies its sender, or drops it: for `reason` where no error may be sent.
void Router::answer(engine::Batch& batch, std::uint32_t i, packet::IcmpErrorKind kind, std::uint32_t mtu, Reason reason,
                    engine::Emitter& out) {
  auto* const frame = reinterpret_cast<std::uint8_t*>(batch.frame[i]);
  const std::uint16_t port = batch.row[i].port;
  const std::uint32_t link_mtu = table_->mtu(port);
  if (!packet::may_answer_with_icmp_error(frame, batch.length[i]) ||
      ethernet + link_mtu < packet::least_icmp_error_capacity) {
    return batch.drop(i, reason);
  }
  const auto sources = table_->sources().read(batch.lane);
  const packet::IpAddress* const source = sources->of(port, frame[12] == 0x86 ? 6 : 4);
  if (source == nullptr) {  // between captures, say
    return batch.drop(i, reason);
  }
  if (!out.may_answer()) {
    return batch.drop(i, icmp_error_limit);
  }
  const std::uint32_t capacity = engine::capacity_from(batch, i);
  const std::uint64_t own_mac = table_->ingress().mac(port);
  const std::uint32_t length =
      packet::make_icmp_error(frame, batch.length[i], std::min(capacity, ethernet + link_mtu),
                              {kind, mtu, *source, reinterpret_cast<const std::uint8_t*>(&own_mac)});
  if (length == 0) {
    return batch.drop(i, reason);
  }
  engine::set_length(batch, i, length);
  batch.answer(i, reason);
}

}  // namespace sluice::function
