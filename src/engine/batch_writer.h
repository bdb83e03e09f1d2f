// Appends frames to the open batch of a lane. The lane makes sure that the batch has room for a whole burst beforehand.
#pragma once

#include <algorithm>

#include "engine/batch.h"
#include "engine/burst.h"

namespace sluice::engine {

// The rows of a batch, for the loop over a burst: while it exists, `count`, `bytes` and `max_length` of the batch are
// behind; they follow when it ends. So the loop over the frames only stores. One at a time for a batch.
class BatchRows {
 public:
  explicit BatchRows(Batch& batch) : batch_(batch), count_(batch.count) {}
  ~BatchRows() {
    std::uint32_t bytes = 0;
    std::uint16_t longest = 0;
    for (std::uint32_t i = batch_.count; i < count_; ++i) {
      bytes += batch_.length[i];
      longest = std::max(longest, batch_.length[i]);
    }
    batch_.count = count_;
    batch_.bytes += bytes;
    batch_.max_length = std::max<std::uint32_t>(batch_.max_length, longest);
  }
  BatchRows(const BatchRows&) = delete;
  BatchRows& operator=(const BatchRows&) = delete;

  // Appends frame i of the burst with the function's argument; returns its index in the batch.
  [[gnu::always_inline]] std::uint32_t append(const Burst& burst, unsigned i, std::uint32_t argument) {
    return append(burst.frame(i), burst.data(i), burst.length(i), argument);
  }
  // The same for a caller that has read the frame's place and length already.
  [[gnu::always_inline]] std::uint32_t append(rte_mbuf* frame, const std::uint8_t* data, std::uint32_t length,
                                              std::uint32_t argument) {
    const std::uint32_t at = count_++;
    batch_.mbuf[at] = frame;
    batch_.frame[at] = reinterpret_cast<std::uint64_t>(data);
    batch_.length[at] = static_cast<std::uint16_t>(length);
    batch_.argument[at] = argument;
    return at;
  }

 private:
  Batch& batch_;
  std::uint32_t count_;
};

class BatchWriter {
 public:
  explicit BatchWriter(Batch& batch) : batch_(batch) {}

  std::uint32_t append(const Burst& burst, unsigned i, std::uint32_t argument) {
    return BatchRows(batch_).append(burst, i, argument);
  }

  Batch& batch() { return batch_; }

 private:
  Batch& batch_;
};

}  // namespace sluice::engine
