#include "bench/frame_order.h"

#include <rte_mbuf.h>

#include "engine/counters.h"
#include "port/replay_port.h"

namespace sluice::cli::bench {

// Numbers wrap: two that are under way at once are never half of the range apart.
struct alignas(64) FrameOrder::Lane {
  std::vector<std::uint32_t> number;  // of each frame, when it came last
  std::uint32_t came = 0;
  alignas(64) std::uint32_t left = 0;  // the number of the last one; written by the thread that sends
  engine::Counter frames, out_of_order;
};

FrameOrder::FrameOrder(unsigned lanes, unsigned frames) {
  for (unsigned lane = 0; lane < lanes; ++lane) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->number.resize(frames);
  }
}

FrameOrder::~FrameOrder() = default;

std::uint64_t FrameOrder::left() const {
  std::uint64_t sum = 0;
  for (const auto& lane : lanes_) sum += lane->frames.get();
  return sum;
}

std::uint64_t FrameOrder::out_of_order() const {
  std::uint64_t sum = 0;
  for (const auto& lane : lanes_) sum += lane->out_of_order.get();
  return sum;
}

void FrameOrder::came(std::uint32_t lane, const rte_mbuf& frame) {
  Lane& of = *lanes_[lane];
  of.number[port::ReplayPort::frame_index(&frame)] = ++of.came;
}

void FrameOrder::leaves(std::uint32_t lane, const rte_mbuf& frame) {
  Lane& of = *lanes_[lane];
  const std::uint32_t number = of.number[port::ReplayPort::frame_index(&frame)];
  of.frames.add(1);
  if (static_cast<std::int32_t>(number - of.left) <= 0) [[unlikely]] {
    of.out_of_order.add(1);
  } else {
    of.left = number;
  }
}

void FrameOrder::admit(engine::Batch& batch, engine::Span span) {
  if (batch.pass != 0) return;  // what has come before
  for (std::uint32_t i = span.first; i < span.end(); ++i) came(batch.lane, *batch.mbuf[i]);
}

unsigned FrameOrder::leave(std::uint32_t lane, std::uint16_t /*port*/, rte_mbuf** frames, unsigned count,
                           engine::Emitter& /*out*/) {
  for (unsigned i = 0; i < count; ++i) leaves(lane, *frames[i]);
  return count;
}

}  // namespace sluice::cli::bench
