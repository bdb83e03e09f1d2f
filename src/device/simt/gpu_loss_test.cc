// A GPU whose work does not end, or whose driver hangs: nothing waits for it, and what it may still use is not given
// back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "device/gpu.h"
#include "device/simt/fault.h"

namespace sluice::device {
namespace {

class GpuLoss : public testing::Test {
 protected:
  void TearDown() override { simt::clear_faults(); }
};

TEST_F(GpuLoss, AMarkOfABusyDeviceIsPendingUntilItEnds) {
  auto gpu = Gpu::open(0, 1);
  ASSERT_TRUE(gpu);
  GpuStream& stream = (*gpu)->stream(0);
  ASSERT_TRUE(stream.mark());
  simt::keep_busy(true);
  ASSERT_TRUE(stream.mark());
  EXPECT_EQ(stream.poll(), MarkState::done) << "it was before";
  EXPECT_EQ(stream.poll(), MarkState::pending);
  (*gpu)->lose("it is silent", Gone::silent);
  EXPECT_EQ(stream.poll(), MarkState::pending) << "the device still works";
  simt::keep_busy(false);
  EXPECT_EQ(stream.poll(), MarkState::failed);
}

TEST_F(GpuLoss, OneThatHasEndedAfterAllGivesItsMemoryBack) {
  const auto pinned = simt::pinned_bytes();
  {
    auto gpu = Gpu::open(0, 2);
    ASSERT_TRUE(gpu);
    ASSERT_TRUE((*gpu)->allocate_host(1000));
    simt::keep_busy(true);
    ASSERT_TRUE((*gpu)->stream(1).mark());
    (*gpu)->lose("it is silent", Gone::silent);
    EXPECT_FALSE(Gpu::open(0, 1));
    simt::keep_busy(false);
  }
  EXPECT_EQ(simt::pinned_bytes(), pinned);
  EXPECT_TRUE(Gpu::open(0, 1));
}

// What is lost with it stays lost, so each is a process of its own.
void expect_nothing_waits(Gone how) {
  std::vector<char> own(8192);
  auto gpu = Gpu::open(0, 1);
  if (!gpu || !(*gpu)->allocate_host(1000) || !(*gpu)->register_host(own.data(), own.size())) std::_Exit(2);
  auto memory = (*gpu)->allocate_device(1000);
  if (!memory || !(*gpu)->stream(0).mark()) std::_Exit(3);
  how == Gone::hangs ? simt::block_calls(true) : simt::keep_busy(true);
  (*gpu)->lose("for a test", how);
  *memory = {};
  gpu->reset();
  if (simt::waits_made() != 0) std::_Exit(4);
  if (simt::device_bytes() < 1000 || simt::pinned_bytes() < 1000 + own.size()) std::_Exit(5);
  simt::clear_faults();
  const auto again = Gpu::open(0, 1);
  if (again || again.error().message.find("did not end") == std::string::npos) std::_Exit(6);
  std::_Exit(0);
}

TEST_F(GpuLoss, NothingWaitsForAKernelThatNeverEnds) {
  EXPECT_EXIT(expect_nothing_waits(Gone::silent), testing::ExitedWithCode(0), "");
}

TEST_F(GpuLoss, NothingWaitsForADriverThatHangs) {
  EXPECT_EXIT(expect_nothing_waits(Gone::hangs), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sluice::device
