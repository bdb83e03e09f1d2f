// What a network card does for the host that sends through it, in software: finishing checksums and cutting up what is
// longer than the MTU.
//
// A host's kernel leaves both to the card. A virtual interface (veth, TAP, virtio) has none: its frames arrive with the
// pseudo-header's sum where the checksum belongs, and up to 64 KB long (Linux: CHECKSUM_PARTIAL, GSO). Where a driver
// says so it is by the fields of a virtio_net_hdr (VIRTIO 1.2, 5.1.6): where a checksum starts, where it is stored, and
// how many bytes of payload a segment has.
//
// No call allocates or fails in another way than it says; none reads or writes outside the frame. Any thread. Cost: a
// pass over the bytes that a checksum covers (packet/checksum.h); the look for a mark some 10 ns. Cutting up copies
// each payload and sums it once; the headers it sums once for the whole packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "packet/metadata.h"

namespace sluice::packet {

// Of an IP packet in its frame of which nothing is cut, and that is no fragment.
std::optional<Metadata> find_headers(const std::uint8_t* frame, std::size_t length);

// The checksum at `start` + `offset` holds the pseudo-header's sum and covers all from `start` on. SCTP's CRC32c (RFC
// 9260, appendix A), which has no pseudo-header, is made where the packet is one of SCTP. False: it lies outside the
// frame.
bool finish_checksum(std::uint8_t* frame, std::size_t length, std::size_t start, std::size_t offset);

// For drivers that do not say (AF_XDP): finishes the checksum of TCP and UDP that is exactly the pseudo-header's sum,
// and of SCTP that is 0. A right checksum that happens to be that sum comes out as it was. False: there is no such
// mark.
bool finish_marked_checksum(std::uint8_t* frame, std::size_t length);

enum class Segmentation : std::uint8_t { tcp, udp };

// A TCP or UDP packet that is cut up into frames, each with the headers of the whole.
//
//   Segmenter segments;
//   if (segments.begin(frame, length, Segmentation::tcp, 1448))
//     while (!segments.done()) segments.write_next(capacity);   // next_length() bytes
//
// As Linux does it (tcp_gso_segment): the sequence number and the IPv4 identification count up, FIN and PSH are of the
// last segment and CWR of the first (RFC 3168), every length and checksum is right, where the pseudo-header's sum was.
// A packet in a VXLAN tunnel is cut up within it (skb_udp_tunnel_segment): each segment has the outer headers, too,
// with a UDP checksum where the whole had one.
class Segmenter {
 public:
  // `frame` stays where it is until done(), its transport checksum unfinished. False: not such a packet, or one in
  // another tunnel: its transport is not where `checksum_start` says.
  bool begin(const std::uint8_t* frame, std::size_t length, Segmentation kind, std::size_t payload_bytes,
             std::size_t checksum_start);
  bool done() const { return at_ == end_; }
  std::size_t next_length() const { return headers_ + next_payload(); }
  void write_next(std::uint8_t* to);
  // Gives the rest up.
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
