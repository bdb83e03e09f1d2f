#include "bench/verify.h"

#include <rte_mbuf.h>
#include <spdlog/fmt/fmt.h>

#include <atomic>
#include <chrono>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "bench/checked.h"
#include "bench/progress.h"

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

}  // namespace

Expected<void> run_until(Rig& rig, const std::atomic<std::uint64_t>& seen, std::uint64_t frames,
                         const std::function<Expected<void>()>& had_part) {
  const auto on_device = [&]() -> Expected<void> {
    if (auto there = on_its_device(rig, frames); !there || !had_part) return there;
    return had_part();
  };
  if (!rig.engine().running()) {
    rig.engine().start();
  }
  // A machine may be slow, but not stand still.
  const auto start = std::chrono::steady_clock::now();
  const auto last = start + std::chrono::minutes(1);
  auto end = start + std::chrono::seconds(5);
  std::uint64_t had = 0;
  // What the lanes compute before the first time point does not count for a GPU.
  while ((seen.load() < frames || !on_device()) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (const std::uint64_t has = seen.load(); has != std::exchange(had, has) && has < frames) {
      end = std::min(last, std::chrono::steady_clock::now() + std::chrono::seconds(5));
    }
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  if (auto finished = rig.finish(); !finished) {
    return finished;
  }
  if (seen.load() < frames) {
    return make_error(fmt::format("only {} frames came through in {:.0f} s", seen.load(), spent.count()));
  }
  return on_device();
}

Expected<std::uint64_t> verify_echo(const RigOptions& options, std::uint8_t key, std::uint64_t frames) {
  const Progress progress("verifying bytes");
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
  const Progress progress("verifying verdicts");
  Checked* checked = nullptr;
  options.wrap = [&checked](std::unique_ptr<engine::Element> inner) {
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
