// A batch of made-up frames for tests and benches of elements: frames in objects of one size, as a mempool's mbufs
// are, in pinned memory when there is a GPU. Everything around the frames is known, so that a stray write is seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "device/gpu.h"
#include "engine/batch.h"

namespace sluice::function {

enum class FrameOrder { ascending, descending, runs_of_32, shuffled };

struct BatchShape {
  std::uint32_t count = 256;
  std::uint32_t object_bytes = 2304;  // as DPDK's default mbuf: 128 header, 128 headroom, 2,048 data
  std::uint32_t headroom = 256;       // from the object's beginning to the frame
  FrameOrder order = FrameOrder::ascending;
  std::function<std::uint32_t(std::mt19937&)> size = [](std::mt19937& random) {
    return std::uniform_int_distribution<std::uint32_t>(14, 1514)(random);
  };
  std::uint64_t seed = 1;
};

class TestBatch {
 public:
  // Memory comes from `gpu` and lives as long as it, or from the heap when it is null.
  TestBatch(device::Gpu* gpu, const BatchShape& shape) : gpu_(gpu), shape_(shape) {
    std::mt19937 random(static_cast<unsigned>(shape.seed));
    memory_bytes_ = std::size_t{shape.count} * shape.object_bytes;
    memory_ = static_cast<std::uint8_t*>(allocate(memory_bytes_));
    fill(random);
    batch_.frame = static_cast<std::uint64_t*>(allocate(shape.count * 8));
    batch_.length = static_cast<std::uint16_t*>(allocate(shape.count * 2));
    verdicts_ = static_cast<std::uint32_t*>(allocate(shape.count * 4));
    std::fill_n(verdicts_, shape.count, 0xABABABAB);
    batch_.area[0] = reinterpret_cast<std::byte*>(verdicts_);
    rows_.resize(shape.count);
    batch_.row = rows_.data();
    batch_.capacity = batch_.count = shape.count;
    const std::vector<std::uint32_t> objects = ordered(random);
    for (std::uint32_t i = 0; i < shape.count; ++i) {
      const std::uint32_t size = shape.size(random);
      if (shape.headroom + size > shape.object_bytes) throw std::logic_error("frame larger than its object");
      batch_.frame[i] =
          reinterpret_cast<std::uint64_t>(memory_) + std::uint64_t{objects[i]} * shape.object_bytes + shape.headroom;
      batch_.length[i] = static_cast<std::uint16_t>(size);
      batch_.bytes += size;
      batch_.max_length = std::max(batch_.max_length, size);
    }
  }

  engine::Batch& batch() { return batch_; }
  // The area of an element with 4 bytes for each frame.
  std::span<std::uint32_t> verdicts() { return {verdicts_, shape_.count}; }
  // All objects, frames and what is around them.
  std::span<const std::uint8_t> memory() const { return {memory_, memory_bytes_}; }

 private:
  void* allocate(std::size_t bytes) {
    if (gpu_ != nullptr) {
      auto memory = gpu_->allocate_host(bytes);
      if (!memory) throw std::runtime_error(memory.error().message);
      return *memory;
    }
    heap_.emplace_back(std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free);
    return heap_.back().get();
  }

  void fill(std::mt19937& random) {
    std::vector<std::uint32_t> pattern(16'381);
    for (auto& word : pattern) word = random();
    const std::size_t pattern_bytes = pattern.size() * 4;
    for (std::size_t at = 0; at < memory_bytes_; at += pattern_bytes)
      std::memcpy(memory_ + at, pattern.data(), std::min(pattern_bytes, memory_bytes_ - at));
  }

  std::vector<std::uint32_t> ordered(std::mt19937& random) const {
    std::vector<std::uint32_t> objects(shape_.count);
    for (std::uint32_t i = 0; i < shape_.count; ++i) objects[i] = i;
    if (shape_.order == FrameOrder::descending) std::reverse(objects.begin(), objects.end());
    if (shape_.order == FrameOrder::shuffled) std::shuffle(objects.begin(), objects.end(), random);
    if (shape_.order == FrameOrder::runs_of_32) {
      std::vector<std::uint32_t> runs(shape_.count / 32);
      for (std::uint32_t r = 0; r < runs.size(); ++r) runs[r] = r;
      std::shuffle(runs.begin(), runs.end(), random);
      for (std::uint32_t i = 0; i < runs.size() * 32; ++i) objects[i] = runs[i / 32] * 32 + i % 32;
    }
    return objects;
  }

  device::Gpu* gpu_;
  BatchShape shape_;
  engine::Batch batch_;
  std::vector<engine::Row> rows_;
  std::uint32_t* verdicts_ = nullptr;
  std::uint8_t* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> heap_;
};

}  // namespace sluice::function
