// The receive side of one packet socket on a kernel interface (packet(7), TPACKET_V2 with PACKET_VNET_HDR): one ring of
// slots that the kernel fills, and its receive queue for what is longer than a slot.
//
// The socket sees frames before a card would: with checksums that their senders left to it, and up to 64 KB long where
// a sender left cutting them up to it (packet/offload.h). Both are done here, so what receive() gives is what would
// have come over a wire. A VLAN tag that the kernel keeps beside the frame is put back into it. A frame whose checksum
// was finished here has RTE_MBUF_F_RX_L4_CKSUM_GOOD: right as far as its sender's pseudo-header sum, as to the kernel.
//
// Nothing is lost without a count: missed (the ring or the receive queue was full), errors (no frame could be made of
// it: longer than a frame buffer or than 64 KB, or cut up in a way that is not known here).
//
// Thread-safety: receive() and waited() are one thread's; counts() any thread's, with one system call. Cost: no system
// call for a frame that fits a slot, one for each longer one; every frame is copied twice (kernel to ring to mbuf).
#pragma once

#include <linux/if_packet.h>
#include <rte_mbuf.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "packet/offload.h"
#include "port/virtio_header.h"

namespace sluice::port {

struct PacketRingOptions {
  unsigned slot_bytes = 2048;
  unsigned slots = 4096;
  unsigned block_bytes = 8192;  // whole slots and whole pages
  // That frames longer than a slot may take in the kernel, with its own records.
  unsigned queue_bytes = 32U << 20;
};

class PacketRing {
 public:
  struct Counts {
    std::uint64_t frames = 0, bytes = 0;
    std::uint64_t missed = 0, errors = 0;
    std::uint64_t finished = 0;  // frames whose checksum was finished; of what was cut up each
    std::uint64_t cut_up = 0;    // packets longer than the MTU that were cut up
  };

  // Of the interface with the number `interface`. `group`: of sockets that share the interface's frames by flow: none
  // for the first, which then has its number in group(). With `alone` it shares them with nobody. Errors: one sentence.
  static Expected<std::unique_ptr<PacketRing>> open(unsigned interface, const PacketRingOptions& options, bool alone,
                                                    std::optional<std::uint16_t> group);
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  std::uint16_t receive(rte_mempool* pool, rte_mbuf** frames, std::uint16_t count);
  // How long the first frame of the last receive() had been in the ring, in ticks; by the kernel's time stamps and
  // CLOCK_REALTIME, so a step of that clock shows once.
  std::uint64_t waited() const { return waited_; }
  // Readable while frames wait.
  int fd() const { return socket_; }
  std::uint16_t group() const { return group_; }
  Counts counts() const;

 private:
  struct Cell {  // one writer
    std::atomic<std::uint64_t> value{0};
    void add(std::uint64_t n) { value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
    std::uint64_t get() const { return value.load(std::memory_order_relaxed); }
  };
  struct Tag {
    std::uint16_t type = 0, tci = 0;  // network order; type 0: none
  };

  PacketRing() = default;
  Expected<void> set_up(unsigned interface, const PacketRingOptions& options);
  Expected<void> share(std::optional<std::uint16_t> group);
  Expected<void> map(const PacketRingOptions& options);
  tpacket2_hdr* ready() const;
  void release();
  void look_at_clock(const tpacket2_hdr& slot);
  bool take_slot(const tpacket2_hdr& slot, rte_mempool* pool, rte_mbuf** frame);
  bool take_queued(rte_mempool* pool, rte_mbuf** frame, const Tag& tag);
  bool take(std::uint8_t* bytes, std::size_t length, const VirtioHeader& header, rte_mempool* pool, rte_mbuf** frame,
            const Tag& tag);
  std::uint16_t cut(rte_mempool* pool, rte_mbuf** frames, std::uint16_t count);
  void put_tag(std::uint8_t* at, const Tag& tag) const;

  int socket_ = -1;
  std::uint16_t group_ = 0;
  std::uint8_t* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  std::vector<tpacket2_hdr*> slots_;
  std::size_t head_ = 0;
  std::uint64_t waited_ = 0;
  packet::Segmenter segments_;  // of the slot at head_, which is held until all are taken
  Tag segments_tag_;
  std::vector<std::uint8_t> long_frame_;
  double ticks_per_ns_ = 0;
  Cell frames_, bytes_, missed_, errors_, finished_, cut_up_;
  mutable std::mutex asking_;
  mutable std::uint64_t kernel_missed_ = 0;
};

}  // namespace sluice::port
