// A function whose work can be exchanged while its engine runs. So measurements take turns in rounds of a fraction of a
// second on one engine, one table and one set of frames, and a machine's slow seconds fall on all of them alike.
//
//   full       what the function does
//   zero_load  its stand_in() in place of the device's work (on a GPU: with an empty completion mark)
//   mac_loop   the yardstick: each lane's thread leaves the engine and runs the simplest forwarder there is, on the
//   same
//              port and queue: receive burst, source and destination MAC address of each frame, transmit burst, as
//              dpdk-testpmd's MAC mode does. CPU device only: on a GPU the frames may all be on their way.
//
// Every frame that a loop has had is looked at when it ends. It must carry the addresses of this very loop (or be one
// that the replay port has just written anew), and is then given back the address that the function expects.
//
// Thread-safety: set() and the counts from the control thread while lanes run. Cost: one virtual call more for each
// burst than the function alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/function.h"
#include "port/port.h"

namespace sluice::cli::bench {

enum class Work { full, zero_load, mac_loop };

class Switched : public engine::Function {
 public:
  explicit Switched(std::unique_ptr<engine::Function> inner) : inner_(std::move(inner)) {}
  // Before the engine starts. A memory replay port, whose frames go out where they came in.
  void use_port(port::Port& port);

  // Away from the loop: returns when every lane has left it and its frames have been looked at.
  void set(Work work);

  struct Loops {
    std::uint64_t frames = 0;     // forwarded by the loops
    std::uint64_t touched = 0;    // of those looked at, such as carried the loop's addresses
    std::uint64_t refreshed = 0;  // such as the replay port had just written anew
    std::uint64_t wrong = 0;      // neither
  };
  Loops loops() const;

  engine::BatchLayout layout() const override { return inner_->layout(); }
  Expected<void> prepare() override { return inner_->prepare(); }
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override { return inner_->attach(gpu, plan); }
  Expected<void> begin_cycle(device::GpuStream& stream) override { return inner_->begin_cycle(stream); }
  bool recomputable() const override { return inner_->recomputable(); }
  void lost(engine::Batch& batch) override { inner_->lost(batch); }
  void collect(engine::Burst& burst, engine::BatchWriter& writer) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  void compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) override;
  void stand_in(engine::Batch& batch) override { inner_->stand_in(batch); }
  void forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) override {
    inner_->forward(batch, first, count, out);
  }

 private:
  struct alignas(64) Queue {
    rte_mempool* pool = nullptr;
    std::atomic<std::uint64_t> frames{0}, touched{0}, refreshed{0}, wrong{0};
  };
  struct Addresses;
  void loop(std::uint16_t queue);
  void check(std::uint16_t queue, const Addresses& expected);

  std::unique_ptr<engine::Function> inner_;
  port::Port* port_ = nullptr;
  std::vector<Queue> queues_;
  std::atomic<Work> work_{Work::full};
  std::atomic<unsigned> looping_{0};    // lanes in the loop
  std::atomic<std::uint32_t> turn_{0};  // how often the loop was asked for: the mark of its frames
};

}  // namespace sluice::cli::bench
