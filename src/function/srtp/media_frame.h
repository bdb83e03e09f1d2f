// Where the UDP payload of a frame lies, whose it is, and what has to follow when its length changes.
//
//   plain  Ethernet II, IPv4 without options or IPv6 without extension headers, not fragmented, UDP whose lengths
//          agree: what is protected. `key` and `udp_offset` are set
//   odd    UDP that is not plain: a fragment, or behind VLAN tags, IPv4 options or extension headers, as many as there
//          are (packet/metadata.h). `key` is set; the ports of a later fragment are 0
//   bad    UDP over plain IP whose lengths contradict each other or the frame. `key` is set
//   other  no UDP, or nothing of which a 5-tuple can be made
//
// Thread-safety: any thread. Cost: a few loads from the first line of a frame; not measured.
#pragma once

#include <cstdint>

#include "packet/headers.h"

namespace sluice::function {

// Addresses and ports as they lie in a frame; an IPv4 address is in the first four bytes, the others are 0.
struct MediaKey {
  std::uint8_t source[16];
  std::uint8_t destination[16];
  std::uint16_t source_port;
  std::uint16_t destination_port;
  std::uint32_t family;  // 4 or 6

  bool operator==(const MediaKey& other) const = default;
};
std::uint64_t hash_of(const MediaKey& key);
struct MediaKeyHash {
  std::size_t operator()(const MediaKey& key) const { return hash_of(key); }
};

enum class MediaFrameKind : std::uint8_t { other, plain, odd, bad };

struct MediaFrame {
  MediaFrameKind kind = MediaFrameKind::other;
  std::uint16_t udp_offset = 0;
  MediaKey key;

  std::uint32_t payload_offset() const { return udp_offset + std::uint32_t{sizeof(packet::UdpHeader)}; }
};

// Nothing at or behind frame + length is read.
void read_media_frame(const std::uint8_t* frame, std::uint32_t length, MediaFrame& media);

// Of a plain frame: bytes of UDP's payload.
std::uint32_t udp_payload_length(const std::uint8_t* frame, const MediaFrame& media);

// Of a plain frame: whether its UDP checksum is not absent.
bool has_udp_checksum(const std::uint8_t* frame, const MediaFrame& media);

// Of a plain frame: false if it has a UDP checksum that is wrong, or none over IPv6.
bool udp_checksum_ok(std::uint8_t* frame, const MediaFrame& media);
// The same where the ones' complement sum of UDP's payload is known (packet/checksum.h), so that only headers are read.
bool udp_checksum_ok(const std::uint8_t* frame, std::uint32_t udp_offset, std::uint16_t payload_sum);

// Of a plain frame whose UDP payload is `length` bytes now: sets lengths and checksums of IP and UDP. The UDP checksum
// is computed anew, but stays absent where IPv4 had none. Returns the frame's length.
std::uint32_t set_udp_payload_length(std::uint8_t* frame, std::uint32_t udp_offset, std::uint32_t length);
// The same where the sum of the payload that is there now is known.
std::uint32_t set_udp_payload_length(std::uint8_t* frame, std::uint32_t udp_offset, std::uint32_t length,
                                     std::uint16_t payload_sum);

}  // namespace sluice::function
