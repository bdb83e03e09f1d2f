#include "function/touch/touch.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/option.h"
#include "device/byte_sum.h"
#include "device/frame_copy.h"
#include "device/frame_sum.h"
#include "device/gpu.h"

namespace sluice::function {
namespace {

constexpr unsigned max_runs = 64;
constexpr std::uint64_t whole_runs = std::uint64_t{1} << 40;  // there is nothing to overlap within a batch

struct TouchOptions {
  TouchPath path = TouchPath::automatic;
};

const std::vector<Option<TouchOptions>>& settings() {
  static const std::vector<Option<TouchOptions>> all = {
      option::word("path", &TouchOptions::path,
                   {{"auto", TouchPath::automatic}, {"copy", TouchPath::copy}, {"direct", TouchPath::direct}},
                   "how bytes travel to a GPU")};
  return all;
}

const bool registered = engine::register_element(
    {.name = "touch",
     .text = "measuring: the device reads every byte, a verdict comes back",
     .make = [](Settings& section, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Element>> {
       TouchOptions options;
       option::read(settings(), section, options);
       return std::make_unique<Touch>(peers_of(ports), options.path);
     },
     .options = [] { return std::vector{option::section("[touch]", settings())}; },
     .ends_chain = true});

}  // namespace

Expected<void> Touch::attach(device::Gpu& gpu, const engine::DevicePlan& plan) {
  if (path_ == TouchPath::direct) return {};
  pitch_ = device::staging_pitch(plan.frame_bytes);
  rows_ = plan.batch_capacity;
  staging_.resize(std::max<std::size_t>(staging_.size(), plan.device + 1));
  for (unsigned s = 0; s < gpu.stream_count(); ++s) {
    auto memory = gpu.allocate_device(pitch_ * rows_);
    if (!memory) return tl::unexpected(memory.error());
    staging_[plan.device].push_back({&gpu.stream(s), std::move(*memory)});
  }
  return {};
}

void Touch::detach(std::uint32_t device) {
  if (device < staging_.size()) staging_[device].clear();
}

// What is enqueued before an error writes to the staging area and to verdicts, which forward() does not read: nothing
// needs to be waited for.
Expected<void> Touch::launch(engine::Batch& batch, device::GpuStream& stream) {
  void* const raw = stream.raw();
  std::uint32_t* const verdict = verdicts(batch);
  const std::span<const Staging> all =
      batch.device < staging_.size() ? std::span<const Staging>(staging_[batch.device]) : std::span<const Staging>();
  const auto staging = std::ranges::find_if(all, [&](const Staging& one) { return one.stream == &stream; });
  std::array<device::FrameRun, max_runs> runs;
  unsigned count = 0;
  if (staging != all.end() && batch.count <= rows_ && device::staging_pitch(batch.max_length) <= pitch_) {
    count = device::find_runs(batch.frame, batch.length, batch.count, runs.data(), max_runs, whole_runs);
    if (path_ == TouchPath::automatic && !device::worth_copying(runs.data(), count, batch.bytes)) count = 0;
  }
  if (count == 0) return device::sum_frames(batch.frame, batch.length, verdict, batch.count, raw);
  auto* const staged = staging->memory.as<std::byte>();
  for (unsigned r = 0; r < count; ++r) {
    const device::FrameRun& run = runs[r];
    if (auto ok = device::copy_up(run, staged, pitch_, raw); !ok) return ok;
    if (auto ok = device::sum_frames(batch.frame + run.first, batch.length + run.first, verdict + run.first, run.count,
                                     raw, device::staged_frames(run, staged, pitch_));
        !ok)
      return ok;
  }
  return {};
}

void Touch::compute(engine::Batch& batch, engine::Span span) {
  std::uint32_t* const verdict = verdicts(batch);
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    verdict[i] = device::sum_bytes(reinterpret_cast<const std::uint8_t*>(batch.frame[i]), batch.length[i]);
  }
}

}  // namespace sluice::function
