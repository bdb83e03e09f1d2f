// Ways for packets of several sizes to cross the link both ways, without any work on them: what "Other ways" in
// 2026-11-26-h100-units.md was measured with. Needs CUDA alone, and some 320 MB of hugepages:
//
//     sysctl vm.nr_hugepages=512
//     nvcc -std=c++20 -O3 -arch=sm_90 -o ways 2026-11-26-ways.cu && ./ways
//
// Packets of set B's seven sizes, without 42 bytes of headers and with a tag, lie in buffers as mbufs do, each at a
// multiple of 16 bytes. All that is read is written back with every byte inverted. Each way is first run once over
// known bytes, and what came of it is compared.
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int line = 128, stride = 2368, pitch = 2112;  // pitch is stride modulo a line, so that rows keep their place
constexpr int place = 128 + 48;                         // of a packet in its buffer
constexpr int batch = 3840, batches = 16, streams = 8;
constexpr int block_threads = 128, block_warps = block_threads / 32;
constexpr std::size_t host_bytes = std::size_t{batches} * batch * stride;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

// A batch. The first `staged` bytes of each packet, a multiple of 16, are read or written in device memory, as
// `reads_staged` and `writes_staged` say; all others in host memory.
struct Work {
  std::uint8_t *host, *device;
  const std::uint16_t* length;
  int staged;
  bool reads_staged, writes_staged;
};

// A warp walks over `per_warp` packets together, eight lanes to a line, the next lines under way: as crypto does.
template <bool reads, bool writes>
__global__ void __launch_bounds__(block_threads) walk(Work work, int per_warp) {
  const int lane = threadIdx.x % 32, unit = lane % 8 * 16;
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * block_warps;
  std::uint32_t seen = 0;
  for (int first = warp * per_warp; first < batch; first += warps * per_warp) {
    const int count = min(per_warp, batch - first);
    std::uint8_t *host[8], *device[8];
    int begin[8], end[8], longest = 0;
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int p = 4 * r + lane / 8, i = first + p;
      std::uint8_t* const packet = work.host + std::size_t(i) * stride + place;
      begin[r] = int(std::uintptr_t(packet) % line);
      end[r] = p < count ? begin[r] + work.length[i] : 0;
      host[r] = packet - begin[r];
      device[r] = work.device + std::size_t(i) * pitch + place % line - begin[r];
      longest = max(longest, end[r]);
    }
    for (int by = 16; by > 0; by /= 2) longest = max(longest, __shfl_xor_sync(~0u, longest, by));
    const auto is_there = [&](int r, int offset) { return offset + 16 > begin[r] && offset < end[r]; };
    const auto fetch = [&](int r, int offset) {
      if (!reads || !is_there(r, offset)) return make_uint4(0, 0, 0, 0);
      const std::uint8_t* const from = work.reads_staged && offset < begin[r] + work.staged ? device[r] : host[r];
      return __ldcs(reinterpret_cast<const uint4*>(from + offset));
    };
    uint4 ahead[8];
#pragma unroll
    for (int r = 0; r < 8; ++r) ahead[r] = fetch(r, unit);
    for (int offset = unit; offset < longest + unit; offset += line) {
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        const uint4 now = ahead[r];
        ahead[r] = fetch(r, offset + line);
        seen ^= now.x ^ now.y ^ now.z ^ now.w;
        if (!writes || !is_there(r, offset)) continue;
        std::uint8_t* const to = work.writes_staged && offset < begin[r] + work.staged ? device[r] : host[r];
        *reinterpret_cast<uint4*>(to + offset) = make_uint4(~now.x, ~now.y, ~now.z, ~now.w);
      }
    }
  }
  if (!writes && seen == 0x12345677) work.device[0] = 1;  // so that the reads stay
}

__device__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Hopper's bulk copies: each warp has eight packets in shared memory, of which four are on their way in.
template <bool reads, bool writes>
__global__ void __launch_bounds__(block_threads) bulk(Work work) {
  constexpr int depth = 8, slot_bytes = 1536;
  extern __shared__ __align__(128) std::uint8_t memory[];
  __shared__ __align__(8) std::uint64_t barrier[block_warps][depth];
  const int lane = threadIdx.x % 32, own = threadIdx.x / 32, warps = gridDim.x * block_warps;
  const int warp = blockIdx.x * block_warps + own, total = (batch - warp + warps - 1) / warps;
  std::uint8_t* const slots = memory + own * depth * slot_bytes;
  const auto packet = [&](int k) { return work.host + std::size_t(warp + k * warps) * stride + place; };
  const auto bytes = [&](int k) { return std::uint32_t(work.length[warp + k * warps] + 15) / 16 * 16; };
  const auto load = [&](int k) {
    const std::uint32_t to = shared_address(slots + k % depth * slot_bytes),
                        full = shared_address(&barrier[own][k % depth]);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full), "r"(bytes(k)));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(packet(k)), "r"(bytes(k)), "r"(full)
                 : "memory");
  };
  if (lane == 0)
    for (auto& full : barrier[own]) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&full)));
  asm volatile("fence.proxy.async.shared::cta;");
  __syncwarp();
  int loaded = 0;
  for (; reads && lane == 0 && loaded < depth / 2 && loaded < total; ++loaded) load(loaded);
  for (int k = 0; k < total; ++k) {
    std::uint8_t* const slot = slots + k % depth * slot_bytes;
    for (std::uint32_t come = !reads; come == 0;)
      asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                   : "=r"(come)
                   : "r"(shared_address(&barrier[own][k % depth])), "r"(k / depth % 2)
                   : "memory");
    if (writes) {
      for (std::uint32_t at = lane * 16; at < bytes(k); at += 32 * 16) {
        auto* const unit = reinterpret_cast<uint4*>(slot + at);
        *unit = make_uint4(~unit->x, ~unit->y, ~unit->z, ~unit->w);
      }
      asm volatile("fence.proxy.async.shared::cta;");
      __syncwarp();
      if (lane == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(packet(k)),
                     "r"(shared_address(slot)), "r"(bytes(k))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group.read 3;" ::: "memory");
      }
    }
    if (reads && lane == 0 && loaded < total) load(loaded++);
    __syncwarp();
  }
  if (lane == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

class Ways {
 public:
  Ways() {
    void* memory = mmap(nullptr, (host_bytes + huge - 1) / huge * huge, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (memory == MAP_FAILED) {
      std::fprintf(stderr, "%zu hugepages of 2 MB are needed: sysctl vm.nr_hugepages=512\n", host_bytes / huge + 1);
      std::exit(1);
    }
    host_ = static_cast<std::uint8_t*>(memory);
    CHECK(cudaHostRegister(host_, (host_bytes + huge - 1) / huge * huge, cudaHostRegisterMapped));
    CHECK(cudaMalloc(&device_, std::size_t{batches} * batch * pitch));
    std::mt19937 random(3);
    for (auto& length : length_) {
      length = static_cast<std::uint16_t>(242 + 188 * (random() % 7) - 42 + 10);
      mean_ += double(length) / double(length_.size());
    }
    CHECK(cudaMalloc(&lengths_, length_.size() * sizeof length_[0]));
    CHECK(cudaMemcpy(lengths_, length_.data(), length_.size() * sizeof length_[0], cudaMemcpyHostToDevice));
    for (int s = 0; s < streams; ++s) {
      CHECK(cudaStreamCreateWithFlags(&up[s], cudaStreamNonBlocking));
      CHECK(cudaStreamCreateWithFlags(&down[s], cudaStreamNonBlocking));
      CHECK(cudaEventCreateWithFlags(&is_up_[s], cudaEventDisableTiming));
    }
    std::printf("packets of %.1f bytes on average, GB/s each way\n", mean_);
  }

  Work work(int b, int staged = 0, bool reads_staged = false, bool writes_staged = false) const {
    return {host_ + std::size_t(b) * batch * stride,
            device_ + std::size_t(b) * batch * pitch,
            lengths_ + b * batch,
            staged,
            reads_staged,
            writes_staged};
  }

  // The first `staged` bytes of all packets of a batch, by the copy engine.
  void copy(int b, int staged, bool to_device, cudaStream_t stream) const {
    std::uint8_t* const host = work(b).host + place;
    std::uint8_t* const device = work(b).device + place % line;
    const std::size_t width = std::min(1370 - 42 + 10, staged);
    if (to_device) {
      CHECK(cudaMemcpy2DAsync(device, pitch, host, stride, width, batch, cudaMemcpyHostToDevice, stream));
    } else {
      CHECK(cudaMemcpy2DAsync(host, stride, device, pitch, width, batch, cudaMemcpyDeviceToHost, stream));
    }
  }

  void then(int s) const {
    CHECK(cudaEventRecord(is_up_[s], up[s]));
    CHECK(cudaStreamWaitEvent(down[s], is_up_[s], 0));
  }

  // `enqueue(stream, batch)`. `inverts`: what it does to each packet can be seen afterwards.
  void run(const std::string& name, bool inverts, const std::function<void(int, int)>& enqueue) {
    if (inverts) {
      fill();
      for (int b = 0; b < batches; ++b) enqueue(b % streams, b);
      CHECK(cudaDeviceSynchronize());
      compare(name);
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    std::size_t done = 0;
    do {
      for (int b = 0; b < batches; ++b) enqueue(b % streams, b);
      done += batches;
      if (done % (4 * batches) == 0) CHECK(cudaDeviceSynchronize());
    } while (seconds() < 0.15);
    CHECK(cudaDeviceSynchronize());
    const double mpps = double(done) * batch / seconds() / 1e6;
    std::printf("%-64s %6.2f Mpps %6.2f GB/s\n", name.c_str(), mpps, mpps * mean_ / 1e3);
    std::fflush(stdout);
  }

  double mean() const { return mean_; }

  cudaStream_t up[streams] = {}, down[streams] = {};

 private:
  static constexpr std::size_t huge = 2 << 20;

  static std::uint8_t known(std::size_t i) { return static_cast<std::uint8_t>(i * 2654435761u >> 24); }

  void fill() {
    for (std::size_t i = 0; i < host_bytes; ++i) host_[i] = known(i);
  }

  void compare(const std::string& name) const {
    for (std::size_t i = 0; i < length_.size(); ++i) {
      for (std::size_t at = 0; at < length_[i]; ++at) {
        const std::size_t byte = i * stride + place + at;
        if (host_[byte] == static_cast<std::uint8_t>(~known(byte))) continue;
        std::fprintf(stderr, "%s: byte %zu of packet %zu is wrong\n", name.c_str(), at, i);
        std::exit(1);
      }
    }
  }

  std::uint8_t *host_ = nullptr, *device_ = nullptr;
  std::uint16_t* lengths_ = nullptr;
  std::vector<std::uint16_t> length_ = std::vector<std::uint16_t>(std::size_t{batches} * batch);
  cudaEvent_t is_up_[streams] = {};
  double mean_ = 0;
};

constexpr int bulk_bytes = block_warps * 8 * 1536;

void measure(Ways& ways) {
  const auto far = [](int b) { return (b + batches / 2) % batches; };
  ways.run("copy engine, whole batches, both ways", false, [&](int s, int b) {
    const auto bytes = static_cast<std::size_t>(batch * ways.mean());
    CHECK(cudaMemcpyAsync(ways.work(b).device, ways.work(b).host, bytes, cudaMemcpyHostToDevice, ways.up[s]));
    CHECK(
        cudaMemcpyAsync(ways.work(far(b)).host, ways.work(far(b)).device, bytes, cudaMemcpyDeviceToHost, ways.down[s]));
  });
  ways.run("reads in place alone", false,
           [&](int s, int b) { walk<true, false><<<120, block_threads, 0, ways.up[s]>>>(ways.work(b), 8); });
  ways.run("writes in place alone", false,
           [&](int s, int b) { walk<false, true><<<120, block_threads, 0, ways.up[s]>>>(ways.work(b), 8); });
  for (const int per_warp : {8, 16, 32}) {
    ways.run("one kernel in place, " + std::to_string(per_warp) + " packets a warp", true, [&](int s, int b) {
      walk<true, true><<<batch / (per_warp * block_warps), block_threads, 0, ways.up[s]>>>(ways.work(b), per_warp);
    });
  }
  for (const int blocks : {32, 120}) {
    ways.run("a kernel that reads beside one that writes, " + std::to_string(blocks) + " blocks each", false,
             [&](int s, int b) {
               walk<true, false><<<blocks, block_threads, 0, ways.up[s]>>>(ways.work(b), 8);
               walk<false, true><<<blocks, block_threads, 0, ways.down[s]>>>(ways.work(far(b)), 8);
             });
  }
  for (const int staged : {208, 336, 592, 848, 1344}) {
    const auto up_to = std::to_string(staged);
    ways.run("copies of the first " + up_to + " bytes, the rest in place", true, [&](int s, int b) {
      ways.copy(b, staged, true, ways.up[s]);
      ways.then(s);
      walk<true, true><<<120, block_threads, 0, ways.down[s]>>>(ways.work(b, staged, true, true), 8);
      ways.copy(b, staged, false, ways.down[s]);
    });
    ways.run("… up only, all written in place", true, [&](int s, int b) {
      ways.copy(b, staged, true, ways.up[s]);
      ways.then(s);
      walk<true, true><<<120, block_threads, 0, ways.down[s]>>>(ways.work(b, staged, true, false), 8);
    });
    ways.run("… down only, all read in place", true, [&](int s, int b) {
      walk<true, true><<<120, block_threads, 0, ways.down[s]>>>(ways.work(b, staged, false, true), 8);
      ways.copy(b, staged, false, ways.down[s]);
    });
  }
  for (const int blocks : {32, 132}) {
    const auto with = ", " + std::to_string(blocks) + " blocks";
    ways.run("bulk copies, reads alone" + with, false,
             [&](int s, int b) { bulk<true, false><<<blocks, block_threads, bulk_bytes, ways.up[s]>>>(ways.work(b)); });
    ways.run("bulk copies, writes alone" + with, false,
             [&](int s, int b) { bulk<false, true><<<blocks, block_threads, bulk_bytes, ways.up[s]>>>(ways.work(b)); });
    ways.run("bulk copies, both in one kernel" + with, true,
             [&](int s, int b) { bulk<true, true><<<blocks, block_threads, bulk_bytes, ways.up[s]>>>(ways.work(b)); });
  }
}

}  // namespace

int main() {
  Ways ways;
  for (const auto kernel : {bulk<true, false>, bulk<false, true>, bulk<true, true>})
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bulk_bytes));
  for (int round = 0; round < 2; ++round) measure(ways);
}
