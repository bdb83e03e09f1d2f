#include "port/eal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/machine.h"

namespace sluice::port {
namespace {

// Before DPDK, which runs in this program already, is asked.
TEST(Eal, MoreMemoryThanTheMachineHasIsRefusedWithWhatThereIs) {
  MemoryOptions memory;
  memory.size = 1ULL << 40;
  const auto started = start_eal(memory, {});
  ASSERT_FALSE(started);
  const std::string& message = started.error().message;
  EXPECT_TRUE(message.starts_with("[memory] size: 1048576 MB are needed, and ")) << message;
  EXPECT_NE(message.find(available_memory().limited ? "control group" : " MB available (MemAvailable) and "),
            std::string::npos)
      << message;
  EXPECT_NE(message.find(": set size = \""), std::string::npos) << message;
  const auto checked = check_memory(memory, {});
  ASSERT_FALSE(checked) << "sluice check would say nothing";
  EXPECT_TRUE(checked.error().message.starts_with("[memory] size: 1048576 MB are needed, and "));
  memory.size = 64 << 20;
  EXPECT_TRUE(check_memory(memory, {}));
  PortOptions port;
  port.device = "net_af_packet0,iface=a,framecnt=262144";
  port.queues = 64;
  const auto rings = check_memory(memory, {64, port});
  ASSERT_FALSE(rings);
  EXPECT_NE(rings.error().message.find("and 2097152 MB for the rings of packet sockets (framecnt=)"), std::string::npos)
      << rings.error().message;
}

TEST(Eal, DriversWhereAnyoneMayWriteAreRefusedWithTheFolder) {
  const std::filesystem::path open =
      std::filesystem::canonical(testing::TempDir()) / ("eal-" + std::to_string(getpid()));
  std::filesystem::create_directories(open / "pmds");
  std::filesystem::permissions(open, std::filesystem::perms::all);
  setenv("SLUICE_PMD_DIR", (open / "pmds").c_str(), 1);
  MemoryOptions memory;
  memory.size = 64 << 20;
  const auto started = start_eal(memory, {});
  unsetenv("SLUICE_PMD_DIR");
  std::filesystem::remove_all(open);
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("anyone may write to " + open.string() + ", so DPDK refuses them"),
            std::string::npos)
      << started.error().message;
}

}  // namespace
}  // namespace sluice::port
