#include "cli/bench/verify.h"

#include <rte_mbuf.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "engine/batch_writer.h"
#include "engine/emitter.h"
#include "function/route/route_batch.h"

namespace sluice::cli::bench {
namespace {

constexpr unsigned plain_bytes = 12;  // echo leaves the addresses alone

// Frames that the lanes' cores computed would verify the wrong device; they do so only before the first time point.
Expected<void> on_its_device(Rig& rig, std::uint64_t frames) {
  const engine::EngineStats::Lane total = rig.engine().stats().total;
  if (rig.engine().gpu() != nullptr && (total.frames_rescued != 0 || total.frames_gpu < frames - frames / 10)) {
    return make_error("the GPU was lost or left out: " + std::to_string(total.frames_gpu) + " frames went to it, " +
                      std::to_string(total.frames_rescued) + " of them were computed by the CPU after all");
  }
  return {};
}

// Passes everything on to the function under test and compares its verdicts with the CPU's.
class Checked : public engine::Function {
 public:
  explicit Checked(std::unique_ptr<engine::Function> inner) : inner_(std::move(inner)) {}
  engine::BatchLayout layout() const override { return inner_->layout(); }
  Expected<void> prepare() override { return inner_->prepare(); }
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override { return inner_->attach(gpu, plan); }
  Expected<void> begin_cycle(device::GpuStream& stream) override { return inner_->begin_cycle(stream); }
  bool recomputable() const override { return inner_->recomputable(); }
  void collect(engine::Burst& burst, engine::BatchWriter& batch) override { inner_->collect(burst, batch); }
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override {
    clear_answers(batch, 0xA5);
    return inner_->launch(batch, stream);
  }
  void compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) override {
    clear_answers(batch, 0xA5);
    inner_->compute(batch, first, count);
  }
  void stand_in(engine::Batch& batch) override { inner_->stand_in(batch); }
  void forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) override {
    if (first == 0) {
      check(batch);
    }
    inner_->forward(batch, first, count, out);
  }
  std::atomic<std::uint64_t> checked{0};
  std::atomic<std::uint64_t> wrong{0};

 private:
  // So that an answer that the device did not write cannot pass.
  void clear_answers(engine::Batch& batch, int value) {
    std::memset(batch.verdict, value, batch.count * sizeof *batch.verdict);
    if (inner_->layout().extra_bytes_per_frame == function::route_extra_per_frame) {
      std::memset(function::answers6(batch), value, batch.extra_count * sizeof(lookup::NextHopId));
    }
  }
  void check(engine::Batch& batch) {
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
  std::unique_ptr<engine::Function> inner_;
};

}  // namespace

Expected<void> run_until(Rig& rig, const std::atomic<std::uint64_t>& seen, std::uint64_t frames) {
  if (auto started = rig.engine().start(); !started) {
    return started;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  // What the lanes compute before the first time point does not count for a GPU.
  while ((seen.load() < frames || !on_its_device(rig, frames)) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (auto finished = rig.finish(); !finished) {
    return finished;
  }
  if (seen.load() < frames) {
    return make_error("only " + std::to_string(seen.load()) + " frames came through in five seconds");
  }
  return on_its_device(rig, frames);
}

Expected<std::uint64_t> verify_echo(const RigOptions& options, std::uint8_t key, std::uint64_t frames) {
  auto rig = Rig::make(options);
  if (!rig) {
    return tl::unexpected(rig.error());
  }
  struct Queue {
    std::uint16_t index;
    std::vector<std::uint32_t> rounds;
  };
  std::map<const rte_mempool*, Queue> queues;
  for (unsigned q = 0; q < options.lanes; ++q) {
    const auto index = static_cast<std::uint16_t>(q);
    queues[(*rig)->replay().pool(index)] = {index, std::vector<std::uint32_t>(options.frames)};
  }
  std::atomic<std::uint64_t> seen{0};
  std::atomic<std::uint64_t> wrong{0};
  (*rig)->replay().observe([&](const rte_mbuf* frame) {
    Queue& queue = queues.find(frame->pool)->second;  // one lane each: no two threads meet
    const std::uint32_t index = port::ReplayPort::frame_index(frame);
    const std::vector<std::uint8_t>& before = (*rig)->replay().pristine(queue.index, index);
    const std::uint8_t mask = ++queue.rounds[index] % 2 == 1 ? key : 0;
    const auto* now = rte_pktmbuf_mtod(frame, const std::uint8_t*);
    bool same = rte_pktmbuf_data_len(frame) == before.size();
    for (std::size_t at = 0; same && at < before.size(); ++at) {
      same = now[at] == static_cast<std::uint8_t>(before[at] ^ (at < plain_bytes ? 0 : mask));
    }
    wrong.fetch_add(same ? 0 : 1, std::memory_order_relaxed);
    seen.fetch_add(1, std::memory_order_relaxed);
  });
  if (auto ran = run_until(**rig, seen, frames); !ran) {
    return tl::unexpected(ran.error());
  }
  if (wrong.load() != 0) {
    return make_error(std::to_string(wrong.load()) + " of " + std::to_string(seen.load()) + " frames came back wrong");
  }
  return seen.load();
}

Expected<std::uint64_t> verify_verdicts(RigOptions options, std::uint64_t frames) {
  Checked* checked = nullptr;
  options.wrap = [&checked](std::unique_ptr<engine::Function> inner) -> std::unique_ptr<engine::Function> {
    auto wrapper = std::make_unique<Checked>(std::move(inner));
    checked = wrapper.get();
    return wrapper;
  };
  auto rig = Rig::make(options);
  if (!rig) {
    return tl::unexpected(rig.error());
  }
  if (auto ran = run_until(**rig, checked->checked, frames); !ran) {
    return tl::unexpected(ran.error());
  }
  if (checked->wrong.load() != 0) {
    return make_error("the device's verdicts differ from the CPU's in " + std::to_string(checked->wrong.load()) +
                      " batches");
  }
  return checked->checked.load();
}

}  // namespace sluice::cli::bench
