// The SIMT shim runs kernels as a GPU does, and says what is wrong with those that would hang there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "device/cuda_check.h"
#include "device/launch.h"
#include "device/simt/fault.h"

namespace sluice::device {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Shim : public testing::Test {
 protected:
  void TearDown() override { simt::clear_faults(); }
};

__global__ void warp_sums(const unsigned* in, unsigned* out) {
  unsigned sum = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) out[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = sum;
}

TEST_F(Shim, ShufflesReduceAWarp) {
  std::vector<unsigned> in(3 * 96), out(9);
  std::iota(in.begin(), in.end(), 1u);
  ASSERT_EQ(launch(warp_sums, 3, 96, 0, nullptr, in.data(), out.data()), cudaSuccess);
  for (unsigned w = 0; w < 9; ++w) EXPECT_EQ(out[w], 32 * (w * 32) + 33 * 16) << w;
}

__global__ void block_sum(const unsigned* in, unsigned* out) {
  SLUICE_DYNAMIC_SHARED(unsigned, tile);
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) tile[threadIdx.x] += tile[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = tile[0];
}

TEST_F(Shim, BarriersOrderSharedMemory) {
  std::vector<unsigned> in(1024);
  std::iota(in.begin(), in.end(), 0u);
  unsigned out = 0;
  ASSERT_EQ(launch(block_sum, 1, 1024, 4096, nullptr, in.data(), &out), cudaSuccess);
  EXPECT_EQ(out, 1023u * 512);
}

__global__ void static_shared(int* out) {
  __shared__ int slot[64];
  slot[threadIdx.x] = static_cast<int>(threadIdx.x + blockIdx.x);
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = slot[63 - threadIdx.x];
}

TEST_F(Shim, StaticSharedMemoryBelongsToTheBlock) {
  std::vector<int> out(128);
  ASSERT_EQ(launch(static_shared, 2, 64, 0, nullptr, out.data()), cudaSuccess);
  EXPECT_EQ(out[0], 63);
  EXPECT_EQ(out[127], 1);
}

__global__ void count_everything(unsigned* counters) {
  atomicAdd(&counters[0], 1u);
  atomicMax(&counters[1], threadIdx.x);
  atomicOr(&counters[2], 1u << threadIdx.x % 32);
  unsigned seen = counters[3];
  while (atomicCAS(&counters[3], seen, seen + 2) != seen) seen = counters[3];
}

TEST_F(Shim, AtomicsFromSeveralHostThreadsLoseNothing) {
  unsigned counters[4] = {};
  std::vector<std::thread> hosts;
  for (int i = 0; i < 4; ++i)
    hosts.emplace_back([&] { EXPECT_EQ(launch(count_everything, 8, 128, 0, nullptr, counters), cudaSuccess); });
  for (auto& host : hosts) host.join();
  EXPECT_EQ(counters[0], 4096u);
  EXPECT_EQ(counters[1], 127u);
  EXPECT_EQ(counters[2], ~0u);
  EXPECT_EQ(counters[3], 8192u);
}

__global__ void diverge(unsigned* out) {
  const unsigned lane = threadIdx.x;
  const unsigned half = lane < 16 ? 0xFFFFu : 0xFFFF0000u;
  unsigned votes;
  if (lane < 16)
    votes = __ballot_sync(half, lane % 2 == 0);
  else
    votes = __ballot_sync(half, lane % 4 == 0);
  out[lane] = votes;
}

TEST_F(Shim, DivergedHalvesVoteApart) {
  std::vector<unsigned> out(32);
  ASSERT_EQ(launch(diverge, 1, 32, 0, nullptr, out.data()), cudaSuccess);
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane < 16 ? 0x5555u : 0x11110000u) << lane;
}

__global__ void loops_of_different_length(unsigned* out) {
  unsigned sum = 0;
  for (unsigned i = 0; i < threadIdx.x; ++i) sum += i;
  __syncwarp();
  out[threadIdx.x] = __shfl_sync(~0u, sum, 31);
}

TEST_F(Shim, LanesMeetAgainAfterDivergentLoops) {
  std::vector<unsigned> out(32);
  ASSERT_EQ(launch(loops_of_different_length, 1, 32, 0, nullptr, out.data()), cudaSuccess);
  EXPECT_THAT(out, testing::Each(31u * 30 / 2));
}

__global__ void leave_early(unsigned* out) {
  if (threadIdx.x >= 20) return;
  out[threadIdx.x] = __popc(__ballot_sync(~0u, 1));
}

TEST_F(Shim, WarpCollectivesGoOnWithoutReturnedLanes) {
  std::vector<unsigned> out(20);
  ASSERT_EQ(launch(leave_early, 1, 32, 0, nullptr, out.data()), cudaSuccess);
  EXPECT_THAT(out, testing::Each(20u));
}

__global__ void collectives(unsigned* out) {
  const unsigned lane = threadIdx.x;
  out[0 * 32 + lane] = __shfl_up_sync(~0u, lane, 3);
  out[1 * 32 + lane] = __shfl_xor_sync(~0u, lane, 5);
  out[2 * 32 + lane] = __shfl_sync(~0u, lane, 1, 8);
  out[3 * 32 + lane] = __match_any_sync(~0u, lane % 3);
  out[4 * 32 + lane] = __reduce_add_sync(~0u, lane);
  out[5 * 32 + lane] = __reduce_min_sync(~0u, lane + 7);
  out[6 * 32 + lane] = static_cast<unsigned>(__any_sync(~0u, lane == 9)) << 1 | __all_sync(~0u, lane < 32);
  out[7 * 32 + lane] = static_cast<unsigned>(__syncthreads_count(lane % 4 == 0));
}

TEST_F(Shim, CollectivesGiveWhatTheManualSays) {
  std::vector<unsigned> out(8 * 32);
  ASSERT_EQ(launch(collectives, 1, 32, 0, nullptr, out.data()), cudaSuccess);
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], lane < 3 ? lane : lane - 3);
    EXPECT_EQ(out[32 + lane], lane ^ 5);
    EXPECT_EQ(out[64 + lane], (lane & ~7u) + 1);
    EXPECT_EQ(out[96 + lane], (lane % 3 == 0 ? 0x49249249u : lane % 3 == 1 ? 0x92492492u : 0x24924924u));
    EXPECT_EQ(out[128 + lane], 496u);
    EXPECT_EQ(out[160 + lane], 7u);
    EXPECT_EQ(out[192 + lane], 3u);
    EXPECT_EQ(out[224 + lane], 8u);
  }
}

TEST(ShimBits, IntrinsicsMatchTheirDefinition) {
  EXPECT_EQ(__byte_perm(0x33221100u, 0x77665544u, 0x7531), 0x77553311u);
  EXPECT_EQ(__byte_perm(0x80u, 0, 0x8888), 0xFFFFFFFFu);
  EXPECT_EQ(__funnelshift_l(0x80000000u, 1u, 1), 3u);
  EXPECT_EQ(__funnelshift_r(0x10u, 0xFu, 4), 0xF0000001u);
  EXPECT_EQ(__brev(1u), 0x80000000u);
  EXPECT_EQ(__ffs(0x10), 5);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__umulhi(0xFFFFFFFFu, 0x10u), 15u);
  EXPECT_EQ(__vsadu4(0x01020304u, 0), 10u);
  EXPECT_EQ(__dp4a(0x01020304u, 0x01010101u, 5), 15u);
}

// What a GPU would hang on, or do wrong without a word.
__global__ void barrier_in_a_branch(int* out) {
  if (threadIdx.x != 5) __syncthreads();
  *out = 1;
}
__global__ void barrier_in_both_branches(int* out) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  *out = 1;
}
__global__ void shuffle_without_a_lane(int* out) {
  if (threadIdx.x % 32 == 7) {
    __syncthreads();
  } else {
    *out = __shfl_sync(~0u, 1, 0);
    __syncthreads();
  }
}
__global__ void mask_without_itself(int* out) {
  *out = static_cast<int>(__ballot_sync(0xFFu, 1));
}
__global__ void misaligned(int* out) {
  *out = static_cast<int>(__ldg(reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(out) + 2)).x);
}
__global__ void waits_for_another_block(int* out) {
  while (*static_cast<volatile int*>(out) == 0) __nanosleep(10);
}

struct Hang {
  const char* name;
  void (*kernel)(int*);
  const char* says;
  const char* missing;
};

class ShimHang : public testing::TestWithParam<Hang> {};

TEST_P(ShimHang, IsReportedAndTheDeviceIsBroken) {
  alignas(16) int out[8] = {};
  EXPECT_EQ(launch(GetParam().kernel, 2, 64, 0, nullptr, out), cudaErrorLaunchFailure);
  EXPECT_THAT(simt::last_report(),
              AllOf(HasSubstr("block (0,0,0): "), HasSubstr(GetParam().says), HasSubstr(GetParam().missing)));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure) << "the device stays broken";
  simt::clear_faults();
  EXPECT_EQ(launch(static_shared, 1, 1, 0, nullptr, out), cudaSuccess) << "the shim itself is sound after it";
}

INSTANTIATE_TEST_SUITE_P(
    all, ShimHang,
    testing::Values(Hang{"barrier_in_a_branch", barrier_in_a_branch, "thread (0,0,0) waits at __syncthreads",
                         "thread (5,0,0) has returned"},
                    Hang{"barrier_in_both_branches", barrier_in_both_branches,
                         "thread (0,0,0) waits at __syncthreads (", "but thread (32,0,0) waits at __syncthreads ("},
                    Hang{"shuffle_without_a_lane", shuffle_without_a_lane, "waits at __shfl_sync (",
                         "but thread (7,0,0) waits at __syncthreads ("},
                    Hang{"mask_without_itself", mask_without_itself, "thread (8,0,0) has no bit in the mask",
                         "__ballot_sync"},
                    Hang{"misaligned", misaligned, "thread (0,0,0) reads", "misaligned"},
                    Hang{"waits_for_another_block", waits_for_another_block, "spin for ever", "block"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Shim, LaunchLimitsAreTheGpus) {
  int out[64];
  EXPECT_EQ(launch(static_shared, 1, 1025, 0, nullptr, out), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(static_shared, 0, 32, 0, nullptr, out), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(static_shared, 1, 32, 64 << 10, nullptr, out), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(static_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10), cudaSuccess);
  EXPECT_EQ(launch(static_shared, 1, 32, 64 << 10, nullptr, out), cudaSuccess);
}

TEST_F(Shim, MemoryIsPoisonedCountedAndCopied) {
  unsigned char* device = nullptr;
  const std::size_t before = simt::device_bytes();
  ASSERT_EQ(cudaMalloc(&device, 100), cudaSuccess);
  EXPECT_EQ(device[99], 0xAB);
  EXPECT_EQ(simt::device_bytes(), before + 100);
  const unsigned char rows[3][8] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  ASSERT_EQ(cudaMemcpy2DAsync(device, 4, rows, 8, 3, 3, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(device[2], 3);
  EXPECT_EQ(device[3], 0xAB);
  EXPECT_EQ(device[8], 7);
  EXPECT_EQ(cudaMemcpy2DAsync(device, 2, rows, 8, 3, 3, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  ASSERT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(simt::device_bytes(), before);
}

TEST_F(Shim, RegisteredRangesDoNotOverlap) {
  std::vector<char> memory(4096);
  ASSERT_EQ(cudaHostRegister(memory.data(), 2048, cudaHostRegisterMapped), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(memory.data() + 1024, 2048, cudaHostRegisterMapped), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostUnregister(memory.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(memory.data()), cudaErrorHostMemoryNotRegistered);
}

TEST_F(Shim, FaultsStrikeWhenAsked) {
  int count = 0;
  simt::fail_calls(2, 1);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorUnknown);
  const auto error = SLUICE_CUDA_CHECK(cudaGetDeviceCount(&count));
  ASSERT_FALSE(error);
  EXPECT_THAT(error.error().message,
              AllOf(HasSubstr("cudaGetDeviceCount(&count) failed: unknown error"), HasSubstr("shim_test.cc:")));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the check clears it";
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  simt::fail_calls(1, 0, true);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorUnknown);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorUnknown) << "a broken device stays broken";
}

}  // namespace
}  // namespace sluice::device
