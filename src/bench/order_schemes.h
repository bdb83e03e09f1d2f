// Four ways to let batches leave that come back from a device out of order, behind one interface, for `bench order`.
//
// All have the same capacity: so many batches may be on the device or wait for their turn. When it is full and another
// one wants in, a scheme may give up the gap that the others wait for; one that does not makes the device stand still.
//
// Thread-safety: one thread.
#pragma once

#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"

namespace sluice::cli::bench {

constexpr unsigned order_batch_frames = 32;  // the poster's

// Where frames leave: their numbers, in order. A frame's number is in hash.fdir.hi.
class OrderOutput {
 public:
  explicit OrderOutput(std::size_t batches) { numbers_.reserve(batches * order_batch_frames); }
  void send(const rte_mbuf* frame) { numbers_.push_back(frame->hash.fdir.hi); }
  void send_batch(rte_mbuf* const* frames) {
    for (unsigned i = 0; i < order_batch_frames; ++i) {
      send(frames[i]);
    }
  }
  const std::vector<std::uint32_t>& numbers() const { return numbers_; }
  // Share of the frames that left after one with a higher number.
  double out_of_order() const;

 private:
  std::vector<std::uint32_t> numbers_;
};

class OrderScheme {
 public:
  virtual ~OrderScheme() = default;
  virtual const char* name() const = 0;
  // Begins anew with capacity for so many batches, a power of two.
  virtual Expected<void> reset(unsigned capacity) = 0;
  // A batch goes to the device; batches are numbered from 0 on.
  virtual void tag(std::uint32_t batch, rte_mbuf** frames) = 0;
  // It came back.
  virtual void complete(std::uint32_t batch, rte_mbuf** frames, OrderOutput& out) = 0;
  // The capacity is used up: lets batches that wait leave without those that are missing. False: nothing waits, or this
  // scheme never does that.
  virtual bool give_up(OrderOutput& /*out*/) { return false; }
  // Every batch has come back: whatever still waits leaves.
  virtual void finish(OrderOutput& out) {
    while (give_up(out)) {
    }
  }
};

std::unique_ptr<OrderScheme> make_no_care();
// engine::BatchRing: nothing leaves before the oldest.
std::unique_ptr<OrderScheme> make_tickets();
// Zheng et al., "BLOP: Batch-Level Order Preserving for GPU-Accelerated Packet Processing", SIGCOMM 2017 posters: every
// frame is tagged with its batch's number; a batch that is not the expected one waits. The poster gives one up after a
// time that it does not say; here, the oldest gap is given up when the capacity is used up, which leaves the fewest
// frames out of order.
std::unique_ptr<OrderScheme> make_blop();
// DPDK's library, a window of `capacity` batches. Given up as above, which in 22.11 only an insertion beyond the window
// does.
std::unique_ptr<OrderScheme> make_rte_reorder();

}  // namespace sluice::cli::bench
