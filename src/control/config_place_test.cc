// What is found wrong after the file has been read: where it says so, and the files and sizes that are checked then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "control/config.h"
#include "control/pipeline_maker.h"
#include "control/sample_config.h"

namespace sluice::control {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RouteTableFile : public testing::Test {
 protected:
  ~RouteTableFile() override { std::remove(path_.c_str()); }
  std::vector<std::string> mistakes(const std::string& table, const std::string& more = "") {
    std::ofstream(path_) << table;
    Config config = Config::from_text(good_port + "[route]\ntable = \"" + path_ + "\"\n" + more, "r.toml");
    EXPECT_TRUE(config.ok()) << config.mistakes();
    const auto pipeline = make_checked_pipeline(config, described_ports(config.engine));
    EXPECT_EQ(pipeline.has_value(), config.ok());
    return config.diagnostics().lines;
  }
  std::string path_ = testing::TempDir() + "sluice_table_" + std::to_string(getpid());
};

TEST_F(RouteTableFile, IsReadToItsEndWhenAFileIsChecked) {
  EXPECT_THAT(mistakes("10.0.0.0/8 192.0.2.1\n"), IsEmpty());
  EXPECT_THAT(
      mistakes("10.0.0.0/8 192.0.2.1\n10.0.0.1/8 192.0.2.1\n10.0.0.0/8 wan\n"),
      ElementsAre(path_ + ":2: '10.0.0.1/8' has host bits set; did you mean 10.0.0.0/8?",
                  path_ + ":3: next hop 'wan' is not an IPv4 or IPv6 address; each line is \"prefix gateway\""));
}

TEST_F(RouteTableFile, ThatIsMissingIsTheMistakeOfItsSetting) {
  Config config = Config::from_text(good_port + "[route]\ntable = \"/nowhere/t\"\n", "r.toml");
  EXPECT_FALSE(make_checked_pipeline(config, described_ports(config.engine)));
  EXPECT_THAT(config.diagnostics().lines,
              ElementsAre("r.toml:5: [route] table: /nowhere/t: No such file or directory"));
}

TEST_F(RouteTableFile, TablesThatCannotFitIntoTheMemoryAreNamedWithWhatTheyNeed) {
  EXPECT_THAT(mistakes("", "max_ipv4 = 10_000_000\n"),
              ElementsAre(testing::MatchesRegex(
                  "r.toml:6: \\[route\\] max_ipv4 = 10000000: the tables need [0-9]+M and the frames [0-9]+M, and "
                  "\\[memory\\] size is 2048M: lower max_ipv4 or max_ipv6, or raise \\[memory\\] size to "
                  "\"[0-9]+M\"")));
}

TEST_F(RouteTableFile, RoutesThatTheTablesDoNotHoldAreCounted) {
  EXPECT_THAT(mistakes("10.0.0.0/8 192.0.2.1\n10.0.0.0/8 192.0.2.1\n11.0.0.0/8 192.0.2.1\n", "max_ipv4 = 2\n"),
              IsEmpty());
  EXPECT_THAT(mistakes("2001:db8::/32 fd00::1\n\n10.0.0.0/8 192.0.2.1\n2001:db9::/32 fd00::1\n2001:dba::/32 fd00::1\n",
                       "max_ipv4 = 1\nmax_ipv6 = 1\n"),
              ElementsAre("r.toml:7: [route] max_ipv6 = 1: there are 3 IPv6 routes; the first that does not fit is " +
                          path_ + ":4: 2001:db9::/32: set max_ipv6 = 3 or more"));
  std::string table;
  for (unsigned i = 0; i < 1025; ++i) {
    table += "20." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ".0/25 192.0.2.1\n";
  }
  EXPECT_THAT(mistakes(table, "max_ipv4 = 2000\n"),
              ElementsAre("r.toml:6: [route] max_ipv4 = 2000: there are 1025 IPv4 routes, which need 1025 groups for "
                          "prefixes longer than /24, and there are 1024; the first that does not fit is " +
                          path_ + ":1025: 20.4.0.0/25: set max_ipv4 = 16400 or more"));
}

// Also with a mistake in the function's own section.
TEST_F(RouteTableFile, IsReadWhateverElseIsWrong) {
  std::ofstream(path_) << "10.0.0.1/8 192.0.2.1\n";
  Config config = Config::from_text(good_port + "mtu = 20\n[route]\nkernle = 1\ntable = \"" + path_ + "\"\n", "r.toml");
  EXPECT_FALSE(make_checked_pipeline(config, described_ports(config.engine)));
  EXPECT_THAT(config.mistakes(),
              testing::MatchesRegex("r.toml:4: [^\n]*\nr.toml:6: [^\n]*unknown key[^\n]*\n" + path_ + ":1: [^\n]*"));
}

TEST_F(RouteTableFile, FramesOfAReplayPortAreNamedWhenTheyAreWhatDoesNotFit) {
  Config config = Config::from_text(
      "[memory]\nsize = \"1500M\"\n[[port]]\nname = \"a\"\ndevice = \"replay,frames=100000\"\n", "r.toml");
  EXPECT_FALSE(make_checked_pipeline(config, described_ports(config.engine)));
  EXPECT_THAT(config.mistakes(), testing::StartsWith("r.toml:5: [[port]] device = \"replay,frames=100000\": 100000 "
                                                     "frames for each of its 1 queues take 226M, tables and"));
}

TEST(ConfigPlace, NamesTheLineOfTheSettingThatARefusalIsAbout) {
  const std::string text =
      "[engine]\nchain = [\"probe\"]\ncores = [5]\nworker_core = 5\n"
      "[memory]\nhugepages = \"require\"\n"
      "[[port]]\nname = \"lan\"\ndevice = \"net_null0\"\ntwin = \"sl-lan\"\nmtu = 1600\n"
      "[[port]]\nname = \"wan\"\ndevice = \"net_null1\"\n[probe]\ndepth = 2\n[plugins]\nload = []\n";
  Config config = Config::from_text(text, "r.toml");
  ASSERT_TRUE(config.ok()) << config.mistakes();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[engine] cores: core 5 does not exist", "r.toml:3: "},
      {"[engine] core 5 is both a lane's and the worker's: set worker_core to another core", "r.toml:4: "},
      {"[engine] deadline = 1 us leaves too little", "r.toml:1: "},  // not set: its section
      {"[memory] hugepages = \"require\": 1 MB are needed", "r.toml:6: "},
      {"DPDK did not start: is [memory] size = 1 MB more than there is?", "r.toml:5: "},
      {"[[port]] 'wan' (net_null1): the device does not open", "r.toml:14: "},
      {"[[port]] 'lan' (net_null0): the device does not take mtu = 1600", "r.toml:11: "},
      {"[[port]] 'lan': an interface named 'sl-lan' exists and is no TAP", "r.toml:10: "},
      {"there is no interface 'sl-lan', the TAP twin of port 0", "r.toml:10: "},
      {"[api] listen = \"127.0.0.1:9230\": in use", "r.toml: "},     // no such section
      {"[probe] depth cannot change while it runs", "r.toml:16: "},  // any function's section
      {"[plugins] load cannot change while the gateway runs: restart it", "r.toml:18: "},
      {"something else", "r.toml: "},
      {"my routes.txt:7: 'x' is no prefix", ""},
  };
  for (const auto& [message, place] : cases) EXPECT_EQ(config.placed(message), place + message);
  const std::string long_path(1 << 20, 'x');
  EXPECT_EQ(config.placed("[route] table: " + long_path), "r.toml: [route] table: " + long_path);
  EXPECT_EQ(config.placed("r.toml: port 'lan' mtu = 1600: large"), "r.toml:11: port 'lan' mtu = 1600: large");
  EXPECT_EQ(config.placed("r.toml: something else"), "r.toml: something else");
  EXPECT_EQ(config.placed("r.toml:9: [probe] depth"), "r.toml:9: [probe] depth");
  EXPECT_EQ(config.placed("a:1: one\n[engine] cores: two"), "a:1: one\nr.toml:3: [engine] cores: two");
}

}  // namespace
}  // namespace sluice::control
