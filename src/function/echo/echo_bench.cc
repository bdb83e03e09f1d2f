// echo/PATH/MIX/FRAMES/STREAMS: launch() alone, share of the copy engine's both-ways ceiling.
#include "device/byte_sum.h"
#include "function/bench_rig.h"
#include "function/echo/echo.h"

namespace sluice::function {
namespace {

constexpr std::uint8_t key = 0x5A;

// One launch gives each frame's sum, and changes every byte after the first 12.
bool check(engine::Batch& batch, const std::function<bool()>& launch) {
  const auto* const verdict = reinterpret_cast<const std::uint32_t*>(batch.area[0]);
  std::vector<std::vector<std::uint8_t>> before;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    const auto* frame = reinterpret_cast<const std::uint8_t*>(batch.frame[i]);
    before.emplace_back(frame, frame + batch.length[i]);
  }
  if (!launch()) return false;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    if (verdict[i] != device::sum_bytes(before[i].data(), before[i].size())) return false;
    const auto* frame = reinterpret_cast<const std::uint8_t*>(batch.frame[i]);
    for (std::size_t b = 0; b < before[i].size(); ++b)
      if (frame[b] != (b < echo_unchanged_bytes ? before[i][b] : before[i][b] ^ key)) return false;
  }
  return true;
}

void measure(benchmark::State& state, EchoPath path, const std::string& mix, std::uint32_t frames, unsigned streams) {
  BenchRig& rig = BenchRig::get();
  if (!rig.problem().empty()) return state.SkipWithError(rig.problem().c_str());
  static std::map<EchoPath, std::unique_ptr<Echo>> echoes;  // their device memory lives as long as the GPU
  auto& echo = echoes[path];
  if (!echo) {
    echo = std::make_unique<Echo>(std::vector<std::uint16_t>{0}, key, path);
    if (auto ok = echo->attach(rig.gpu(), rig.plan()); !ok) return state.SkipWithError(ok.error().message.c_str());
  }
  rig.measure(state, *echo, mix, frames, streams, rig.ceilings().large.both, check);
}

const bool registered = [] {
  const std::pair<EchoPath, const char*> paths[] = {{EchoPath::automatic, "auto"},
                                                    {EchoPath::copy, "copy"},
                                                    {EchoPath::direct, "direct"},
                                                    {EchoPath::direct_down, "direct-down"}};
  for (const auto& [path, name] : paths)
    for (const char* mix : {"64", "608", "1408", "heavy-tail"})
      for (std::uint32_t frames : {1024u, 4096u, BenchRig::frames})
        for (unsigned streams : {1u, 2u, 4u, 8u}) {
          const std::string title =
              std::string("echo/") + name + "/" + mix + "/" + std::to_string(frames) + "/" + std::to_string(streams);
          benchmark::RegisterBenchmark(title.c_str(), measure, path, mix, frames, streams)
              ->UseManualTime()
              ->MinTime(0.03)
              ->Unit(benchmark::kMillisecond);
        }
  return true;
}();

}  // namespace
}  // namespace sluice::function
