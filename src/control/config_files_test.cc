// Files that are written and are something else besides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "control/config.h"

namespace sluice::control {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::StartsWith;

class ConfigFiles : public testing::Test {
 protected:
  ConfigFiles() {
    std::filesystem::create_directory(folder_);
    std::ofstream(file("there")) << "x";
    std::filesystem::create_hard_link(file("there"), file("link"));
  }
  ~ConfigFiles() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

  std::string set(const std::string& key, const std::string& name) const { return key + " = \"" + file(name) + "\"\n"; }
  // What a port that writes the capture is given.
  std::vector<std::string> said_of_capture(const std::string& capture, const std::string& more,
                                           const std::string& name = "none.toml") const {
    return Config::from_text(
               "engine.chain = [\"acl\", \"inspect\", \"route\"]\n[[port]]\nname = \"a\"\ndevice = "
               "\"net_pcap0,rx_pcap=" +
                   file("in") + ",tx_pcap=" + capture + "\"\n" + more,
               name, false)
        .diagnostics()
        .lines;
  }
  // With a key of [inspect] in line 6 and one of [log] in line 8.
  std::vector<std::string> said_of(const std::string& inspect, const std::string& log, const std::string& more = "",
                                   const std::string& name = "none.toml") const {
    const std::string port = "name = \"a\"\ndevice = \"net_pcap0,rx_pcap=" + file("in") + ",tx_pcap=" + file("out");
    return Config::from_text("engine.chain = [\"acl\", \"inspect\", \"route\"]\n[[port]]\n" + port + "\"\n[inspect]\n" +
                                 inspect + "[log]\n" + log + more,
                             name, false)
        .diagnostics()
        .lines;
  }

  const std::string folder_ = testing::TempDir() + "config-files-" + std::to_string(getpid());
};

TEST_F(ConfigFiles, ThatAreWrittenAreNothingElse) {
  EXPECT_THAT(said_of(set("eve", "eve"), set("file", "log"), "[route]\n" + set("table", "there")), IsEmpty());
  EXPECT_THAT(said_of("eve = \"-\"\n", "file = \"\"\n", "[acl]\n" + set("rules", "there")), IsEmpty());
  struct Case {
    std::string inspect, log, more, use;
  };
  for (const Case& one : {
           Case{set("eve", "link"), "", "[route]\n" + set("table", "there"), "the file of [route] table"},
           {set("fast", "link"), "", "[acl]\n" + set("rules", "there"), "the file of [acl] rules"},
           {set("eve", "there"), "", "[profile]\n" + set("file", "./there"), "the file of [profile] file"},
           {set("eve", "link"), set("file", "there"), "", "the file of [log] file"},
           {set("fast", "link"), "", "[[acl.set]]\nname = \"s\"\n" + set("file", "there"),
            "the file of an [[acl.set]]"},
           {set("fast", "in"), "", "", "a capture of port 'a'"},
           {set("fast", "./out"), "", "", "a capture of port 'a'"},
       }) {
    EXPECT_THAT(said_of(one.inspect, one.log, one.more),
                ElementsAre(AllOf(StartsWith("none.toml:6: [inspect] " + one.inspect.substr(0, 4)),
                                  EndsWith(": is " + one.use + ": name a file of its own"))));
  }
  for (const auto& [inspect, use] : {std::pair{set("eve", "there"), "the file of [inspect] eve"},
                                     {"rules = [\"" + file("the*") + "\"]\n", "a file of [inspect] rules"}}) {
    EXPECT_THAT(said_of(inspect, "", "[acl]\n" + set("eve", "link")),
                ElementsAre(AllOf(StartsWith("none.toml:9: [acl] eve"),
                                  EndsWith(std::string(": is ") + use + ": name a file of its own"))));
  }
  const std::string own = ": is this configuration: name a file of its own";
  EXPECT_THAT(said_of(set("eve", "link"), "", "", file("there")), ElementsAre(EndsWith(own)));
  for (const std::string& rules : {"rules = [\"" + file("the*") + "\"]\n", set("threshold_file", "there")}) {
    EXPECT_THAT(said_of(rules, set("file", "link")),
                ElementsAre(AllOf(StartsWith("none.toml:8: [log] file"),
                                  EndsWith(": is a file of [inspect] rules: name a file of its own"))));
  }
  EXPECT_THAT(said_of("fast = \"\"\n", set("file", "link"), "", file("there")),
              ElementsAre(AllOf(StartsWith(file("there") + ":8: [log] file"), EndsWith(own))));
}

TEST_F(ConfigFiles, ThatACaptureWouldEmpty) {
  const std::string link = file("link");
  struct Case {
    std::string more, name, use;
  };
  for (const Case& one : {
           Case{"", file("there"), "this configuration"},
           {"[inspect]\nrules = [\"" + file("the*") + "\"]\n", "none.toml", "a file of [inspect] rules"},
           {"[inspect]\n" + set("threshold_file", "there"), "none.toml", "a file of [inspect] rules"},
           {"[route]\n" + set("table", "there"), "none.toml", "the file of [route] table"},
           {"[acl]\n" + set("rules", "there"), "none.toml", "the file of [acl] rules"},
           {"[profile]\n" + set("file", "there"), "none.toml", "the file of [profile] file"},
           {"", "none.toml", "there and no capture"},
       }) {
    EXPECT_THAT(said_of_capture(link, one.more, one.name),
                ElementsAre(AllOf(StartsWith(one.name + ":4: [[port]] device"),
                                  EndsWith("tx_pcap=" + link + " is " + one.use +
                                           ", which writing would empty: name a file of its own"))));
  }
  std::ofstream(file("empty")).flush();
  std::ofstream(file("old.pcap"), std::ios::binary) << "\xd4\xc3\xb2\xa1 and more";
  for (const char* name : {"none", "empty", "old.pcap"}) {
    EXPECT_THAT(said_of_capture(file(name), ""), IsEmpty()) << name;
  }
  EXPECT_THAT(said_of_capture("/dev/null", ""), IsEmpty());
}

}  // namespace
}  // namespace sluice::control
