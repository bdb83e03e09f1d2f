// Merges consecutive TCP frames into one packet of up to 64 KB, for a kernel that takes such packets (virtio_net_hdr,
// GSO). The kernel then handles one packet instead of forty. Segmenter (packet/offload.h) does the reverse.
//
// A card that segments the packet again gives exactly the frames that were merged. So all headers must be the same but
// for the fields that count up (sequence number, IPv4 identification). Only the last frame may be shorter or have PSH.
// Each frame must have a right checksum, so that a damaged frame does not come out as a good one: it is verified unless
// the caller knows that it is right.
//
// No call allocates. Thread-safety: none; each thread has its own. Cost: a look at the headers, and for a checksum that
// is verified a pass over the frame's bytes (packet/checksum.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "packet/offload.h"

namespace sluice::packet {

class Merger {
 public:
  // Frames with VLAN tags, IPv4 options or IPv6 extension headers are not merged.
  static constexpr std::size_t most_header_bytes = 14 + 40 + 60;

  // What the caller knows of a frame's transport checksum.
  enum class Checksum : std::uint8_t { to_verify, known_right };

  // Begins a packet with this frame, which must stay in memory until write_headers(). False: no frame can be merged to
  // it.
  bool begin(const std::uint8_t* frame, std::size_t length, Checksum checksum);
  // Adds the next frame. False: it does not follow the last one, and the packet is complete.
  bool add(const std::uint8_t* frame, std::size_t length, Checksum checksum);

  // Bytes of the headers of each frame.
  std::size_t header_bytes() const { return header_bytes_; }
  std::size_t transport() const { return places_.transport; }
  // Bytes of payload of each frame but the last.
  std::size_t payload_bytes() const { return payload_bytes_; }
  // Writes the headers of the packet, with an unfinished checksum (packet/offload.h).
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
