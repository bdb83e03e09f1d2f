#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "device/cuda_check.h"
#include "device/cuda_event.h"
#include "device/launch.h"
#include "lookup/change_log.h"
#include "lookup/gpu_fib.h"
#include "lookup/gpu_fib_view.cuh"

namespace sluice::lookup {

namespace {

constexpr unsigned block_threads = 256;
constexpr unsigned warp_threads = 32;
// Enough warps to hide the latency of reading change sets in host memory, few enough to leave the SMs to the traffic.
constexpr unsigned most_apply_blocks = 32;

struct Apply {
  volatile std::uint32_t* slots;
  const Run* run;
  const std::uint32_t* values;
  std::uint32_t runs;
};

// A warp for each run.
__global__ void apply_runs(Apply v4, Apply v6) {
  const std::uint32_t warps = gridDim.x * (blockDim.x / warp_threads);
  const std::uint32_t lane = threadIdx.x % warp_threads;
  for (std::uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / warp_threads; i < v4.runs + v6.runs; i += warps) {
    const bool four = i < v4.runs;
    const Run run = four ? v4.run[i] : v6.run[i - v4.runs];
    const std::uint32_t* const values = four ? v4.values : v6.values;
    volatile std::uint32_t* const slots = four ? v4.slots : v6.slots;
    for (std::uint32_t k = lane; k < run.count; k += warp_threads) {
      slots[run.slot + k] = run.fill != 0 ? run.value : values[run.value + k];
    }
  }
}

struct Keys {
  const std::uint32_t* keys4;
  std::uint32_t* out4;
  std::uint32_t n4;
  const uint4* keys6;
  std::uint32_t* out6;
  std::uint32_t n6;
};

// Whole blocks for one family: the first ceil(n4 / block) for IPv4, the others for IPv6.
__global__ void look_up(Fib4View v4, Fib6View v6, Keys keys) {
  const std::uint32_t blocks4 = (keys.n4 + blockDim.x - 1) / blockDim.x;
  if (blockIdx.x < blocks4) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < keys.n4) {
      keys.out4[i] = lookup4(v4, keys.keys4[i]);
    }
  } else {
    const std::uint32_t i = (blockIdx.x - blocks4) * blockDim.x + threadIdx.x;
    if (i < keys.n6) {
      keys.out6[i] = lookup6(v6, keys.keys6[i]);
    }
  }
}

// One family's table in device memory.
struct Table {
  Table(Trie& trie, device::Gpu& gpu) : trie(trie), log(trie, [&gpu] { return gpu.lost(); }) {}

  Expected<void> upload(device::Gpu& gpu) {
    auto memory = gpu.allocate_device(trie.memory_bytes());
    if (!memory) {
      return tl::unexpected(memory.error());
    }
    copy = std::move(*memory);
    const auto stream = static_cast<cudaStream_t>(gpu.stream(0).raw());
    const std::lock_guard lock(trie.mutex());
    SLUICE_CUDA_TRY(cudaMemcpyAsync(slots(), trie.slots(), trie.slots_touched() * sizeof(std::uint32_t),
                                    cudaMemcpyHostToDevice, stream));
    SLUICE_CUDA_TRY(cudaStreamSynchronize(stream));
    return {};
  }

  std::uint32_t* slots() const { return copy.as<std::uint32_t>(); }

  Trie& trie;
  ChangeLog log;
  device::DeviceMemory copy;
};

// Pinned memory for the change sets of one sync.
struct Staging {
  Expected<void> create(device::Gpu& gpu, std::size_t max_bytes) {
    for (ChangeSet* set : {&v4, &v6}) {
      auto memory = gpu.allocate_host(2 * max_bytes);
      if (!memory) {
        return tl::unexpected(memory.error());
      }
      set->run = static_cast<Run*>(*memory);
      set->run_capacity = static_cast<std::uint32_t>(max_bytes / sizeof(Run));
      set->values = reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(*memory) + max_bytes);
      set->value_capacity = static_cast<std::uint32_t>(max_bytes / sizeof(std::uint32_t));
    }
    return read.create();
  }

  ChangeSet v4;
  ChangeSet v6;
  device::Event read;  // the GPU has applied the sets
};

class CudaFib final : public GpuFib {
 public:
  CudaFib(device::Gpu& gpu, Trie& v4, Trie& v6, std::size_t max_sync_bytes)
      : gpu_(gpu), max_sync_bytes_(max_sync_bytes), v4_(v4, gpu), v6_(v6, gpu), enqueued_(gpu.stream_count()) {}

  Expected<void> create() {
    if (auto ok = v4_.upload(gpu_); !ok) {
      return ok;
    }
    if (auto ok = v6_.upload(gpu_); !ok) {
      return ok;
    }
    for (Staging& staging : staging_) {
      if (auto ok = staging.create(gpu_, max_sync_bytes_); !ok) {
        return ok;
      }
    }
    for (device::Event& event : enqueued_) {
      if (auto ok = event.create(); !ok) {
        return ok;
      }
    }
    return {};
  }

  Expected<void> sync(device::GpuStream& stream, std::size_t max_bytes) override {
    if (gpu_.lost()) {
      return make_error("GPU lost: " + gpu_.why());
    }
    if (auto ok = follow_readers(); !ok) {
      return ok;
    }
    const bool take = reuse_ == Reuse::none_waits;
    if (up_to_date() && !(take && (v4_.log.has_retired() || v6_.log.has_retired()))) {
      return {};
    }
    Staging& staging = staging_[next_];
    const auto free = staging.read.passed();
    if (!free) {
      return tl::unexpected(free.error());
    }
    if (!*free) {
      return {};
    }
    const std::size_t share = std::min(max_bytes, max_sync_bytes_) / 2;
    const bool has4 = v4_.log.pack(staging.v4, share, take);
    const bool has6 = v6_.log.pack(staging.v6, share, take);
    const bool leaves = take && (v4_.log.holds_retired() || v6_.log.holds_retired());
    if ((!has4 || staging.v4.runs == 0) && (!has6 || staging.v6.runs == 0) && !leaves) {
      return {};
    }
    // Change sets follow one another, whatever streams they are given to.
    if (auto ok = staging_[last_].read.before(stream); !ok) {
      return ok;
    }
    if (auto ok = apply(stream, staging, has4, has6); !ok) {
      return ok;
    }
    if (auto ok = staging.read.record(stream); !ok) {
      return ok;
    }
    if (leaves) {
      reuse_ = Reuse::unlinking;
      unlinked_by_ = next_;
    }
    last_ = next_;
    next_ = (next_ + 1) % staging_.size();
    return {};
  }

  bool up_to_date() const override { return v4_.log.up_to_date() && v6_.log.up_to_date(); }

  Expected<void> lookup(device::GpuStream& stream, const std::uint32_t* keys4, NextHopId* out4, std::uint32_t n4,
                        const std::uint8_t* keys6, NextHopId* out6, std::uint32_t n6) override {
    const std::uint32_t blocks = (n4 + block_threads - 1) / block_threads + (n6 + block_threads - 1) / block_threads;
    if (blocks == 0) {
      return {};
    }
    const Keys keys{keys4, out4, n4, reinterpret_cast<const uint4*>(keys6), out6, n6};
    SLUICE_CUDA_TRY(device::launch(look_up, dim3(blocks), dim3(block_threads), 0,
                                   static_cast<cudaStream_t>(stream.raw()), view4(), view6(), keys));
    return {};
  }

  Fib4View view4() const override { return {v4_.slots()}; }
  Fib6View view6() const override { return {v6_.slots()}; }
  std::size_t device_bytes() const override { return v4_.trie.memory_bytes() + v6_.trie.memory_bytes(); }

 private:
  // Where the blocks that were taken out are on their way to being used again: one group of them at a time.
  enum class Reuse {
    none_waits,  // no group is on its way
    unlinking,   // the GPU has not applied the change that unlinks them
    leaving,     // kernels that were enqueued before that may still be in them
    fading,      // kernels that ran beside those may still have lines of them in their L1
    left,        // to be given back to the tries
  };

  Expected<void> apply(device::GpuStream& stream, const Staging& staging, bool has4, bool has6) {
    const auto launch = [&](std::uint32_t from4, std::uint32_t to4, std::uint32_t from6,
                            std::uint32_t to6) -> Expected<void> {
      const Apply v4{v4_.slots(), staging.v4.run + from4, staging.v4.values, to4 - from4};
      const Apply v6{v6_.slots(), staging.v6.run + from6, staging.v6.values, to6 - from6};
      constexpr unsigned warps = block_threads / warp_threads;
      const unsigned blocks = std::min(most_apply_blocks, (v4.runs + v6.runs + warps - 1) / warps);
      if (blocks == 0) {
        return {};
      }
      SLUICE_CUDA_TRY(device::launch(apply_runs, dim3(blocks), dim3(block_threads), 0,
                                     static_cast<cudaStream_t>(stream.raw()), v4, v6));
      return {};
    };
    const std::uint32_t born4 = has4 ? staging.v4.born : 0;
    const std::uint32_t born6 = has6 ? staging.v6.born : 0;
    if (auto ok = launch(0, born4, 0, born6); !ok) {
      return ok;
    }
    return launch(born4, has4 ? staging.v4.runs : 0, born6, has6 ? staging.v6.runs : 0);
  }

  // Marks what is enqueued on each stream now.
  Expected<void> mark_streams() {
    for (unsigned i = 0; i < gpu_.stream_count(); ++i) {
      if (auto ok = enqueued_[i].record(gpu_.stream(i)); !ok) {
        return ok;
      }
    }
    return {};
  }

  Expected<bool> streams_passed() const {
    for (const device::Event& event : enqueued_) {
      if (const auto passed = event.passed(); !passed || !*passed) {
        return passed;
      }
    }
    return true;
  }

  // One step of the way, if its time has come.
  Expected<void> follow_readers() {
    if (reuse_ == Reuse::left) {
      reuse_ = v4_.log.release_retired() && v6_.log.release_retired() ? Reuse::none_waits : Reuse::left;
    }
    if (reuse_ == Reuse::none_waits || reuse_ == Reuse::left) {
      return {};
    }
    const auto passed = reuse_ == Reuse::unlinking ? staging_[unlinked_by_].read.passed() : streams_passed();
    if (!passed) {
      return tl::unexpected(passed.error());
    }
    if (!*passed) {
      return {};
    }
    reuse_ = static_cast<Reuse>(static_cast<int>(reuse_) + 1);
    return reuse_ == Reuse::left ? Expected<void>() : mark_streams();
  }

  device::Gpu& gpu_;
  const std::size_t max_sync_bytes_;
  Table v4_;
  Table v6_;
  std::array<Staging, 4> staging_;
  std::size_t next_ = 0;
  std::size_t last_ = 0;  // used by the sync before
  std::size_t unlinked_by_ = 0;
  Reuse reuse_ = Reuse::none_waits;
  std::vector<device::Event> enqueued_;  // by stream
};

}  // namespace

Expected<std::unique_ptr<GpuFib>> GpuFib::create(device::Gpu& gpu, Trie& v4, Trie& v6, std::size_t max_sync_bytes) {
  auto fib = std::make_unique<CudaFib>(gpu, v4, v6, max_sync_bytes);
  if (auto ok = fib->create(); !ok) {
    return tl::unexpected(ok.error());
  }
  return fib;
}

}  // namespace sluice::lookup
