// touch/MIX/FRAMES/STREAMS: launch() alone, share of the copy engine's ceiling for the way up.
#include "device/byte_sum.h"
#include "function/bench_rig.h"
#include "function/touch/touch.h"

namespace sluice::function {
namespace {

bool check(engine::Batch& batch, const std::function<bool()>& launch) {
  std::fill_n(batch.verdict, batch.count, 0xABABABABu);
  if (!launch()) return false;
  for (std::uint32_t i = 0; i < batch.count; ++i)
    if (batch.verdict[i] != device::sum_bytes(reinterpret_cast<const std::uint8_t*>(batch.frame[i]), batch.length[i]))
      return false;
  return true;
}

void measure(benchmark::State& state, const std::string& mix, std::uint32_t frames, unsigned streams) {
  BenchRig& rig = BenchRig::get();
  if (!rig.problem().empty()) return state.SkipWithError(rig.problem().c_str());
  Touch touch({0});
  rig.measure(state, touch, mix, frames, streams, rig.ceilings().large.up, check);
}

const bool registered = [] {
  for (const char* mix : {"64", "256", "608", "1500", "heavy-tail"})
    for (std::uint32_t frames : {1024u, 4096u, BenchRig::frames})
      for (unsigned streams : {1u, 2u, 4u, 8u}) {
        const std::string title =
            std::string("touch/") + mix + "/" + std::to_string(frames) + "/" + std::to_string(streams);
        benchmark::RegisterBenchmark(title.c_str(), measure, mix, frames, streams)
            ->UseManualTime()
            ->MinTime(0.03)
            ->Unit(benchmark::kMillisecond);
      }
  return true;
}();

}  // namespace
}  // namespace sluice::function
