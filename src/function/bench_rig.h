// For benches of launch() alone: a GPU with eight streams, the ceilings of its link, and batches of frames for each
// stream.
//
// Metrics: GB/s of frame bytes each way, and their share of the ceiling that was measured in the same run. A batch is
// launched again and again on its stream, two launches deep, on `streams` streams at once; no ports, lanes or
// forwarding.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/gpu.h"
#include "device/link_probe.h"
#include "engine/element.h"
#include "function/test_batch.h"
#include "packet/frame_mix.h"

namespace sluice::function {

class BenchRig {
 public:
  static constexpr unsigned streams = 8;
  static constexpr std::uint32_t frames = 16384;  // of each stream's batch
  static constexpr std::uint32_t object_bytes = 2304;

  // Opens the GPU and prints the ceilings at the first call.
  static BenchRig& get() {
    static BenchRig rig;
    return rig;
  }

  const std::string& problem() const { return problem_; }
  device::Gpu& gpu() { return *gpu_; }
  const device::LinkCeilings& ceilings() const { return ceilings_; }
  engine::DevicePlan plan() const { return {streams, 1, frames, object_bytes}; }

  // The first `count` frames of stream s, of the sizes that packet::FrameMix names so.
  engine::Batch& batch(const std::string& mix, unsigned s, std::uint32_t count) {
    auto& batches = batches_[mix];
    while (batches.size() <= s) {
      auto sizes = packet::FrameMix::make(mix, batches.size() + 1);
      BatchShape shape{.count = frames, .object_bytes = object_bytes, .seed = batches.size() + 1};
      shape.size = [&](std::mt19937&) { return sizes->next(); };
      batches.push_back(std::make_unique<TestBatch>(gpu_.get(), shape));
    }
    engine::Batch& batch = batches[s]->batch();
    batch.count = count;
    batch.bytes = 0;
    for (std::uint32_t i = 0; i < count; ++i) batch.bytes += batch.length[i];
    return batch;
  }

  // Launches on `stream_count` streams, `rounds` times each; the seconds it took, or less than 0 when something failed.
  double run(engine::Element& element, const std::string& mix, std::uint32_t count, unsigned stream_count,
             unsigned rounds) {
    const auto begin = std::chrono::steady_clock::now();
    unsigned launched[streams] = {}, done = 0;
    while (done < rounds * stream_count)
      for (unsigned s = 0; s < stream_count; ++s) {
        device::GpuStream& stream = gpu_->stream(s);
        if (stream.pending_marks() != 0) {
          const device::MarkState state = stream.poll();
          if (state == device::MarkState::failed) return -1;
          done += state == device::MarkState::done;
        }
        if (launched[s] < rounds && stream.pending_marks() < 2) {
          if (!element.launch(*current_[s], stream) || !stream.mark()) return -1;
          ++launched[s];
        }
      }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  // The body of a benchmark: verifies, then measures. `check`: true when batch 0 is right after one launch over it.
  template <typename Check>
  void measure(benchmark::State& state, engine::Element& element, const std::string& mix, std::uint32_t count,
               unsigned stream_count, double ceiling, Check&& check) {
    std::uint64_t bytes = 0;
    for (unsigned s = 0; s < stream_count; ++s) {
      current_[s] = &batch(mix, s, count);
      bytes += current_[s]->bytes;
    }
    if (!check(*current_[0], [&] { return run(element, mix, count, 1, 1) >= 0; }))
      return state.SkipWithError(("wrong result " + gpu_->why()).c_str());
    constexpr unsigned rounds = 16;
    double seconds = 0;
    std::uint64_t moved = 0;
    for (auto _ : state) {
      const double took = run(element, mix, count, stream_count, rounds);
      if (took < 0) return state.SkipWithError(gpu_->why().c_str());
      state.SetIterationTime(took);
      seconds += took;
      moved += bytes * rounds;
    }
    const double rate = static_cast<double>(moved) / seconds / 1e9;
    state.counters["GB/s"] = rate;
    state.counters["share"] = rate / ceiling;
    state.counters["Mpps"] =
        static_cast<double>(count) * stream_count * rounds * static_cast<double>(state.iterations()) / seconds / 1e6;
    state.counters["us/batch"] = seconds * 1e6 / (rounds * static_cast<double>(state.iterations()));
  }

 private:
  BenchRig() {
    auto gpu = device::Gpu::open(0, streams);
    if (!gpu) {
      problem_ = gpu.error().message;
      return;
    }
    gpu_ = std::move(*gpu);
    auto ceilings = device::probe_link(*gpu_, {.quick = true});
    if (!ceilings) {
      problem_ = ceilings.error().message;
      return;
    }
    ceilings_ = *ceilings;
    std::fprintf(stderr, "%s", device::link_table(gpu_->info(), ceilings_).c_str());
  }

  std::unique_ptr<device::Gpu> gpu_;
  std::string problem_;
  device::LinkCeilings ceilings_;
  std::map<std::string, std::vector<std::unique_ptr<TestBatch>>> batches_;
  engine::Batch* current_[streams] = {};
};

}  // namespace sluice::function
