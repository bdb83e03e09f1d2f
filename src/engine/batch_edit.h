// Makes a frame of a batch longer or shorter, at its front or its end. Each call changes the mbuf and the batch's
// arrays together. The mbuf has one segment. Metadata that was read from the frame before may be wrong afterwards.
//
// Thread-safety: the thread that owns the batch. Cost: some stores; nothing is copied.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "engine/batch.h"

namespace sluice::engine {

// Bytes from the frame's first byte to the end of its buffer; and free bytes in front of the frame.
inline std::uint32_t capacity_from(const Batch& batch, std::uint32_t i) {
  return std::uint32_t{batch.mbuf[i]->buf_len} - batch.mbuf[i]->data_off;
}
inline std::uint32_t capacity_in_front(const Batch& batch, std::uint32_t i) {
  return batch.mbuf[i]->data_off;
}

// Sets the frame's length to `bytes`, at most capacity_from(). Bytes that are added have any value.
inline void set_length(Batch& batch, std::uint32_t i, std::uint32_t bytes) {
  rte_mbuf& buffer = *batch.mbuf[i];
  batch.length[i] = buffer.data_len = static_cast<std::uint16_t>(bytes);
  buffer.pkt_len = bytes;
}

// Adds `bytes` in front of the frame and returns the frame's new first byte. Null: there is no capacity, and nothing
// has changed.
inline std::uint8_t* prepend(Batch& batch, std::uint32_t i, std::uint32_t bytes) {
  rte_mbuf& buffer = *batch.mbuf[i];
  if (bytes > buffer.data_off || bytes + batch.length[i] > 0xffff) return nullptr;
  buffer.data_off = static_cast<std::uint16_t>(buffer.data_off - bytes);
  batch.frame[i] -= bytes;
  set_length(batch, i, batch.length[i] + bytes);
  return batch.data(i);
}

// Removes `bytes` from the front of a frame that is longer, and returns the frame's new first byte.
inline std::uint8_t* shrink_front(Batch& batch, std::uint32_t i, std::uint32_t bytes) {
  rte_mbuf& buffer = *batch.mbuf[i];
  buffer.data_off = static_cast<std::uint16_t>(buffer.data_off + bytes);
  batch.frame[i] += bytes;
  set_length(batch, i, batch.length[i] - bytes);
  return batch.data(i);
}

// Adds a frame that the element has made, in one segment and complete, as the batch's last row: it goes on, and `port`
// is its Row::port. For classify() in the pass of departures alone (traits.h): the row is classified next. The batch
// takes the frame over. False: there is no capacity, and the frame is still the caller's.
inline bool append_row(Batch& batch, rte_mbuf* made, std::uint16_t port) {
  if (batch.count + batch.expected >= batch.capacity) return false;
  const std::uint32_t i = batch.count++;
  batch.mbuf[i] = made;
  batch.frame[i] = reinterpret_cast<std::uint64_t>(rte_pktmbuf_mtod(made, const void*));
  batch.length[i] = made->data_len;
  batch.row[i] = {Fate::goes_on, packet::no_reason, port};
  batch.bytes += made->data_len;
  batch.max_length = batch.max_length > made->data_len ? batch.max_length : made->data_len;
  return true;
}

}  // namespace sluice::engine
