// The virtio_net_hdr in front of a frame of a packet socket (PACKET_VNET_HDR) or a TAP (IFF_VNET_HDR), in the machine's
// byte order. Not linux/virtio_net.h, which does not compile as C++ before Linux 6.3.
#pragma once

#include <cstdint>

namespace sluice::port {

struct VirtioHeader {
  std::uint8_t flags = 0;
  std::uint8_t segmentation = 0;
  std::uint16_t headers = 0;        // a hint
  std::uint16_t segment_bytes = 0;  // of payload
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
static_assert(sizeof(VirtioHeader) == 10);

inline constexpr std::uint8_t virtio_needs_checksum = 1;  // of flags
inline constexpr std::uint8_t virtio_no_segmentation = 0, virtio_tcp4 = 1, virtio_tcp6 = 4, virtio_udp = 5,
                              virtio_ecn = 0x80;  // the last is a bit beside the others

}  // namespace sluice::port
