// What is said of a host that gives too few files, or media's ports to others.
#include "control/rtsp/host_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice::control::rtsp {
namespace {

using testing::AllOf;
using testing::HasSubstr;

function::RtspOptions explicit_options(std::uint16_t first, std::uint16_t last) {
  function::RtspOptions options;
  options.listen = {*packet::IpAddress::parse("10.1.0.1")};
  options.first_media_port = first;
  options.last_media_port = last;
  return options;
}

TEST(HostLimits, MediaPortsThatTheHostGivesAway) {
  const struct {
    const char* what;
    std::uint16_t first, last;
    const char* reserved;
    const char* said;  // empty: nothing
  } cases[] = {
      {"below", 20000, 29999, "", ""},
      {"the last one", 20000, 32769, "", "may be given 32768-32769 (net.ipv4.ip_local_port_range is 32768-60999)"},
      {"the first one", 60998, 65535, "", "may be given 60998-60999 "},
      {"inside", 40000, 40999, "", "sysctl -w net.ipv4.ip_local_reserved_ports=40000-40999, or set media_ports"},
      {"above", 61000, 65535, "", ""},
      {"reserved", 40000, 40999, "80,40000-40999", ""},
      {"reserved in pieces", 40000, 40003, "40002-40003,40000,40001", ""},
      {"all but one reserved", 40000, 40999, "80,40001-40999", "ip_local_reserved_ports=80,40001-40999,40000-40999, "},
  };
  for (const auto& [what, first, last, reserved, said] : cases) {
    const HostLimits limits{
        .files = 0, .first_local_port = 32768, .last_local_port = 60999, .reserved_ports = reserved};
    const std::string note = media_ports_note(explicit_options(first, last), limits);
    if (*said == '\0') {
      EXPECT_EQ(note, "") << what;
    } else {
      EXPECT_THAT(note, HasSubstr(said)) << what;
    }
    function::RtspOptions transparent = explicit_options(first, last);
    transparent.listen.clear();
    EXPECT_EQ(media_ports_note(transparent, limits), "") << what;
    EXPECT_EQ(media_ports_note(explicit_options(first, last), HostLimits()), "") << what;
  }
}

TEST(HostLimits, FilesThatMaxConnectionsNeeds) {
  function::RtspOptions options;
  options.max_connections = 1000;
  EXPECT_EQ(files_for(1000), 2256U);
  EXPECT_EQ(files_note(options, 2256), "");
  EXPECT_EQ(files_note(options, 0), "") << "not known";
  EXPECT_THAT(files_note(options, 1024),
              AllOf(HasSubstr("max_connections = 1000 takes 2256 open files, and here 1024 "),
                    HasSubstr("for some 384 connections")));
  EXPECT_THAT(files_note(options, 100), HasSubstr("for some 0 connections"));
}

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
    const std::uint64_t raised = raise_file_limit(1000);
    rlimit now{};
    getrlimit(RLIMIT_NOFILE, &now);
    if (raised != now.rlim_cur) _exit(2);
    const bool all = raised == files_for(1000) && host_limits().files >= raised;
    _exit(all || raised == 300 ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sluice::control::rtsp
