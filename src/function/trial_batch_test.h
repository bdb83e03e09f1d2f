// For tests of elements that change frames: a batch whose frames are in buffers of mbufs, and calls as a worker makes
// them.
#pragma once

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "device/gpu.h"
#include "engine/element.h"
#include "engine/traits.h"
#include "packet/builder.h"

namespace sluice::function {

class TrialBatch {
 public:
  // `gpu`: whose memory it is, which lives as long as that; null: the heap's. `area_bytes`: of the element, for each
  // frame.
  TrialBatch(device::Gpu* gpu, std::uint32_t area_bytes, std::uint32_t capacity, std::uint32_t buffer_bytes)
      : gpu_(gpu),
        buffer_bytes_(buffer_bytes),
        mbufs_(capacity),
        pointers_(capacity),
        addresses_(capacity),
        lengths_(capacity),
        rows_(capacity) {
    batch_.frame = addresses_.data();
    batch_.length = lengths_.data();
    batch_.mbuf = pointers_.data();
    batch_.row = rows_.data();
    batch_.area[0] = static_cast<std::byte*>(allocate(std::size_t{capacity} * area_bytes));
    batch_.capacity = capacity;
    buffers_ = static_cast<std::uint8_t*>(allocate(std::size_t{capacity} * buffer_bytes));
  }
  TrialBatch(const TrialBatch&) = delete;

  engine::Batch& batch() { return batch_; }
  std::vector<engine::Row>& rows() { return rows_; }
  const rte_mbuf& mbuf(std::uint32_t i) const { return mbufs_[i]; }

  void clear() {
    batch_.count = 0;
    std::fill_n(buffers_, std::size_t{batch_.capacity} * buffer_bytes_, std::uint8_t{0xEE});
  }
  // A row that goes on.
  void add(const packet::Bytes& frame, std::uint16_t headroom, std::uint16_t port) {
    ASSERT_LT(batch_.count, batch_.capacity);
    const std::uint32_t i = batch_.count++;
    std::uint8_t* const begin = buffers_ + std::size_t{i} * buffer_bytes_;
    std::ranges::copy(frame, begin + headroom);
    rte_mbuf& mbuf = mbufs_[i] = {};
    mbuf.buf_addr = begin;
    mbuf.buf_len = static_cast<std::uint16_t>(buffer_bytes_);
    mbuf.data_off = headroom;
    mbuf.nb_segs = 1;
    mbuf.data_len = lengths_[i] = static_cast<std::uint16_t>(frame.size());
    mbuf.pkt_len = mbuf.data_len;
    pointers_[i] = &mbuf;
    addresses_[i] = reinterpret_cast<std::uint64_t>(begin + headroom);
    rows_[i] = {engine::Fate::goes_on, packet::no_reason, port};
  }
  packet::Bytes frame(std::uint32_t i) const { return {batch_.data(i), batch_.data(i) + batch_.length[i]}; }

 private:
  void* allocate(std::size_t bytes) {
    if (gpu_ != nullptr) return gpu_->allocate_host(bytes).value();
    memory_.emplace_back(std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free);
    return memory_.back().get();
  }

  device::Gpu* const gpu_;
  const std::uint32_t buffer_bytes_;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory_;
  std::uint8_t* buffers_ = nullptr;
  std::vector<rte_mbuf> mbufs_;
  std::vector<rte_mbuf*> pointers_;
  std::vector<std::uint64_t> addresses_;
  std::vector<std::uint16_t> lengths_;
  std::vector<engine::Row> rows_;
  engine::Batch batch_;
};

// Until the GPU is done.
inline void launch(engine::Element& element, engine::Batch& batch, device::Gpu& gpu) {
  device::GpuStream& stream = gpu.stream(1);
  const auto launched = element.launch(batch, stream);
  EXPECT_TRUE(launched) << (launched ? "" : launched.error().message);
  EXPECT_TRUE(stream.mark());
  device::MarkState state = device::MarkState::pending;
  while (state == device::MarkState::pending) state = stream.poll();
  EXPECT_EQ(state, device::MarkState::done) << gpu.why();
}

inline std::uint64_t metric_of(engine::Element& element, std::string_view name) {
  for (const engine::Metric& metric : element.trait<engine::Metrics>()->metrics()) {
    if (metric.name == name) return metric.value;
  }
  ADD_FAILURE() << name;
  return 0;
}

}  // namespace sluice::function
