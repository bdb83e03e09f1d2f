#include "bench/checked.h"

#include <cstring>
#include <vector>

#include "engine/batch_writer.h"
#include "engine/emitter.h"
#include "function/route/route_batch.h"

namespace sluice::cli::bench {

Expected<void> Checked::launch(engine::Batch& batch, device::GpuStream& stream) {
  if (checking_.load(std::memory_order_relaxed)) {
    clear_answers(batch, 0xA5);
  }
  return inner_->launch(batch, stream);
}

void Checked::compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) {
  if (checking_.load(std::memory_order_relaxed)) {
    clear_answers(batch, 0xA5);
  }
  inner_->compute(batch, first, count);
}

void Checked::forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) {
  if (first == 0 && checking_.load(std::memory_order_relaxed)) {
    compare(batch);
  }
  inner_->forward(batch, first, count, out);
}

// So that an answer that the device did not write cannot pass.
void Checked::clear_answers(engine::Batch& batch, int value) {
  std::memset(batch.verdict, value, batch.count * sizeof *batch.verdict);
  if (inner_->layout().extra_bytes_per_frame == function::route_extra_per_frame) {
    std::memset(function::answers6(batch), value, batch.extra_count * sizeof(lookup::NextHopId));
  }
}

void Checked::compare(engine::Batch& batch) {
  const std::vector<std::uint32_t> verdicts(batch.verdict, batch.verdict + batch.count);
  const std::uint32_t extra = inner_->layout().extra_bytes_per_frame * batch.capacity;
  const std::vector<std::byte> area(batch.extra, batch.extra + extra);
  clear_answers(batch, 0x5A);
  inner_->compute(batch, 0, batch.count);
  // A batch of IPv6 frames answers in its extra area and leaves the verdicts alone.
  std::uint64_t wrong_here =
      batch.extra_count == batch.count && batch.count != 0 && extra != 0
          ? 0
          : static_cast<std::uint64_t>(
                std::memcmp(verdicts.data(), batch.verdict, verdicts.size() * sizeof(std::uint32_t)) != 0);
  wrong_here += static_cast<std::uint64_t>(extra != 0 && std::memcmp(area.data(), batch.extra, extra) != 0);
  wrong.fetch_add(wrong_here);
  checked.fetch_add(batch.count);
}

}  // namespace sluice::cli::bench
