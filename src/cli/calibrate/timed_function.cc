#include "cli/calibrate/timed_function.h"

#include <rte_cycles.h>

#include "engine/batch_writer.h"
#include "engine/emitter.h"

namespace sluice::cli {

Expected<void> TimedFunction::prepare_lanes(const engine::LanePlan& plan) {
  for (std::uint32_t lane = 0; lane < plan.lanes; ++lane) lanes_.push_back(std::make_unique<Lane>());
  return inner_->prepare_lanes(plan);
}

void TimedFunction::collect(engine::Burst& burst, engine::BatchWriter& batch) {
  Lane& lane = *lanes_[batch.batch().lane];
  const std::uint64_t before = rte_rdtsc();
  const bool first = batch.batch().count == 0;
  if (!traffic_.empty()) {
    for (unsigned i = 0; i < burst.size(); ++i) traffic_.write(batch.batch().lane, burst.frame(i));
  }
  const std::uint64_t now = rte_rdtsc();
  lane.begin = first ? now : lane.begin + (now - before);
  inner_->collect(burst, batch);
  if (const std::uint64_t took = rte_rdtsc() - now; took <= longest_round_) lane.rounds.add(took, 1);
}

void TimedFunction::forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) {
  Lane& lane = *lanes_[batch.lane];
  if (first == 0) lane.forwarding = rte_rdtsc();
  inner_->forward(batch, first, count, out);
  if (first + count == batch.count) {
    const std::uint64_t now = rte_rdtsc();
    lane.forwardings.add(now - lane.forwarding, 1);
    lane.times.add(now - lane.begin, 1);
    lane.bytes.add(batch.bytes, 1);
  }
}

TimedFunction::Batches TimedFunction::batches() const {
  Batches all;
  for (const auto& lane : lanes_) {
    all.times.add(lane->times);
    all.bytes.add(lane->bytes);
    all.rounds.add(lane->rounds);
    all.forwardings.add(lane->forwardings);
  }
  return all;
}

}  // namespace sluice::cli
