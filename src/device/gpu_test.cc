// The GPU as the engine sees it: runs on the SIMT shim, and on a real GPU as sluice_device_gputest.
#include "device/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "../tests/support/gpu.h"

namespace sluice::device {
namespace {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    auto gpu = Gpu::open(0, 2);
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_ = std::move(*gpu);
  }
  static MarkState wait(GpuStream& stream) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    MarkState state = MarkState::pending;
    while (state == MarkState::pending && std::chrono::steady_clock::now() < until) state = stream.poll();
    return state;
  }
  std::unique_ptr<Gpu> gpu_;
};

TEST_F(GpuTest, SaysWhatItIs) {
  EXPECT_EQ(gpu_->info().index, 0);
  EXPECT_FALSE(gpu_->info().name.empty());
  EXPECT_GT(gpu_->info().multiprocessors, 0);
  EXPECT_GT(gpu_->info().memory_bytes, 1u << 30);
  EXPECT_EQ(gpu_->stream_count(), 2u);
  EXPECT_NE(gpu_->stream(0).raw(), gpu_->stream(1).raw());
}

TEST_F(GpuTest, AGpuThatIsNotThereIsAnErrorWithTheCount) {
  const auto gpu = Gpu::open(99, 1);
  ASSERT_FALSE(gpu);
  EXPECT_THAT(gpu.error().message, testing::HasSubstr("no GPU with index 99: this machine has"));
}

TEST_F(GpuTest, PinnedMemoryIsZeroedAndRegisteredMemoryIsAcceptedOnce) {
  auto memory = gpu_->allocate_host(10'000);
  ASSERT_TRUE(memory) << memory.error().message;
  const auto* bytes = static_cast<const unsigned char*>(*memory);
  EXPECT_TRUE(std::all_of(bytes, bytes + 10'000, [](unsigned char b) { return b == 0; }));

  void* own = std::aligned_alloc(4096, 1 << 20);
  std::memset(own, 1, 1 << 20);
  EXPECT_TRUE(gpu_->register_host(own, 1 << 20));
  const auto twice = gpu_->register_host(own, 1 << 20);
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, testing::HasSubstr("cudaHostRegister"));
  EXPECT_FALSE(gpu_->lost()) << "a refused registration does not break the device";
  gpu_.reset();
  std::free(own);
}

TEST_F(GpuTest, MarksAreAnsweredInOrderAndOnlySoManyArePending) {
  GpuStream& stream = gpu_->stream(0);
  EXPECT_EQ(stream.poll(), MarkState::done) << "nothing pending";
  for (int round = 0; round < 3; ++round) {  // the ring of marks wraps
    for (unsigned i = 0; i < GpuStream::max_marks; ++i) ASSERT_TRUE(stream.mark());
    EXPECT_EQ(stream.pending_marks(), GpuStream::max_marks);
    EXPECT_FALSE(stream.mark());
    for (unsigned i = 0; i < GpuStream::max_marks; ++i) ASSERT_EQ(wait(stream), MarkState::done);
    EXPECT_EQ(stream.pending_marks(), 0u);
  }
}

TEST_F(GpuTest, ALostGpuFailsPendingMarksAndEveryLaterCall) {
  GpuStream& stream = gpu_->stream(1);
  ASSERT_TRUE(stream.mark());
  gpu_->lose("for a test");
  EXPECT_TRUE(gpu_->lost());
  EXPECT_THAT(gpu_->why(), testing::HasSubstr("for a test"));
  EXPECT_EQ(stream.poll(), MarkState::failed);
  EXPECT_EQ(stream.pending_marks(), 0u);
  EXPECT_FALSE(stream.mark());
  EXPECT_FALSE(gpu_->allocate_host(64));
  EXPECT_FALSE(gpu_->allocate_device(64));
  int memory;
  EXPECT_FALSE(gpu_->register_host(&memory, sizeof memory));
}

}  // namespace
}  // namespace sluice::device
