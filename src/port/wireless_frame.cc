#include "port/wireless_frame.h"

#include <algorithm>
#include <vector>

namespace sluice::port::link {
namespace {

using Take = std::function<void(Bytes)>;

constexpr std::size_t address_bytes = 6, llc_bytes = 3, snap_bytes = 5;

bool has_snap(Bytes packet) {
  return packet.size() >= llc_bytes + snap_bytes && packet[0] == 0xaa && packet[1] == 0xaa && packet[2] == 0x03;
}

// Where the frame's body begins; 0: it is cut before that.
struct Header {
  std::size_t size = 0;
  Addresses addresses;
  bool aggregate = false;  // an A-MSDU
};

Header header_of(Bytes frame, bool padded) {
  constexpr std::size_t three = 24;
  Header header;
  const bool to_network = (frame[1] & 0x01) != 0, from_network = (frame[1] & 0x02) != 0;
  const bool four = to_network && from_network, has_qos = (frame[0] & 0x80) != 0, ordered = (frame[1] & 0x80) != 0;
  std::size_t size = three + (four ? address_bytes : 0);
  const std::size_t qos = size;
  size += has_qos ? 2 + (ordered ? 4U : 0U) : 0U;
  if (padded) size = (size + 3) / 4 * 4;
  if (frame.size() < size) return {};
  const auto address = [&](std::size_t at) { return frame.subspan(at, address_bytes); };
  header.addresses.to = address(to_network ? 16 : 4);
  header.addresses.from = address(four ? three : from_network ? 16 : 10);
  header.aggregate = has_qos && (frame[qos] & 0x80) != 0;
  header.size = size;
  return header;
}

// IEEE 802.11-2020 9.3.2.2.2: addresses, a length, what it is of, up to a multiple of 4.
LinkFate aggregate(Bytes body, const Take& take) {
  constexpr std::size_t front = 14;
  LinkFate fate = body.size() < front ? LinkFate::cut : LinkFate::no_packet;
  while (body.size() >= front) {
    const std::size_t length = half(body, 12);
    const std::size_t there = std::min(length, body.size() - front);
    if (length != 0) {
      const LinkFate one = llc(body.subspan(front, there), {body.first(6), body.subspan(6, 6)}, take);
      if (fate != LinkFate::read) fate = one;
    }
    body = body.subspan(std::min(body.size(), (front + length + 3) / 4 * 4));
  }
  return fate;
}

// A mesh puts a control header before the LLC (9.2.4.7.3): flags, a TTL, a number, and up to two more addresses.
Bytes without_mesh(Bytes body) {
  if (has_snap(body) || body.size() < address_bytes) return body;
  const std::size_t size = address_bytes + (body[0] & 0x03U) * address_bytes;
  return body.size() > size && has_snap(body.subspan(size)) ? body.subspan(size) : body;
}

LinkFate wireless_body(Bytes frame, bool padded, const Take& take) {
  if (frame.size() < 2) return LinkFate::cut;
  constexpr unsigned data = 2;
  const bool is_null = (frame[0] & 0x40) != 0, is_protected = (frame[1] & 0x40) != 0, more = (frame[1] & 0x04) != 0;
  if ((frame[0] >> 2 & 3) != data || is_null) return LinkFate::no_packet;
  const Header header = header_of(frame, padded);
  if (header.size == 0) return LinkFate::cut;
  const Bytes body = without_mesh(frame.subspan(header.size));
  if (is_protected && !has_snap(body)) return LinkFate::encrypted;
  if (more || (frame[22] & 0x0f) != 0) return LinkFate::in_pieces;
  return header.aggregate ? aggregate(body, take) : llc(body, header.addresses, take);
}

}  // namespace

std::uint16_t half(Bytes bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

std::uint32_t little_word(Bytes bytes, std::size_t at) {
  return bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | std::uint32_t{bytes[at + 3]} << 24;
}

LinkFate typed(std::uint16_t ether_type, Bytes packet, const Addresses& addresses, const Take& take) {
  if (packet.empty()) return LinkFate::cut;
  std::vector<std::uint8_t> frame(14 + packet.size());
  std::ranges::copy(addresses.to, frame.begin());
  std::ranges::copy(addresses.from, frame.begin() + address_bytes);
  frame[12] = static_cast<std::uint8_t>(ether_type >> 8);
  frame[13] = static_cast<std::uint8_t>(ether_type);
  std::ranges::copy(packet, frame.begin() + 14);
  take(frame);
  return LinkFate::read;
}

LinkFate llc(Bytes packet, const Addresses& addresses, const Take& take) {
  constexpr std::uint8_t snap_point = 0xaa, ip_point = 0x06;
  constexpr std::uint16_t ipv4_type = 0x0800;
  if (packet.size() < llc_bytes) return LinkFate::cut;
  if (packet[0] == snap_point && packet[1] == snap_point) return snap(packet.subspan(llc_bytes), addresses, take);
  if (packet[0] == ip_point && packet[1] == ip_point)
    return typed(ipv4_type, packet.subspan(llc_bytes), addresses, take);
  return LinkFate::no_packet;
}

LinkFate snap(Bytes packet, const Addresses& addresses, const Take& take) {
  if (packet.size() < snap_bytes) return LinkFate::cut;
  const unsigned oui = packet[0] << 16 | packet[1] << 8 | packet[2];
  constexpr unsigned of_ethernet = 0, of_bridges = 0xf8;  // RFC 1042; IEEE 802.1H
  if (oui != of_ethernet && oui != of_bridges) return LinkFate::no_packet;
  return typed(half(packet, 3), packet.subspan(snap_bytes), addresses, take);
}

LinkFate wireless(Bytes frame, const Take& take) {
  return wireless_body(frame, false, take);
}

LinkFate radiotap(Bytes frame, const Take& take) {
  constexpr std::size_t front = 8;
  if (frame.size() < front) return LinkFate::cut;
  const std::size_t size = frame[2] | frame[3] << 8;
  if (size < front || size >= frame.size()) return LinkFate::cut;
  const std::uint32_t present = little_word(frame, 4);
  std::size_t at =
      front;  // of the fields: behind all words of what is present, of which bit 31 says that another one is
  for (std::uint32_t word = present; (word >> 31) != 0 && at + 4 <= size; at += 4) word = little_word(frame, at);
  if ((present & 1) != 0) at = (at + 7) / 8 * 8 + 8;  // a time
  const unsigned flags = (present & 2) != 0 && at < size ? frame[at] : 0;
  constexpr unsigned checksum_at_end = 0x10, padded = 0x20;
  constexpr std::size_t checksum_bytes = 4;
  Bytes body = frame.subspan(size);
  if ((flags & checksum_at_end) != 0 && body.size() > checksum_bytes) body = body.first(body.size() - checksum_bytes);
  return wireless_body(body, (flags & padded) != 0, take);
}

LinkFate prism(Bytes frame, const Take& take) {
  constexpr std::size_t header = 144;
  constexpr std::uint32_t avs_version = 0x80211000;
  if (frame.size() < 8) return LinkFate::cut;
  const std::uint32_t first = __builtin_bswap32(little_word(frame, 0));
  if ((first & 0xfffff000) == avs_version) return avs(frame, take);
  return frame.size() < header ? LinkFate::cut : wireless(frame.subspan(header), take);
}

LinkFate avs(Bytes frame, const Take& take) {
  if (frame.size() < 8) return LinkFate::cut;
  const std::uint32_t size = __builtin_bswap32(little_word(frame, 4));
  return size < 8 || size >= frame.size() ? LinkFate::cut : wireless(frame.subspan(size), take);
}

}  // namespace sluice::port::link
