// The batches of one lane and pass, in a ring indexed by ticket. Order out is order in by construction: tickets are
// handed out in the order of collecting, and the forwarder only ever takes the oldest; devices may finish in any order
// in between. Keeping order costs one load per batch, no work per frame, and there is no timeout after which order
// would be given up.
//
// A batch whose device no longer answers for it is put aside (docs/device-failure.md): the device may still write to
// it. A spare one with its rows and a copy of its areas takes its place in the ring, until the device says that it is
// done.
//
// Thread-safety: three roles, each of one thread, and a thread may have several. The collector calls open() and seal(),
// the forwarder release(), take_sealed(), put_aside() and look_aside(), the worker next_sealed(). in_use(), bytes() and
// all() are anyone's. oldest() is the forwarder's and, for when it was sealed, the collector's, who may be notified of
// one that is released meanwhile. A batch itself belongs to whoever acts on its state (engine/batch.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "engine/batch.h"

namespace sluice::engine {

// Gives zeroed memory that the device can address, 64-byte aligned, alive as long as the engine.
using DeviceMemory = std::function<Expected<void*>(std::size_t bytes)>;

class BatchRing {
 public:
  struct Shape {
    std::uint32_t lane;
    std::uint32_t batches;
    std::uint32_t capacity;
    std::vector<std::uint32_t> areas = {};  // bytes for each frame, of each element's area; 0: none
    std::uint32_t pass = 0;
    bool departs = false;  // it is the pass of departures
  };
  // `spare_memory`: of as many spare batches; what it gives need not be zeroed, nor pinned where no device will be
  // given these. Null: there are none.
  static Expected<std::unique_ptr<BatchRing>> create(const Shape& shape, const DeviceMemory& memory,
                                                     const DeviceMemory& spare_memory = nullptr);

  // The batch that collects, or null when all are in use.
  Batch* open();
  // Closes the open batch: it gets the state and belongs to whoever acts on that state.
  void seal(BatchState state);
  // The oldest batch that is not released, or null; the open batch does not count.
  Batch* oldest();
  void release();
  // For the worker of that device: the next sealed batch in ticket order. It is in_flight now, and the worker must move
  // it on to done, failed or lost. Batches that the lane computes itself, and another device's, are passed over. When a
  // lane moves to another device both workers may call it for a moment.
  Batch* next_sealed(std::uint32_t device = 0);

  // For the forwarder, of the oldest batch and a device that does not answer.
  // Whether the batch was sealed still, and is the lane's now.
  static bool take_sealed(Batch& batch);
  // The spare that stands in the place of the batch, which is with a device, from now on, and is the lane's. Null: none
  // is left. `batch` itself, its arrays and its areas are the device's until its state says done, failed or lost.
  Batch* put_aside(Batch& batch);
  // Keeps the frame's buffer from its pool as long as that batch is aside: the device may write to it. The frame goes
  // its way otherwise.
  void hold(const Batch& aside, rte_mbuf* frame);
  // Gives back what devices have answered for since.
  // Calls returned(batch, frames) for each.
  template <class Returned>
  void look_aside(const Returned& returned) {
    for (Beside& one : beside_) {
      if (one.aside && one.batch->state.load(std::memory_order_acquire) != BatchState::in_flight) {
        returned(*one.batch, give_back(one));
      }
    }
  }
  // How many batches and frames are aside.
  std::uint32_t batches_aside() const { return batches_aside_; }
  std::uint32_t frames_aside() const { return frames_aside_; }

  // Sealed and not released. Exact for the collector's and the forwarder's thread in the direction that matters to
  // them: it can only fall while the collector looks, and only rise while the forwarder does.
  std::uint32_t in_use() const {
    const std::uint64_t oldest = oldest_ticket_.load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(sealed_tickets_.load(std::memory_order_acquire) - oldest);
  }
  std::size_t bytes() const { return bytes_; }
  const std::vector<std::unique_ptr<Batch>>& all() const { return batches_; }

 private:
  // A batch that is in no slot: a spare, or put aside.
  struct Beside {
    Batch* batch;
    bool aside = false;
    std::vector<rte_mbuf*> held;
  };
  std::unique_ptr<Batch> make_batch(const Shape& shape, std::uint32_t slot);
  Expected<void> place_arrays(Batch& batch, const Shape& shape, const DeviceMemory& memory);
  std::uint32_t give_back(Beside& one);
  void copy(const Batch& from, Batch& to) const;
  Batch& at(std::uint64_t ticket) { return *slots_[ticket % slots_.size()].load(std::memory_order_acquire); }

  std::vector<std::unique_ptr<Batch>> batches_, spares_;
  std::vector<std::atomic<Batch*>> slots_;
  std::vector<std::uint32_t> areas_;
  std::vector<std::unique_ptr<rte_mbuf*[]>> mbufs_;
  std::vector<std::unique_ptr<Row[]>> rows_;
  std::vector<std::unique_ptr<Segment[]>> segments_;
  std::size_t bytes_ = 0;
  // The collector's.
  std::uint64_t next_ticket_ = 0;  // of the next batch to seal
  bool has_open_ = false;
  std::atomic<std::uint64_t> sealed_tickets_{0};  // next_ticket_, for the others
  // The forwarder's.
  alignas(64) std::atomic<std::uint64_t> oldest_ticket_{0};
  std::vector<Beside> beside_;
  std::uint32_t batches_aside_ = 0, frames_aside_ = 0;
  // The worker's.
  alignas(64) std::atomic<std::uint64_t> worker_ticket_{0};
};

}  // namespace sluice::engine
