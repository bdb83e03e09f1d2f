#include "device/simt/block.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "device/simt/fiber.h"

thread_local constinit uint3 threadIdx{};
thread_local constinit uint3 blockIdx{};
thread_local constinit dim3 blockDim{};
thread_local constinit dim3 gridDim{};

namespace sluice::simt {
namespace {

constexpr std::uint64_t absent_value = 0xDEDEDEDEDEDEDEDEull;
constexpr unsigned long spin_limit = 200'000;  // rounds in which threads only yield

struct Thread {
  Fiber fiber;
  uint3 index;
  unsigned id;  // linear in the block
  bool started;
  Collective kind;  // none: running, or it has returned
  std::uint32_t mask;
  std::uint64_t value, result;
  unsigned source;
  Place place;
};

struct Warp {
  std::uint32_t live, ready;
};

struct Machine {
  StackPool stacks;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Thread* current = nullptr;
  unsigned at_barrier = 0;
  std::unique_ptr<std::byte, decltype(&std::free)> shared{nullptr, std::free};
  const std::function<void()>* kernel = nullptr;
  std::string failure;
  bool progress = false;

  std::string run_block();
  void resume(Thread& thread);
  void complete_warp(Warp& warp, Thread* lanes, Collective kind, std::uint32_t mask);
  void complete_barrier();
  std::string deadlock() const;
};

thread_local std::unique_ptr<Machine> machine_of_thread;

Machine& machine() {
  return *machine_of_thread;
}

const char* name(Collective kind) {
  switch (kind) {
    case Collective::none:
      return "nothing";
    case Collective::barrier:
      return "__syncthreads";
    case Collective::sync:
      return "__syncwarp";
    case Collective::shuffle:
      return "__shfl_sync";
    case Collective::ballot:
      return "__ballot_sync/__any_sync/__all_sync";
    case Collective::match:
      return "__match_any_sync";
    default:
      return "__reduce_*_sync";
  }
}

std::string text(uint3 v) {
  return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
}

std::string describe(const Thread& thread, const Warp& warp) {
  std::string out = "thread " + text(thread.index);
  if (!(warp.live >> (thread.id % 32) & 1)) return out + " has returned";
  if (thread.kind == Collective::none) return out + " spins";
  out += std::string(" waits at ") + name(thread.kind) + " (" + thread.place.file + ":" +
         std::to_string(thread.place.line);
  if (thread.kind != Collective::barrier) {
    char mask[24];
    std::snprintf(mask, sizeof mask, ", mask 0x%08x", thread.mask);
    out += mask;
  }
  return out + ")";
}

std::uint64_t result_of(Collective kind, const Thread* lanes, std::uint32_t present, const Thread& self) {
  if (kind == Collective::shuffle) return present >> self.source & 1 ? lanes[self.source].value : absent_value;
  std::uint64_t all = kind == Collective::min || kind == Collective::bit_and ? 0xFFFFFFFFu : 0;
  for (std::uint32_t rest = present; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t value = lanes[lane].value;
    switch (kind) {
      case Collective::ballot:
        all |= std::uint64_t{value != 0} << lane;
        break;
      case Collective::match:
        all |= std::uint64_t{value == self.value} << lane;
        break;
      case Collective::sum:
        all = (all + value) & 0xFFFFFFFFu;
        break;
      case Collective::min:
        all = std::min(all, value);
        break;
      case Collective::max:
        all = std::max(all, value);
        break;
      case Collective::bit_and:
        all &= value;
        break;
      case Collective::bit_or:
        all |= value;
        break;
      case Collective::bit_xor:
        all ^= value;
        break;
      default:
        break;
    }
  }
  return all;
}

void Machine::complete_warp(Warp& warp, Thread* lanes, Collective kind, std::uint32_t mask) {
  const std::uint32_t present = mask & warp.live;
  for (std::uint32_t rest = present; rest != 0; rest &= rest - 1) {
    const Thread& other = lanes[std::countr_zero(rest)];
    if (other.kind != kind || other.mask != mask) return;
  }
  for (std::uint32_t rest = present; rest != 0; rest &= rest - 1) {
    Thread& lane = lanes[std::countr_zero(rest)];
    lane.result = result_of(kind, lanes, present, lane);
  }
  for (std::uint32_t rest = present; rest != 0; rest &= rest - 1) lanes[std::countr_zero(rest)].kind = Collective::none;
  warp.ready |= present;
}

void Machine::complete_barrier() {
  const Place place = threads.front().place;
  std::uint64_t count = 0;
  for (const Thread& thread : threads) {
    if (thread.place.line != place.line || std::strcmp(thread.place.file, place.file) != 0)
      return;  // divergent: deadlock
    count += thread.value != 0;
  }
  for (Thread& thread : threads) {
    thread.result = count;
    thread.kind = Collective::none;
    warps[thread.id / 32].ready |= 1u << (thread.id % 32);
  }
  at_barrier = 0;
}

void Machine::resume(Thread& thread) {
  current = &thread;
  threadIdx = thread.index;
  if (!thread.started) {
    thread.started = true;
    thread.fiber.start(
        stacks.take(), [](void* m) { (*static_cast<Machine*>(m)->kernel)(); }, this);
  }
  if (!thread.fiber.resume()) return;
  stacks.give(thread.fiber.stack(), false);
  progress = true;
  Warp& warp = warps[thread.id / 32];
  const std::uint32_t bit = 1u << (thread.id % 32);
  warp.live &= ~bit;
  warp.ready &= ~bit;
  // Lanes that wait for this one only, may go on.
  Thread* const lanes = &threads[thread.id / 32 * 32];
  for (std::uint32_t rest = warp.live & ~warp.ready; rest != 0; rest &= rest - 1) {
    const Thread& lane = lanes[std::countr_zero(rest)];
    if (lane.kind != Collective::none && lane.kind != Collective::barrier && lane.mask & bit)
      complete_warp(warp, lanes, lane.kind, lane.mask);
  }
}

std::string Machine::deadlock() const {
  const auto waiting =
      std::find_if(threads.begin(), threads.end(), [](const Thread& t) { return t.kind != Collective::none; });
  if (waiting == threads.end()) return "threads spin for ever (a block cannot wait for another block or for the host)";
  std::string report = describe(*waiting, warps[waiting->id / 32]);
  // One example of who holds it up: a thread that it waits for and that does not stand where it stands.
  for (const Thread& other : threads) {
    if (waiting->kind != Collective::barrier &&
        (other.id / 32 != waiting->id / 32 || !(waiting->mask >> (other.id % 32) & 1) ||
         !(warps[other.id / 32].live >> (other.id % 32) & 1)))
      continue;
    const bool same =
        other.kind == waiting->kind && other.mask == waiting->mask &&
        (waiting->kind != Collective::barrier ||
         (other.place.line == waiting->place.line && std::strcmp(other.place.file, waiting->place.file) == 0));
    if (!same) return report + ", but " + describe(other, warps[other.id / 32]);
  }
  return report;
}

std::string Machine::run_block() {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  threads.resize(count);
  warps.assign((count + 31) / 32, Warp{~0u, ~0u});
  if (count % 32 != 0) warps.back().live = warps.back().ready = (1u << count % 32) - 1;
  for (unsigned id = 0; id < count; ++id) {
    Thread& thread = threads[id];
    thread.index = {id % blockDim.x, id / blockDim.x % blockDim.y, id / blockDim.x / blockDim.y};
    thread.id = id;
    thread.started = false;
    thread.kind = Collective::none;
  }
  at_barrier = 0;
  unsigned long idle_rounds = 0;
  for (;;) {
    progress = false;
    std::uint32_t any_ready = 0, any_live = 0;
    for (std::size_t w = 0; w < warps.size() && failure.empty(); ++w) {
      const std::uint32_t ready = warps[w].ready;
      any_ready |= ready;
      for (std::uint32_t rest = ready; rest != 0; rest &= rest - 1) {
        resume(threads[w * 32 + static_cast<unsigned>(std::countr_zero(rest))]);
        if (!failure.empty()) break;
      }
      any_live |= warps[w].live;
    }
    idle_rounds = progress ? 0 : idle_rounds + 1;
    if (failure.empty() && any_live == 0) return {};
    if (failure.empty() && any_ready != 0 && idle_rounds < spin_limit) continue;
    std::string report = failure.empty() ? deadlock() : failure;
    for (const Thread& thread : threads)
      if (thread.started && warps[thread.id / 32].live >> (thread.id % 32) & 1) stacks.give(thread.fiber.stack(), true);
    return "block " + text(blockIdx) + ": " + report;
  }
}

}  // namespace

std::uint64_t join(Collective kind, std::uint32_t mask, std::uint64_t value, unsigned source, Place place) {
  Machine& m = machine();
  Thread& self = *m.current;
  Warp& warp = m.warps[self.id / 32];
  const std::uint32_t bit = 1u << (self.id % 32);
  m.progress = true;
  self.kind = kind;
  self.mask = mask;
  self.value = value;
  self.source = source;
  self.place = place;
  warp.ready &= ~bit;
  if (kind == Collective::barrier) {
    if (++m.at_barrier == m.threads.size()) m.complete_barrier();
  } else {
    if (!(mask & bit)) fail_thread("has no bit in the mask that it passes to", name(kind));
    m.complete_warp(warp, &m.threads[self.id / 32 * 32], kind, mask);
  }
  if (self.kind != Collective::none) yield_fiber();  // the last to arrive goes straight on
  return self.result;
}

void yield_thread() {
  yield_fiber();
}

unsigned lane_id() {
  return machine().current->id % 32;
}

std::uint32_t live_lanes() {
  const Machine& m = machine();
  return m.warps[m.current->id / 32].live;
}

std::byte* dynamic_shared() {
  return machine().shared.get();
}

void fail_thread(const char* what, const char* detail) {
  Machine& m = machine();
  m.failure = "thread " + text(m.current->index) + " " + what + (*detail == 0 ? "" : " ") + detail;
  for (;;) yield_fiber();
}

std::string run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel) {
  if (!machine_of_thread) machine_of_thread = std::make_unique<Machine>();
  Machine& m = machine();
  m.kernel = &kernel;
  m.failure.clear();
  gridDim = grid;
  blockDim = block;
  // Exactly the bytes asked for, so that AddressSanitizer sees one too many.
  m.shared.reset(static_cast<std::byte*>(std::aligned_alloc(128, shared_bytes)));
  std::string report;
  for (unsigned z = 0; z < grid.z && report.empty(); ++z)
    for (unsigned y = 0; y < grid.y && report.empty(); ++y)
      for (unsigned x = 0; x < grid.x && report.empty(); ++x) {
        blockIdx = {x, y, z};
        std::memset(m.shared.get(), 0xAB, shared_bytes);
        report = m.run_block();
      }
  return report;
}

}  // namespace sluice::simt
