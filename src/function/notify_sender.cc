#include "function/notify_sender.h"

#include <array>
#include <cstring>

#include "packet/icmp_error.h"
#include "packet/metadata.h"
#include "packet/tcp_reset.h"

namespace sluice::function {
std::uint32_t notify_sender(std::uint8_t* frame, std::uint32_t length, std::uint32_t capacity, Quote quote) {
  constexpr std::uint32_t least_carried = 8, everything = 0xffffffff;
  if (!packet::may_answer_with_icmp_error(frame, length)) return 0;
  packet::Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::network, meta);
  if (meta.protocol == packet::protocol_tcp) return packet::make_tcp_reset(frame, length, packet::ResetTo::sender);
  const auto destination = packet::IpAddress::from_bytes(meta.family, meta.destination(frame));
  std::array<std::uint8_t, 6> own_mac;
  std::memcpy(own_mac.data(), frame, own_mac.size());
  return packet::make_icmp_error(
      frame, length, capacity,
      {packet::IcmpErrorKind::prohibited, 0, destination, own_mac.data(),
       quote == Quote::headers ? meta.transport + least_carried - meta.network : everything});
}

}  // namespace sluice::function
