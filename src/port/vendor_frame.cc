#include "port/vendor_frame.h"

#include <algorithm>
#include <vector>

#include "port/wireless_frame.h"

namespace sluice::port::link {
namespace {

using Take = std::function<void(Bytes)>;

constexpr std::uint16_t ipv4_type = 0x0800, ipv6_type = 0x86dd, arp_type = 0x0806, mpls_type = 0x8847;
constexpr std::size_t addresses_bytes = 12;

}  // namespace

LinkFate juniper(std::uint32_t inner, Bytes frame, const Take& take) {
  constexpr std::size_t front = 4, extension = 2, before_packet = 4;
  constexpr unsigned no_link = 0x02, extended = 0x80;
  constexpr std::uint32_t raw_ip = 101;
  if (frame.size() < front) return LinkFate::cut;
  if (frame[0] != 'M' || frame[1] != 'G' || frame[2] != 'C') return LinkFate::no_packet;
  const bool is_extended = (frame[3] & extended) != 0, is_bare = (frame[3] & no_link) != 0;
  if (is_extended && frame.size() < front + extension) return LinkFate::cut;
  const std::size_t size = front + (is_extended ? extension + half(frame, front) : 0U) + (is_bare ? before_packet : 0U);
  if (frame.size() <= size) return LinkFate::cut;
  return to_ethernet(is_bare ? raw_ip : inner, frame.subspan(size), take);
}

LinkFate without_tag(std::size_t size, Bytes frame, const Take& take) {
  if (frame.size() < addresses_bytes + size + 2) return LinkFate::cut;
  std::vector<std::uint8_t> plain(frame.size() - size);
  std::ranges::copy(frame.first(addresses_bytes), plain.begin());
  std::ranges::copy(frame.subspan(addresses_bytes + size), plain.begin() + addresses_bytes);
  take(plain);
  return LinkFate::read;
}

LinkFate typed_at(std::size_t type, std::size_t packet, Bytes frame, const Take& take) {
  return frame.size() <= packet ? LinkFate::cut : typed(half(frame, type), frame.subspan(packet), {}, take);
}

LinkFate arcnet(std::size_t type, Bytes frame, const Take& take) {
  constexpr std::size_t behind_type = 4;
  constexpr unsigned ip = 212, ip6 = 196, arp = 213, exception = 0xff;
  if (frame.size() <= type + behind_type) return LinkFate::cut;
  const unsigned flag = frame[type + 1];
  if (flag != 0 && flag != exception) return LinkFate::in_pieces;
  const std::size_t packet = type + behind_type + (flag == exception ? behind_type : 0);
  if (frame.size() <= packet) return LinkFate::cut;
  switch (frame[type]) {
    case ip:
      return typed(ipv4_type, frame.subspan(packet), {}, take);
    case ip6:
      return typed(ipv6_type, frame.subspan(packet), {}, take);
    case arp:
      return typed(arp_type, frame.subspan(packet), {}, take);
    default:
      return LinkFate::no_packet;
  }
}

LinkFate mpls(Bytes frame, const Take& take) {
  constexpr std::size_t label = 4;
  std::size_t at = 0;
  while (at + label <= frame.size() && (frame[at + 2] & 1) == 0) at += label;
  if (frame.size() <= at + label) return LinkFate::cut;
  const Bytes packet = frame.subspan(at + label);
  const unsigned version = packet[0] >> 4;
  if (version == 4 || version == 6) return typed(version == 4 ? ipv4_type : ipv6_type, packet, {}, take);
  return typed(mpls_type, frame, {}, take);
}

}  // namespace sluice::port::link
