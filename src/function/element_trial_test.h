// For tests of an element alone: frames in a batch that no lane has, and each call of the contract by itself.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "device/gpu.h"
#include "engine/element.h"
#include "engine/emitter.h"
#include "packet/builder.h"

namespace sluice::function {

class ElementTrial {
 public:
  struct Place {
    std::uint32_t lane = 0, slot = 0;
    device::Gpu* gpu = nullptr;  // whose memory the area is in; null: the heap's
    std::uint32_t capacity = 64;
  };
  ElementTrial(engine::Element& element, std::vector<packet::Bytes> frames, Place place)
      : element_(element), frames_(std::move(frames)), rows_(place.capacity), counters_() {
    for (packet::Bytes& frame : frames_) {
      addresses_.push_back(reinterpret_cast<std::uint64_t>(frame.data()));
      lengths_.push_back(static_cast<std::uint16_t>(frame.size()));
    }
    addresses_.resize(place.capacity);
    lengths_.resize(place.capacity);
    batch_.frame = addresses_.data();
    batch_.length = lengths_.data();
    batch_.row = rows_.data();
    batch_.capacity = place.capacity;
    batch_.count = static_cast<std::uint32_t>(frames_.size());
    batch_.lane = place.lane;
    batch_.slot = place.slot;
    const std::size_t bytes = (std::size_t{element.shape().bytes_per_frame} * place.capacity + 63) / 64 * 64;
    if (place.gpu != nullptr) {
      batch_.area[0] = static_cast<std::byte*>(place.gpu->allocate_host(bytes).value());
    } else {
      area_.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
      batch_.area[0] = area_.get();
    }
  }
  ElementTrial(engine::Element& element, std::vector<packet::Bytes> frames)
      : ElementTrial(element, std::move(frames), Place()) {}

  engine::Batch& batch() { return batch_; }

  // Rows [first, end) come; those from 0 on begin the batch anew.
  void classify(std::uint32_t first, std::uint32_t end) {
    batch_.count = end;
    std::fill(rows_.begin() + first, rows_.begin() + end, engine::Row());
    element_.classify(batch_, {first, end - first});
  }
  void classify() { classify(0, static_cast<std::uint32_t>(frames_.size())); }
  void compute(std::uint32_t first, std::uint32_t end) { element_.compute(batch_, {first, end - first}); }
  void compute() { compute(0, batch_.count); }
  // All rows: why each is dropped.
  std::vector<packet::Reason> apply() {
    element_.apply(batch_, {0, batch_.count}, emitter_);
    std::vector<packet::Reason> reasons;
    for (std::uint32_t i = 0; i < batch_.count; ++i) {
      reasons.push_back(rows_[i].fate == engine::Fate::dropped ? rows_[i].reason : packet::no_reason);
    }
    return reasons;
  }

 private:
  engine::Element& element_;
  std::vector<packet::Bytes> frames_;
  std::vector<std::uint64_t> addresses_;
  std::vector<std::uint16_t> lengths_;
  std::vector<engine::Row> rows_;
  std::unique_ptr<std::byte, decltype(&std::free)> area_{nullptr, &std::free};
  engine::Batch batch_;
  engine::LaneCounters counters_;
  engine::Emitter emitter_{{}, 0, counters_, nullptr};
};

// Why the element drops this frame, when it is the only one.
inline packet::Reason judge_alone(engine::Element& element, packet::Bytes frame) {
  ElementTrial trial(element, {std::move(frame)});
  trial.classify();
  trial.compute();
  return trial.apply().front();
}

}  // namespace sluice::function
