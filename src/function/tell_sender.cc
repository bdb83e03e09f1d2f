#include "function/tell_sender.h"

#include <array>
#include <cstring>

#include "packet/headers.h"
#include "packet/icmp_error.h"
#include "packet/tcp_reset.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t macs = 12, ethernet = sizeof(packet::EthernetHeader);
constexpr std::uint32_t most_tags_bytes = packet::most_vlan_tags * sizeof(packet::VlanHeader);

std::uint16_t type_at(const std::uint8_t* frame, std::uint32_t at) {
  return static_cast<std::uint16_t>(frame[at] << 8 | frame[at + 1]);
}

// Bytes of the tags; the frame is long enough for them and the type behind.
std::uint32_t tag_bytes(const std::uint8_t* frame, std::uint32_t length) {
  std::uint32_t bytes = 0;
  while (bytes < most_tags_bytes && length >= ethernet + bytes + sizeof(packet::VlanHeader) &&
         packet::is_vlan_tag(type_at(frame, macs + bytes))) {
    bytes += sizeof(packet::VlanHeader);
  }
  return bytes;
}

// TCP, whole or in fragments, of an untagged frame that may be answered.
bool is_tcp(const std::uint8_t* frame) {
  const std::uint8_t* const packet = frame + ethernet;
  return packet[0] >> 4 == 4 ? packet[9] == packet::protocol_tcp : packet[6] == packet::protocol_tcp;
}

std::uint32_t make_error(std::uint8_t* frame, std::uint32_t room) {
  const std::uint8_t* const packet = frame + ethernet;
  const auto destination = packet[0] >> 4 == 4 ? packet::IpAddress::from_bytes(4, packet + 16)
                                               : packet::IpAddress::from_bytes(6, packet + 24);
  std::array<std::uint8_t, 6> own_mac;
  std::memcpy(own_mac.data(), frame, own_mac.size());
  return packet::make_icmp_error(frame, room, {packet::IcmpErrorKind::prohibited, 0, destination, own_mac.data()});
}

}  // namespace

std::uint32_t tell_sender(std::uint8_t* frame, std::uint32_t length, std::uint32_t room) {
  if (length < ethernet) return 0;
  const std::uint32_t tags = tag_bytes(frame, length);
  // Without its tags, the link addresses right before the type.
  std::array<std::uint8_t, macs + most_tags_bytes> front;
  std::memcpy(front.data(), frame, macs + tags);
  std::uint8_t* const bare = frame + tags;
  std::memmove(bare, front.data(), macs);
  std::uint32_t answer = 0;
  if (packet::may_answer_with_icmp_error(bare, length - tags)) {
    answer = is_tcp(bare) ? packet::make_tcp_reset(bare, length - tags, ethernet, packet::ResetTo::sender)
                          : make_error(bare, room - tags);
  }
  if (answer == 0) {
    std::memcpy(frame, front.data(), macs + tags);
    return 0;
  }
  std::array<std::uint8_t, macs> answer_macs;
  std::memcpy(answer_macs.data(), bare, macs);
  std::memcpy(frame, answer_macs.data(), macs);
  std::memcpy(frame + macs, front.data() + macs, tags);
  return tags + answer;
}

}  // namespace sluice::function
