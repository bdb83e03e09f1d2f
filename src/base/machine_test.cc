#include "base/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

namespace sluice {
namespace {

TEST(Machine, AllowedCoresAreThoseOfTheThread) {
  const std::vector<int> all = allowed_cores();
  ASSERT_FALSE(all.empty());
  std::vector<int> pinned;
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(all.back(), &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    pinned = allowed_cores();
  }).join();
  EXPECT_EQ(pinned, std::vector<int>{all.back()});
}

TEST(Machine, EveryCoreHasANode) {
  for (const int core : allowed_cores()) {
    EXPECT_GE(numa_node_of_core(core), 0);
  }
}

TEST(Machine, ADeviceMayHaveNoNode) {
  const std::string folder = std::filesystem::temp_directory_path() / ("machine-test-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  EXPECT_EQ(numa_node_of_device(folder), -1);
  std::ofstream(folder + "/numa_node") << "1\n";
  EXPECT_EQ(numa_node_of_device(folder), 1);
  std::ofstream(folder + "/numa_node") << "-1\n";
  EXPECT_EQ(numa_node_of_device(folder), -1);
  std::filesystem::remove_all(folder);
}

TEST(Machine, MemoryThatIsTouchedIsResident) {
  constexpr std::size_t size = 64 << 20;
  const std::uint64_t before = resident_bytes();
  const auto memory = std::make_unique<char[]>(size);
  std::memset(memory.get(), 1, size);
  EXPECT_NE(memory[size / 2], 0);
  EXPECT_GE(resident_bytes(), before + size / 2);
}

}  // namespace
}  // namespace sluice
