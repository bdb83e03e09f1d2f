// The transmit side of a packet socket on a kernel interface: a burst of frames by one sendmmsg(2).
//
// Frames go past the interface's queueing (PACKET_QDISC_BYPASS) unless that is asked for. Nobody is waited for: what
// finds no capacity stays with the caller. Where `merges`, TCP frames of a burst that follow each other go as one
// packet of up to 64 KB (packet/merger.h), as they do between kernels on such an interface. Where the interface takes
// none, which shows when it refuses one, frames go one by one for a while.
//
// A frame with RTE_MBUF_F_RX_L4_CKSUM_GOOD is merged on trust: PacketRing gives it to those whose checksum it finished,
// and who changes a frame keeps the checksum right. Of every other frame the checksum is verified first.
//
// Thread-safety: send() is one thread's; counts() any thread's. Cost: one system call for 64 frames, one copy of each;
// merging reads the headers, and all bytes of a frame that it verifies.
#pragma once

#include <rte_mbuf.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "packet/merger.h"
#include "port/virtio_header.h"

namespace sluice::port {

class PacketSender {
 public:
  struct Counts {
    std::uint64_t frames = 0, bytes = 0;  // taken
    std::uint64_t errors = 0;             // of these: the kernel refused them (down, longer than the MTU, …)
  };

  static Expected<std::unique_ptr<PacketSender>> open(unsigned interface, bool qdisc_bypass, bool merges);
  ~PacketSender();
  PacketSender(const PacketSender&) = delete;
  PacketSender& operator=(const PacketSender&) = delete;

  // How many of them, from the first on, it has taken; those it frees.
  std::uint16_t send(rte_mbuf** frames, std::uint16_t count);
  Counts counts() const;

 private:
  static constexpr unsigned most = 64;  // frames at once
  struct Head {
    VirtioHeader offloads;
    std::array<std::uint8_t, packet::Merger::most_header_bytes> headers;
  };

  PacketSender() = default;
  unsigned send_some(rte_mbuf** frames, unsigned count);
  unsigned describe(rte_mbuf** frames, unsigned count);
  unsigned merge(rte_mbuf** frames, unsigned count, unsigned message);
  void add_part(const void* bytes, std::size_t length);

  int socket_ = -1;
  bool merges_ = false;
  unsigned one_by_one_ = 0;  // bursts that are left of the while
  unsigned parts_used_ = 0;
  std::array<mmsghdr, most> messages_{};
  std::array<unsigned, most> frames_of_{};  // by message
  std::array<Head, most> heads_{};
  std::array<iovec, 2 * most> parts_{};
  std::atomic<std::uint64_t> frames_{0}, bytes_{0}, errors_{0};
};

}  // namespace sluice::port
