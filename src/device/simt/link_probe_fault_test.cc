// The probe against calls that fail: an error each time, and no memory left behind.
#include <gtest/gtest.h>

#include "device/link_probe.h"
#include "device/simt/fault.h"

namespace sluice::device {
namespace {

TEST(LinkProbeFault, EveryFailingCallIsAnErrorAndMemoryIsGivenBack) {
  auto gpu = Gpu::open(0, 1);
  ASSERT_TRUE(gpu);
  const LinkProbeOptions options{.quick = true, .bytes = 1 << 20, .seconds_each = 0};
  const std::size_t device = simt::device_bytes(), pinned = simt::pinned_bytes();
  for (unsigned skip = 1; skip < 60; ++skip) {  // call 0 makes the device current; its fault shows in the next
    simt::fail_calls(1, skip);
    EXPECT_FALSE(probe_link(**gpu, options)) << "call " << skip;
    simt::clear_faults();
    ASSERT_EQ(simt::device_bytes(), device) << "call " << skip;
    ASSERT_EQ(simt::pinned_bytes(), pinned) << "call " << skip;
  }
}

}  // namespace
}  // namespace sluice::device
