// A device that takes a random time for each batch, and a scheme (order_schemes.h) that lets batches leave, in virtual
// time: what comes of their order and of the device's throughput. The sequence of calls is kept, so that what they cost
// a core can be measured afterwards without the model.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "bench/order_schemes.h"
#include "bench/spread.h"

namespace sluice::cli::bench {

struct OrderCase {
  // A batch takes 1 + a uniformly random part of `jitter` units; one comes in per unit, if there is capacity.
  double jitter = 0;
  unsigned capacity = 64;  // batches on the device or waiting, a power of two
  std::uint32_t batches = 20'000;
};

struct OrderRun {
  struct Step {
    enum class Kind : std::uint8_t { submit, complete, give_up } kind;
    std::uint32_t batch;
    std::uint32_t place;  // of its frames: one of as many as there is capacity
  };
  std::vector<Step> steps;
  double out_of_order = 0;    // share of the frames
  double units_a_batch = 0;   // 1: the device kept up with what came in
  std::uint64_t frames = 0;   // that left
  std::uint64_t gave_up = 0;  // times
};

Expected<OrderRun> run_model(OrderScheme& scheme, const OrderCase& one, std::vector<rte_mbuf*>& frames);

// Ticks a frame of the same calls in a row, once for each round: of a core that does nothing else. `frames` as above:
// order_batch_frames for each place.
Expected<Spread> measure_ticks(OrderScheme& scheme, const OrderCase& one, const OrderRun& run,
                               std::vector<rte_mbuf*>& frames, unsigned rounds);

}  // namespace sluice::cli::bench
