// What is said of a host that gives too few files, or media's ports to others.
#include "function/srtp/rtsp/host_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::function::rtsp {
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

TEST(HostNotes, MediaPortsThatTheHostGivesAway) {
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

TEST(HostNotes, FilesThatMaxConnectionsNeeds) {
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

}  // namespace
}  // namespace sluice::function::rtsp
