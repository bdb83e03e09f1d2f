#include "port/eal.h"

#include <gtest/gtest.h>

namespace sluice::port {
namespace {

// Before DPDK, which runs in this program already, is asked.
TEST(Eal, MoreMemoryThanTheMachineHasIsRefusedWithWhatThereIs) {
  MemoryOptions memory;
  memory.size = 1ULL << 40;
  const auto started = start_eal(memory, {});
  ASSERT_FALSE(started);
  const std::string& message = started.error().message;
  EXPECT_EQ(message.rfind("[memory] size: 1048576 MB are needed, and this machine has ", 0), 0U) << message;
  EXPECT_NE(message.find(" MB available (MemAvailable) and "), std::string::npos) << message;
}

}  // namespace
}  // namespace sluice::port
