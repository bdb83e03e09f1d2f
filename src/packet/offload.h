// Two offloads of a network card, in software: it finishes checksums, and segments packets that are longer than the
// MTU.
//
// A host's kernel leaves both to the card, but a virtual interface (veth, TAP, virtio) has no card. Its frames arrive
// with an unfinished checksum, which is the sum of the pseudo-header alone, and up to 64 KB long (Linux:
// CHECKSUM_PARTIAL, GSO). A driver may describe such a frame by a virtio_net_hdr (VIRTIO 1.2, 5.1.6): where the
// checksum starts, where it is stored, and how many bytes of payload a segment has.
//
// No call allocates, and none reads or writes outside the frame. Thread-safety: any thread; a Segmenter is one
// thread's. Cost: a pass over the bytes that a checksum covers (packet/checksum.h); the look for an unfinished checksum
// about 10 ns. The Segmenter copies and sums each payload once, and sums the headers once for the whole packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "packet/metadata.h"

namespace sluice::packet {

// The metadata of a frame with a complete IP packet that is no fragment; empty for any other frame.
std::optional<Metadata> find_headers(const std::uint8_t* frame, std::size_t length);

// Finishes the checksum at `start` + `offset`, which holds the sum of the pseudo-header and covers all bytes from
// `start` on. If the packet is SCTP it makes the CRC32c instead (RFC 9260, appendix A), which has no pseudo-header.
// False: the checksum would lie outside the frame.
bool finish_checksum(std::uint8_t* frame, std::size_t length, std::size_t start, std::size_t offset);

// For drivers that do not describe frames (AF_XDP): finishes a checksum that looks unfinished. For TCP and UDP that is
// one equal to the sum of the pseudo-header, for SCTP one of 0. A right checksum that happens to have that value stays
// as it is. False: no checksum looks unfinished.
bool finish_marked_checksum(std::uint8_t* frame, std::size_t length);

enum class Segmentation : std::uint8_t { tcp, udp };

// Segments a TCP or UDP packet into frames, each with the headers of the packet.
//
//   Segmenter segments;
//   if (segments.begin(frame, length, Segmentation::tcp, 1448))
//     while (!segments.done()) segments.write_next(capacity);   // next_length() bytes
//
// It does as Linux (tcp_gso_segment): the sequence number and the IPv4 identification count up. Only the last segment
// has FIN and PSH, only the first has CWR (RFC 3168). Every length is right, and every checksum is finished. A packet
// in a VXLAN tunnel is segmented within the tunnel (skb_udp_tunnel_segment): each segment has the outer headers, too,
// with a UDP checksum if the packet had one.
class Segmenter {
 public:
  // `frame` must stay in memory until done(). Its transport checksum is unfinished. False: it is no such packet, or it
  // is in another kind of tunnel, so that its transport header is not at `checksum_start`.
  bool begin(const std::uint8_t* frame, std::size_t length, Segmentation kind, std::size_t payload_bytes,
             std::size_t checksum_start);
  bool done() const { return at_ == end_; }
  std::size_t next_length() const { return headers_ + next_payload(); }
  void write_next(std::uint8_t* to);
  // Gives up the remaining segments.
  void drop() { at_ = end_; }

 private:
  std::size_t next_payload() const { return end_ - at_ < payload_bytes_ ? end_ - at_ : payload_bytes_; }
  void sum_headers();
  void write_network(std::uint8_t* to, std::size_t payload) const;
  void write_transport(std::uint8_t* to, std::size_t payload) const;
  void write_outer(std::uint8_t* to, std::size_t payload) const;

  const std::uint8_t* frame_ = nullptr;
  Metadata places_;
  std::optional<Metadata> outer_;  // of a tunnel's packet
  Segmentation kind_ = Segmentation::tcp;
  std::size_t headers_ = 0;  // bytes of all of them
  std::size_t payload_bytes_ = 0;
  std::size_t at_ = 0, end_ = 0;  // what of the frame is still to be written
  std::uint16_t index_ = 0;
  // Of the headers of the whole, but for the lengths and the IPv4 identification.
  std::uint64_t network_sum_ = 0, transport_sum_ = 0;
};

}  // namespace sluice::packet
