// Puts TCP frames that follow each other together into one packet of up to 64 KB, for a kernel that takes such
// (virtio_net_hdr, GSO): the reverse of Segmenter (packet/offload.h). One packet then goes through the kernel instead
// of forty.
//
// What a card makes of the packet are the frames that it came from, to the byte. All headers are the same but for what
// counts up (sequence, IPv4 identification), no frame but the last is shorter or has PSH, and each has a right
// checksum, for a damaged frame must not come out whole: it is verified where the caller does not know it to be right.
//
// No call allocates or fails otherwise. Any thread. Cost: a look at the headers, and where a checksum is verified a
// pass over the frame's bytes (packet/checksum.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "packet/offload.h"

namespace sluice::packet {

class Merger {
 public:
  // Without VLAN tags, IPv4 options and IPv6 extension headers.
  static constexpr std::size_t most_header_bytes = 14 + 40 + 60;

  // Of a frame's transport checksum.
  enum class Checksum : std::uint8_t { to_verify, known_right };

  // `frame` stays where it is until write_headers(). False: it is none that others may follow.
  bool begin(const std::uint8_t* frame, std::size_t length, Checksum checksum);
  // False: it does not follow the last one, which ends the packet.
  bool add(const std::uint8_t* frame, std::size_t length, Checksum checksum);

  // Of each frame, in front of its payload.
  std::size_t header_bytes() const { return header_bytes_; }
  std::size_t transport() const { return places_.transport; }
  // Of each frame but the last.
  std::size_t payload_bytes() const { return payload_bytes_; }
  // Those of the packet, its checksum unfinished.
  void write_headers(std::uint8_t* to) const;

 private:
  bool follows(const std::uint8_t* frame) const;

  const std::uint8_t* first_ = nullptr;
  Metadata places_;
  std::size_t header_bytes_ = 0;
  std::size_t payload_bytes_ = 0;
  std::size_t total_ = 0;  // bytes of payload so far
  std::uint16_t count_ = 0;
  bool ended_ = false;
  std::uint8_t last_flags_ = 0;
};

}  // namespace sluice::packet
