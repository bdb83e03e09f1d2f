#include "engine/engine_stats.h"

#include <algorithm>

#include "engine/compute_helpers.h"
#include "engine/lane.h"
#include "engine/worker.h"

namespace sluice::engine {

void EngineStats::Stalls::add(const StallWatch& watch) {
  times += watch.times();
  ticks += watch.ticks();
  longest = std::max(longest, watch.longest());
}

EngineStats::Lane& EngineStats::Lane::operator+=(const Lane& other) {
  for (auto field :
       {&Lane::rx_frames,       &Lane::rx_bytes,       &Lane::tx_frames,   &Lane::tx_bytes,    &Lane::injected,
        &Lane::emitted,         &Lane::cloned,         &Lane::consumed,    &Lane::punted,      &Lane::dropped,
        &Lane::in_flight,       &Lane::batches_cpu,    &Lane::frames_cpu,  &Lane::batches_gpu, &Lane::frames_gpu,
        &Lane::batches_rescued, &Lane::frames_rescued, &Lane::sealed_full, &Lane::misses,      &Lane::misses_stalled,
        &Lane::frames_aside,    &Lane::receive_stalls, &Lane::empty_polls, &Lane::measured,    &Lane::collecting,
        &Lane::forwarding}) {
    this->*field += other.*field;
  }
  longest_rescue = std::max(longest_rescue, other.longest_rescue);
  return *this;
}

void EngineStats::add(const engine::Lane& lane, int core) {
  const LaneCounters& in = lane.collector_counters();
  const LaneCounters& out = lane.forwarder_counters();
  Lane one;
  one.port = lane.parts().port;
  one.queue = lane.parts().queue;
  one.core = core;
  // What can only fall out of balance in one direction is read first, so that a running lane looks at worst in flight.
  for (std::size_t p = 0; p < ports.size(); ++p) {
    const std::uint64_t frames = out.tx_frames[p].get();
    const std::uint64_t bytes = out.tx_bytes[p].get();
    one.tx_frames += frames;
    one.tx_bytes += bytes;
    ports[p].tx_frames += frames;
    ports[p].tx_bytes += bytes;
  }
  for (std::size_t r = 0; r < drops.size(); ++r) {
    const std::uint64_t n = out.drops[r].get() + in.drops[r].get();
    one.dropped += n;
    drops[r] += n;
    ports[one.port].drops[r] += n;
    answers[r] += out.answers[r].get();
  }
  one.punted = out.punted_frames.get() + in.punted_frames.get();
  one.consumed = out.consumed_frames.get() + in.consumed_frames.get();
  one.injected = out.injected_frames.get();
  one.emitted = out.emitted_frames.get();
  one.cloned = out.cloned_frames.get();
  one.in_flight = lane.in_flight();
  one.rx_frames = in.rx_frames.get();
  one.rx_bytes = in.rx_bytes.get();
  one.batches_cpu = in.batches_cpu.get() + out.batches_cpu.get();
  one.frames_cpu = in.frames_cpu.get() + out.frames_cpu.get();
  one.batches_gpu = in.batches_gpu.get() + out.batches_gpu.get();
  one.frames_gpu = in.frames_gpu.get() + out.frames_gpu.get();
  one.batches_rescued = out.batches_rescued.get();
  one.frames_rescued = out.frames_rescued.get();
  one.frames_aside = out.frames_aside.get();
  one.longest_rescue = out.longest_rescue.get();
  one.sealed_full = in.sealed_full.get();
  one.receive_stalls = in.receive_stalls.get();
  one.empty_polls = in.empty_polls.get();
  one.misses = out.misses.get();
  one.misses_stalled = out.misses_stalled.get();
  one.measured = out.measured.get();
  one.collecting = in.busy.get();
  one.forwarding = out.busy.get();
  ports[one.port].rx_frames += one.rx_frames;
  ports[one.port].rx_bytes += one.rx_bytes;
  latency.add(lane.latency());
  total += one;
  lanes.push_back(one);
}

void EngineStats::add(const Worker& worker) {
  const WorkerCounters& counters = worker.counters();
  gpus.push_back({counters.batches.get(), counters.frames.get()});
  slow_launches += counters.slow_launches.get();
  launches += counters.launches.get();
  launching += counters.busy.get();
  device_time.add(worker.device_time());
  cycles += counters.cycles.get();
  late_cycles += counters.late_cycles.get();
  overruns += counters.overruns.get();
}

void EngineStats::add(const ComputeHelper& helper) {
  helpers.push_back({helper.core(), helper.spans().get(), helper.jobs().get(), helper.busy().get()});
  helpers_stalls.add(helper.stalls());
}

std::int64_t EngineStats::imbalance() const {
  std::int64_t sum =
      static_cast<std::int64_t>(total.rx_frames + total.injected + total.emitted + total.cloned) -
      static_cast<std::int64_t>(total.tx_frames + total.consumed + total.punted + total.dropped + total.in_flight);
  for (const JobCounters& kind : jobs) sum += kind.imbalance();
  return sum;
}

}  // namespace sluice::engine
