#include "base/host_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice {
namespace {

TEST(HostLimits, AreReadFromTheHost) {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("sluice-limits-" + std::to_string(getpid()));
  std::filesystem::create_directories(root / "proc/sys/net/ipv4");
  std::ofstream(root / "proc/sys/net/ipv4/ip_local_port_range") << "32768\t60999\n";
  std::ofstream(root / "proc/sys/net/ipv4/ip_local_reserved_ports") << "80,90-91\n";
  const HostLimits limits = host_limits(root.string());
  EXPECT_EQ(limits.first_local_port, 32768);
  EXPECT_EQ(limits.last_local_port, 60999);
  EXPECT_EQ(limits.reserved_ports, "80,90-91");
  EXPECT_NE(limits.files, 0U);
  std::ofstream(root / "proc/sys/net/ipv4/ip_local_reserved_ports") << "\n";
  EXPECT_EQ(host_limits(root.string()).reserved_ports, "");
  std::filesystem::remove_all(root);
  EXPECT_EQ(host_limits(root.string()).last_local_port, 0) << "no such files";
}

// In a process of its own: a hard limit that was lowered comes back by a privilege alone.
TEST(HostLimits, AreRaisedAsFarAsTheyMayBe) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit low{64, 300};
    if (setrlimit(RLIMIT_NOFILE, &low) != 0) _exit(1);
    const std::uint64_t raised = raise_file_limit(2256);
    rlimit now{};
    getrlimit(RLIMIT_NOFILE, &now);
    if (raised != now.rlim_cur) _exit(2);
    const bool all = raised == 2256 && host_limits().files >= raised;
    _exit(all || raised == 300 ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sluice
