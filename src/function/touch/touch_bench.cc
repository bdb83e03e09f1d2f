// touch/MIX/FRAMES/STREAMS/IN_PLACE: launch() alone, share of the copy engine's ceiling for the way up. IN_PLACE:
// percent of a copied batch's frames that a kernel reads in place.
#include "device/byte_sum.h"
#include "function/bench_rig.h"
#include "function/touch/touch.h"

namespace sluice::function {
namespace {

bool check(engine::Batch& batch, const std::function<bool()>& launch) {
  auto* const verdict = reinterpret_cast<std::uint32_t*>(batch.area[0]);
  std::fill_n(verdict, batch.count, 0xABABABABu);
  if (!launch()) return false;
  for (std::uint32_t i = 0; i < batch.count; ++i)
    if (verdict[i] != device::sum_bytes(reinterpret_cast<const std::uint8_t*>(batch.frame[i]), batch.length[i]))
      return false;
  return true;
}

void measure(benchmark::State& state, TouchPath path, const std::string& mix, std::uint32_t frames, unsigned streams) {
  BenchRig& rig = BenchRig::get();
  if (!rig.problem().empty()) return state.SkipWithError(rig.problem().c_str());
  static std::map<TouchPath, std::unique_ptr<Touch>> touches;  // their device memory lives as long as the GPU
  auto& touch = touches[path];
  if (!touch) {
    touch = std::make_unique<Touch>(std::vector<std::uint16_t>{0}, path);
    if (auto ok = touch->attach(rig.gpu(), rig.plan()); !ok) return state.SkipWithError(ok.error().message.c_str());
  }
  rig.measure(state, *touch, mix, frames, streams, rig.ceilings().large.up, check);
}

const bool registered = [] {
  const std::pair<TouchPath, const char*> paths[] = {
      {TouchPath::automatic, "auto"}, {TouchPath::copy, "copy"}, {TouchPath::direct, "direct"}};
  for (const auto& [path, name] : paths)
    for (const char* mix : {"64", "256", "608", "1500", "heavy-tail"})
      for (std::uint32_t frames : {1024u, 2048u, 4096u, BenchRig::frames})
        for (unsigned streams : {1u, 2u, 4u, 8u}) {
          const std::string title =
              std::string("touch/") + name + "/" + mix + "/" + std::to_string(frames) + "/" + std::to_string(streams);
          benchmark::RegisterBenchmark(title.c_str(), measure, path, mix, frames, streams)
              ->UseManualTime()
              ->MinTime(0.03)
              ->Unit(benchmark::kMillisecond);
        }
  return true;
}();

}  // namespace
}  // namespace sluice::function
