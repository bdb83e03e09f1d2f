// Appends frames to the open batch of a lane. The lane makes sure that the batch has room for a whole burst beforehand.
#pragma once

#include "engine/batch.h"
#include "engine/burst.h"

namespace sluice::engine {

class BatchWriter {
 public:
  explicit BatchWriter(Batch& batch) : batch_(batch) {}

  // Appends frame i of the burst with the function's argument; returns its index in the batch.
  std::uint32_t append(const Burst& burst, unsigned i, std::uint32_t argument) {
    const std::uint32_t at = batch_.count++;
    rte_mbuf* frame = burst.frame(i);
    const std::uint32_t length = rte_pktmbuf_data_len(frame);
    batch_.mbuf[at] = frame;
    batch_.frame[at] = reinterpret_cast<std::uint64_t>(rte_pktmbuf_mtod(frame, std::uint8_t*));
    batch_.length[at] = static_cast<std::uint16_t>(length);
    batch_.argument[at] = argument;
    batch_.bytes += length;
    if (length > batch_.max_length) {
      batch_.max_length = length;
    }
    return at;
  }

  Batch& batch() { return batch_; }

 private:
  Batch& batch_;
};

}  // namespace sluice::engine
