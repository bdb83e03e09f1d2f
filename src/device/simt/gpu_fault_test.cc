// What happens when CUDA calls fail, one after the other: needs the shim's faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "device/gpu.h"
#include "device/simt/fault.h"

namespace sluice::device {
namespace {

class GpuFault : public testing::Test {
 protected:
  void TearDown() override { simt::clear_faults(); }
};

TEST_F(GpuFault, EveryFailingCallOfOpenIsAnErrorAndLeaksNothing) {
  const unsigned long before = simt::calls_made();
  ASSERT_TRUE(Gpu::open(0, 1));
  const unsigned long calls = simt::calls_made() - before - 2;  // closing sets the device and waits for it
  ASSERT_GT(calls, 60u);
  for (unsigned skip = 0; skip < calls; ++skip) {
    simt::fail_calls(1, skip);
    EXPECT_FALSE(Gpu::open(0, 1)) << "call " << skip;
    simt::clear_faults();
  }
}

TEST_F(GpuFault, ABrokenDeviceFailsItsMarksAndSaysWhy) {
  auto gpu = Gpu::open(0, 1);
  ASSERT_TRUE(gpu);
  GpuStream& stream = (*gpu)->stream(0);
  ASSERT_TRUE(stream.mark());
  ASSERT_TRUE(stream.mark());
  simt::fail_calls(1, 0, true);
  EXPECT_EQ(stream.poll(), MarkState::failed);
  EXPECT_EQ(stream.poll(), MarkState::failed);
  EXPECT_TRUE((*gpu)->lost());
  EXPECT_THAT((*gpu)->why(), testing::HasSubstr("unknown error"));
}

TEST_F(GpuFault, ABrokenDeviceIsANewOneBehindAReset) {
  std::vector<char> own(8192);
  auto gpu = Gpu::open(0, 2);
  ASSERT_TRUE(gpu);
  ASSERT_TRUE((*gpu)->register_host(own.data(), own.size()));
  ASSERT_TRUE((*gpu)->allocate_host(1000));
  const auto pinned = simt::pinned_bytes();
  GpuStream& stream = (*gpu)->stream(1);
  ASSERT_TRUE(stream.mark());
  simt::fail_calls(1, 0, true);
  EXPECT_EQ(stream.poll(), MarkState::failed);
  EXPECT_FALSE(stream.mark());
  EXPECT_TRUE((*gpu)->has_ended());
  const auto done = (*gpu)->reset();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_FALSE((*gpu)->lost());
  EXPECT_EQ((*gpu)->why(), "");
  EXPECT_EQ(stream.pending_marks(), 0U);
  ASSERT_TRUE(stream.mark());
  EXPECT_EQ(stream.poll(), MarkState::done);
  EXPECT_EQ(simt::pinned_bytes(), pinned - 1000 - own.size());
  EXPECT_TRUE((*gpu)->register_host(own.data(), own.size()));
  EXPECT_TRUE((*gpu)->allocate_device(64));
}

TEST_F(GpuFault, AResetThatFailsMayBeTriedAgain) {
  auto gpu = Gpu::open(0, 1);
  ASSERT_TRUE(gpu);
  const unsigned long before = simt::calls_made();
  (*gpu)->lose("for a test");
  ASSERT_TRUE((*gpu)->reset());
  const auto calls = static_cast<unsigned>(simt::calls_made() - before);
  unsigned failed = 0;
  for (unsigned skip = 0; skip < calls; ++skip) {
    (*gpu)->lose("for a test");
    simt::fail_calls(1, skip);
    const bool done = (*gpu)->reset().has_value();
    failed += done ? 0 : 1;
    EXPECT_EQ((*gpu)->lost(), !done);
    simt::clear_faults();
    ASSERT_TRUE(done || (*gpu)->reset());
  }
  EXPECT_GT(failed, GpuStream::max_marks) << "each of the stream's marks is made anew";
}

TEST_F(GpuFault, AMarkThatCannotBeSetLosesTheDevice) {
  auto gpu = Gpu::open(0, 1);
  ASSERT_TRUE(gpu);
  simt::fail_calls(1);
  EXPECT_FALSE((*gpu)->stream(0).mark());
  EXPECT_TRUE((*gpu)->lost());
}

TEST_F(GpuFault, MemoryIsGivenBack) {
  const auto device = simt::device_bytes(), pinned = simt::pinned_bytes();
  std::vector<char> own(8192);
  DeviceMemory outlives;
  {
    auto gpu = Gpu::open(0, 1);
    ASSERT_TRUE(gpu);
    auto memory = (*gpu)->allocate_device(1000);
    ASSERT_TRUE(memory);
    ASSERT_TRUE((*gpu)->allocate_host(1000));
    ASSERT_TRUE((*gpu)->register_host(own.data(), own.size()));
    EXPECT_EQ(simt::device_bytes(), device + 1000);
    EXPECT_EQ(simt::pinned_bytes(), pinned + 1000 + own.size());
    outlives = std::move(*memory);
    EXPECT_EQ(outlives.bytes(), 1000U);
    outlives = std::move(*(*gpu)->allocate_device(500));
    EXPECT_EQ(simt::device_bytes(), device + 500) << "the first one is gone";
  }
  EXPECT_EQ(simt::device_bytes(), device + 500);
  outlives = {};
  EXPECT_FALSE(outlives);
  EXPECT_EQ(simt::device_bytes(), device);
  EXPECT_EQ(simt::pinned_bytes(), pinned);
}

TEST_F(GpuFault, WithoutADeviceTheErrorSaysSo) {
  simt::fail_calls(1);
  const auto gpus = list_gpus();
  ASSERT_FALSE(gpus);
  EXPECT_THAT(gpus.error().message, testing::StartsWith("no GPU: "));
}

}  // namespace
}  // namespace sluice::device
