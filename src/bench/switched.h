// An element whose work can be exchanged while its engine runs. So measurements take turns in rounds of a fraction of a
// second on one engine, one table and one set of frames, and a machine's slow seconds fall on all of them alike.
//
//   full       what the element does
//   zero_load  its null_result() in place of the device's work (on a GPU: with an empty completion mark)
//   mac_loop   the yardstick: each lane's thread leaves the engine and runs the simplest forwarder there is, on
//              the same port and queue: receive burst, source and destination MAC address of each frame, transmit
//              burst, as dpdk-testpmd's MAC mode does. CPU device only: on a GPU the frames may all be on their way.
//
// Every frame that a loop has had is looked at when it ends. It must carry the addresses of this very loop (or be one
// that the replay port has just written anew), and is then given back the address that the element expects.
//
// Thread-safety: set() and the counts from the control thread while lanes run. Cost: one virtual call more for each
// burst than the element alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/wrapped_element.h"
#include "port/port.h"

namespace sluice::cli::bench {

enum class Work { full, zero_load, mac_loop };

class Switched final : public engine::WrappedElement {
 public:
  explicit Switched(std::unique_ptr<engine::Element> inner)
      : WrappedElement(std::move(inner)), null_(this->inner().trait<engine::NullDevice>()) {}
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

  // Never a part of the fused kernel: what is launched is this one's.
  void* find_trait(std::string_view name) override;
  void classify(engine::Batch& batch, engine::Span span) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  void compute(engine::Batch& batch, engine::Span span) override;

 private:
  struct alignas(64) Queue {
    rte_mempool* pool = nullptr;
    std::atomic<std::uint64_t> frames{0}, touched{0}, refreshed{0}, wrong{0};
  };
  struct Addresses;
  void loop(std::uint16_t queue);
  void check(std::uint16_t queue, const Addresses& expected);

  void null_result(engine::Batch& batch);

  engine::NullDevice* const null_;  // the element's; null: it has none
  port::Port* port_ = nullptr;
  std::vector<Queue> queues_;
  std::atomic<Work> work_{Work::full};
  std::atomic<unsigned> looping_{0};    // lanes in the loop
  std::atomic<std::uint32_t> turn_{0};  // how often the loop was asked for: the mark of its frames
};

}  // namespace sluice::cli::bench
