// The memory replay port: frames of a given mix, prepared once in packet memory, handed out by reference on receive and
// taken back on transmit. It stands in for a NIC whose DMA costs the CPU nothing, so that a bench measures the gateway
// and not a generator. It moves pointers only.
//
// A queue's frames are the mbufs of its own pool. Receiving takes the next ones from the pool's FIFO; transmitting
// gives a frame back to the pool that it came from, whatever port it leaves by.
//
// Order: copies of whole runs, and conversations, need frames in the order of their addresses. A dropped frame comes
// back before those that are under way, which breaks that order for good. With `ordered` it is kept, at some ns for
// each frame: a frame that is not back when it is its turn misses the turn.
//
// Frames come back changed (a router lowers the TTL). After `refresh` rounds each frame's first bytes are written anew
// from a pristine copy, at a cost of 1/refresh of a small copy.
//
// Offered load: without `rate`, as fast as the lane polls. With it, frames fall due at that rate. As with a NIC, a due
// frame is counted as missed if no frame of the pool is free, or if `ring` others wait already. waited() says how long
// frames had been due when they were taken, as if a NIC had stamped their arrival.
//
// A port's address comes from its name, so that two ports of one gateway are two hosts; frames are addressed to it.
//
// Thread-safety: one thread per queue, as for an ethdev. Cost: a bulk dequeue or enqueue per burst.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "packet/ip_address.h"
#include "port/frame_pool.h"
#include "port/replay_options.h"

namespace sluice::port {

class ReplayPort {
 public:
  static Expected<std::unique_ptr<ReplayPort>> create(const std::string& name, unsigned queues,
                                                      const ReplayOptions& options, unsigned frame_bytes);

  std::uint16_t rx_burst(std::uint16_t queue, rte_mbuf** frames, std::uint16_t count);
  std::uint16_t tx_burst(rte_mbuf** frames, std::uint16_t count);
  // How long the first frame of the queue's last burst had been due by then, in ticks; 0 without a rate.
  std::uint64_t waited(std::uint16_t queue) const { return queues_[queue]->waited; }
  static packet::MacAddress mac_of(std::string_view name);
  const packet::MacAddress& mac() const { return mac_; }
  rte_mempool* pool(std::uint16_t queue) const { return queues_[queue]->pool.get(); }
  std::uint64_t missed() const;

  // Which frame of its queue an mbuf is, and the frame as it was prepared: for verifying what comes out.
  static std::uint32_t frame_index(const rte_mbuf* frame);
  const std::vector<std::uint8_t>& pristine(std::uint16_t queue, std::uint32_t index) const {
    return queues_[queue]->pristine[family_at(family_.load(std::memory_order_acquire))][index];
  }
  // Called for every frame that leaves by this port, before it is taken back. For verification; set while no lane runs.
  using Observer = std::function<void(const rte_mbuf* frame)>;
  void observe(Observer observer) { observer_ = std::move(observer); }
  // Frames per second and queue that fall due from now on; 0: unlimited. May be called while lanes run.
  void set_rate(double frames_per_second);
  // From now on frames of family 4 or 6, the same that a port made with it would have: each is written anew as it is
  // handed out, for two rounds. May be called while lanes run, from one thread.
  Expected<void> set_family(int family);

 private:
  // When the ring was full, frames that fell due were lost: those in it before are older by that time than their place
  // in it says.
  struct Gap {
    std::uint64_t before = 0;  // the number of the first frame behind it, of those that were not lost
    double ticks = 0;
  };
  struct Queue {
    void fall_due(double ticks, unsigned capacity);
    double head_waited() const;
    std::uint16_t take(rte_mbuf** frames, std::uint16_t count);
    std::uint16_t take_in_order(rte_mbuf** frames, std::uint16_t count);
    FramePool pool;
    std::array<std::vector<std::vector<std::uint8_t>>, 2> pristine;  // by family_at()
    int seen_family = 4;
    std::uint64_t to_rewrite = 0;  // frames that are still to be handed out in the new family
    std::atomic<double> rate_per_tsc{0};
    double seen_rate = 0;
    double credit = 0;
    std::uint64_t last_tsc = 0;
    // Frames handed out while there was a rate, whatever it was: gaps name places in this count, which therefore goes
    // on when a new rate clears them.
    std::uint64_t taken = 0;
    std::array<Gap, 64> gaps{};
    unsigned first_gap = 0, gap_count = 0;
    double gap_ticks = 0;  // of all of them
    std::uint64_t waited = 0;
    // When they are kept in order: every frame by its index, and which of them are here, not in the pool nor under way.
    std::vector<rte_mbuf*> by_index, scratch;
    std::vector<std::uint64_t> present;  // a bit for each
    unsigned here = 0;
    std::uint32_t next_index = 0;
    std::uint64_t handed_out = 0;
    std::atomic<std::uint64_t> missed{0};
  };
  static constexpr unsigned family_at(int family) { return family == 6 ? 1 : 0; }

  ReplayOptions options_;
  packet::MacAddress mac_;
  unsigned frame_bytes_ = 0;
  std::atomic<int> family_{4};
  std::vector<std::unique_ptr<Queue>> queues_;
  unsigned refresh_ = 0;
  unsigned frames_ = 0;
  unsigned ring_ = 0;
  Observer observer_;
};

}  // namespace sluice::port
