// A frame of a batch that gets longer or shorter, at its front or its end. Its mbuf, which is one piece of memory, and
// the batch's arrays stay the same story. Metadata of headers that were parsed before may be wrong then.
//
// Thread-safety: the batch's owner. Cost: some stores. Nothing is copied.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "engine/batch.h"

namespace sluice::engine {

// Bytes from the frame's first one to the end of its buffer, and in front of the frame.
inline std::uint32_t capacity_from(const Batch& batch, std::uint32_t i) {
  return std::uint32_t{batch.mbuf[i]->buf_len} - batch.mbuf[i]->data_off;
}
inline std::uint32_t capacity_in_front(const Batch& batch, std::uint32_t i) {
  return batch.mbuf[i]->data_off;
}

// The frame ends behind `bytes`, which are at most capacity_from().
inline void set_length(Batch& batch, std::uint32_t i, std::uint32_t bytes) {
  rte_mbuf& buffer = *batch.mbuf[i];
  batch.length[i] = buffer.data_len = static_cast<std::uint16_t>(bytes);
  buffer.pkt_len = bytes;
}

// So many bytes more in front of the frame, whose first one is returned. Null: there is no capacity for them, and
// nothing has changed.
inline std::uint8_t* prepend(Batch& batch, std::uint32_t i, std::uint32_t bytes) {
  rte_mbuf& buffer = *batch.mbuf[i];
  if (bytes > buffer.data_off || bytes + batch.length[i] > 0xffff) return nullptr;
  buffer.data_off = static_cast<std::uint16_t>(buffer.data_off - bytes);
  batch.frame[i] -= bytes;
  set_length(batch, i, batch.length[i] + bytes);
  return batch.data(i);
}

// So many bytes less there, of a frame that is longer than that. Returns its first byte then.
inline std::uint8_t* shrink_front(Batch& batch, std::uint32_t i, std::uint32_t bytes) {
  rte_mbuf& buffer = *batch.mbuf[i];
  buffer.data_off = static_cast<std::uint16_t>(buffer.data_off + bytes);
  batch.frame[i] += bytes;
  set_length(batch, i, batch.length[i] - bytes);
  return batch.data(i);
}

}  // namespace sluice::engine
