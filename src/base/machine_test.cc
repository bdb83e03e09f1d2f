#include "base/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
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

TEST(Machine, SaysWhatTheResidentMemoryLeavesOut) {
  EXPECT_TRUE(std::regex_match(resident_text(false), std::regex("[1-9][0-9]* MB resident")));
  EXPECT_TRUE(std::regex_match(resident_text(true), std::regex("[1-9][0-9]* MB resident besides the hugepages")));
}

// A tree with /proc and /sys in which 4 GB are available.
class MachineMemory : public testing::Test {
 protected:
  MachineMemory() { write("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable:    4194304 kB\n"); }
  ~MachineMemory() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string said() const {
    const AvailableMemory memory = available_memory(root_);
    return std::to_string(memory.bytes >> 20) + (memory.limited ? " of the group" : " of the machine");
  }

  std::string root_ = testing::TempDir() + "machine-memory-" + std::to_string(getpid());
};

constexpr const char* mega512 = "536870912\n";
constexpr const char* mega128 = "134217728\n";

TEST_F(MachineMemory, WithoutAGroupItIsTheMachines) {
  EXPECT_EQ(said(), "4096 of the machine");
  write("/proc/self/cgroup", "0::/user.slice\n");
  write("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  EXPECT_EQ(said(), "4096 of the machine");
}

TEST_F(MachineMemory, AGroupLeavesItsLimitLessWhatItHolds) {
  write("/proc/self/cgroup", "0::/system.slice/sluice.service\n");
  write("/sys/fs/cgroup/system.slice/sluice.service/memory.max", mega512);
  write("/sys/fs/cgroup/system.slice/sluice.service/memory.current", mega128);
  EXPECT_EQ(said(), "384 of the group");
  write("/sys/fs/cgroup/system.slice/sluice.service/memory.stat", "anon 67108864\ninactive_file 67108864\n");
  EXPECT_EQ(said(), "448 of the group") << "page cache can go";
  write("/sys/fs/cgroup/system.slice/memory.max", mega128);
  EXPECT_EQ(said(), "128 of the group") << "the group above has less";
}

TEST_F(MachineMemory, AContainerSeesItsOwnGroupWhereTheHostsWouldBe) {
  write("/proc/self/cgroup", "12:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", mega512);
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", mega128);
  EXPECT_EQ(said(), "384 of the group");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(said(), "4096 of the machine");
}

// `ip netns exec` mounts a /sys without control groups.
TEST_F(MachineMemory, AGroupIsSeenThroughTheFirstProcessWhenSysIsNew) {
  write("/proc/self/cgroup", "0::/system.slice/sluice.service\n");
  std::filesystem::create_directories(root_ + "/sys/fs/cgroup");
  EXPECT_EQ(said(), "4096 of the machine") << "its root cannot be read";
  write("/proc/1/root/sys/fs/cgroup/system.slice/sluice.service/memory.max", mega512);
  EXPECT_EQ(said(), "512 of the group");
  write("/sys/fs/cgroup/system.slice/sluice.service/memory.max", mega128);
  EXPECT_EQ(said(), "128 of the group") << "what is mounted here comes first";
}

TEST_F(MachineMemory, AGroupOfVersion1IsSeenThroughTheFirstProcessToo) {
  write("/proc/self/cgroup", "4:memory:/docker/1\n");
  write("/proc/1/root/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", mega512);
  EXPECT_EQ(said(), "512 of the group");
}

TEST_F(MachineMemory, SaysItsProcessor) {
  EXPECT_THAT(machine_text(root_), testing::StartsWith("unknown processor, "));
  write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: A: Processor\nflags\t\t: x\nmodel name\t: Another\n");
  EXPECT_THAT(machine_text(root_), testing::MatchesRegex("A: Processor, [0-9]+ cores?"));
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
