// `ctl` and `top`, against a gateway that is there or is not.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "cli/command_line_test.h"

namespace sluice::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Commands, CtlPrintsForPeople) {
  EXPECT_EQ(sluice({"ctl", "--api", "ADDRESS", "stats"}), 0);
  EXPECT_THAT(out_, StartsWith("sluice 0.1.0, route (full) on auto"));
  EXPECT_EQ(sluice({"ctl", "ports", "--api", "ADDRESS"}), 0);
  EXPECT_THAT(out_, StartsWith("PORT"));
  EXPECT_EQ(sluice({"ctl", "config", "--api", "ADDRESS"}), 0);
  EXPECT_EQ(out_, "{\n  \"file\": \"r.toml\"\n}\n");
  EXPECT_EQ(sluice({"ctl", "metrics", "--api", "ADDRESS"}), 0);
  EXPECT_THAT(out_, StartsWith("# HELP sluice_"));
  EXPECT_EQ(sluice({"ctl", "reload", "--api", "ADDRESS"}), 0);
  EXPECT_EQ(out_, "nothing changed\n");
  EXPECT_EQ(sluice({"ctl", "device", "reset", "--api", "ADDRESS"}), 0);
  EXPECT_EQ(out_, "cuda:0 takes part again\n");
  EXPECT_EQ(sluice({"ctl", "device", "reset", "cuda:3", "--api", "ADDRESS"}), 0);
  EXPECT_EQ(out_, "cuda:3 takes part again\n");
  EXPECT_FALSE(source_.stopped);
  EXPECT_EQ(sluice({"ctl", "stop", "--api", "ADDRESS"}), 0);
  EXPECT_TRUE(source_.stopped);
}

TEST_F(Commands, CtlPrintsJsonAsItIs) {
  EXPECT_EQ(sluice({"ctl", "routes", "--json", "--api", "ADDRESS"}), 0);
  EXPECT_THAT(out_, StartsWith("{\"matching\":1,\"routes\":[{"));
}

TEST_F(Commands, CtlRoutesAsksForPrefixAndLimit) {
  EXPECT_EQ(sluice({"ctl", "routes", "2001:db8::/32", "--limit", "5", "--api", "ADDRESS"}), 0);
  EXPECT_THAT(out_, HasSubstr("10.1.1.1 on left"));
  EXPECT_EQ(source_.last_query.prefix->str(), "2001:db8::/32");
  EXPECT_EQ(source_.last_query.limit, 5U);
  EXPECT_EQ(sluice({"ctl", "routes", "10.0.0.0/99", "--api", "ADDRESS"}), 2);
  EXPECT_THAT(err_, StartsWith("sluice: PREFIX: '10.0.0.0/99': "));
  EXPECT_EQ(sluice({"ctl", "routes", "--limit", "0", "--api", "ADDRESS"}), 2);
}

TEST_F(Commands, CtlAclListsRulesWithTheirCounters) {
  EXPECT_EQ(sluice({"ctl", "acl", "--limit", "20000", "--api", "ADDRESS"}), 0);
  EXPECT_EQ(source_.asked.back(), "acl 20000");
  EXPECT_THAT(out_, HasSubstr("1        deny         5    320  destination_port=22 protocol=tcp\n"));
  EXPECT_THAT(out_, HasSubstr("1 of 3 rules"));
  EXPECT_EQ(sluice({"ctl", "acl", "--json", "--api", "ADDRESS"}), 0);
  EXPECT_EQ(source_.asked.back(), "acl 100");
  EXPECT_THAT(out_, StartsWith("{\"count\":3,\"rules\":[{"));
}

TEST_F(Commands, CtlAclSetListsAndChangesSets) {
  EXPECT_EQ(sluice({"ctl", "acl", "set", "list", "--api", "ADDRESS"}), 0);
  EXPECT_THAT(
      out_,
      StartsWith("SET  TYPE       ENTRIES  RULES  CHANGED  FILE\nbad  addresses        3      1  yes      bad.txt\n"));
  EXPECT_EQ(sluice({"ctl", "acl", "set", "list", "bad", "--api", "ADDRESS"}), 0);
  EXPECT_EQ(out_, "192.0.2.1\n192.0.2.8/31\n# 2 of 3 entries; --limit for more\n");
  EXPECT_EQ(sluice({"ctl", "acl", "set", "list", "nobody", "--api", "ADDRESS"}), 1);
  EXPECT_EQ(sluice({"ctl", "acl", "set", "list", "a&b", "--api", "ADDRESS"}), 2);
  EXPECT_EQ(sluice({"ctl", "acl", "set", "add", "bad", "192.0.2.7", "::1", "--api", "ADDRESS"}), 0);
  EXPECT_EQ(out_, "added\n");
  EXPECT_EQ(source_.asked.back(), "acl/sets/add ");
  EXPECT_EQ(source_.body, R"({"entries":["192.0.2.7","::1"],"set":"bad"})");
  EXPECT_EQ(sluice({"ctl", "acl", "set", "remove", "bad", "::1", "--api", "ADDRESS"}), 0);
  EXPECT_EQ(source_.asked.back(), "acl/sets/remove ");
  EXPECT_EQ(source_.body, R"({"entries":["::1"],"set":"bad"})");
  EXPECT_EQ(sluice({"ctl", "acl", "set", "add", "bad", "--api", "ADDRESS"}), 2);
  EXPECT_EQ(err_,
            "sluice: ctl acl set add: ENTRY or -f FILE is required: 'sluice ctl acl set add --help' lists what there "
            "is\n");
  EXPECT_EQ(sluice({"ctl", "acl", "set", "add", "bad", "-f", "", "--api", "ADDRESS"}), 2);
  EXPECT_EQ(err_, "sluice: ctl acl set add: FILE is empty: 'sluice ctl acl set add --help' lists what there is\n");
}

// As `< path` of a shell.
class Input {
 public:
  explicit Input(const char* path) : before_(dup(STDIN_FILENO)) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    dup2(fd, STDIN_FILENO);
    close(fd);
  }
  ~Input() {
    dup2(before_, STDIN_FILENO);
    close(before_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

 private:
  const int before_;
};

TEST_F(Commands, CtlTakesNothingOfAFileThatItCannotReadToItsEnd) {
  const auto add = [this](const std::string& file) {
    return sluice({"ctl", "acl", "set", "add", "bad", "192.0.2.7", "-f", file, "--api", "ADDRESS"});
  };
  {
    const Input endless("/dev/zero");
    EXPECT_EQ(add("-"), 2);
    EXPECT_EQ(err_, "sluice: standard input: is larger than 96M, the most that is read\nsluice: nothing is changed\n");
    EXPECT_EQ(sluice({"ctl", "srtp", "add", "-", "--api", "ADDRESS"}), 2);
    EXPECT_EQ(err_, "sluice: standard input: is larger than 64K, the most that is read\n");
  }
  {
    const Input folder("/tmp");
    EXPECT_EQ(add("-"), 2);
    EXPECT_EQ(err_, "sluice: standard input: cannot be read: Is a directory\nsluice: nothing is changed\n");
    EXPECT_EQ(sluice({"ctl", "srtp", "add", "-", "--api", "ADDRESS"}), 2);
  }
  EXPECT_EQ(sluice({"ctl", "srtp", "add", "/dev/zero", "--api", "ADDRESS"}), 2);
  EXPECT_EQ(sluice({"ctl", "srtp", "add", "/tmp", "--api", "ADDRESS"}), 2);
  EXPECT_EQ(err_, "sluice: /tmp: cannot be read: Is a directory\n");
  // As of `srtp add`.
  EXPECT_EQ(add("/nowhere/set.txt"), 2);
  EXPECT_THAT(err_, HasSubstr("No such file"));
  EXPECT_EQ(sluice({"ctl", "acl", "set", "add", "a&b", "192.0.2.7", "--api", "ADDRESS"}), 2);
  const std::string long_one = std::string(120'000, '\1');
  std::vector<std::string> words = {"ctl", "acl", "set", "add", "bad", "--api", "ADDRESS"};
  words.insert(words.end(), 141, long_one);
  EXPECT_EQ(sluice(words), 2);
  EXPECT_EQ(err_,
            "sluice: the change has more than 96M, the most that one may: make several of it; nothing is changed\n");
  EXPECT_EQ(source_.body, "");
}

TEST_F(Commands, CtlSrtpListsAddsAndRemovesStreams) {
  EXPECT_EQ(sluice({"ctl", "srtp", "list", "--limit", "5", "--api", "ADDRESS"}), 0);
  EXPECT_THAT(out_,
              HasSubstr("10.0.0.1:1 -> 10.0.0.2:2  protect  rtp      AEAD_AES_128_GCM  api   -     1.60 M  not yet   "
                        "  7     2    800       0            3         4        5           16      1      20\n"
                        "1 of 6 streams"));
  EXPECT_EQ(sluice({"ctl", "srtp", "list", "10.0.0.9", "--api", "ADDRESS"}), 0);
  EXPECT_EQ(source_.stream_address, "10.0.0.9");
  EXPECT_EQ(sluice({"ctl", "srtp", "list", "10.0.0", "--api", "ADDRESS"}), 2);
  EXPECT_THAT(err_, StartsWith("sluice: 10.0.0: "));
  const std::string path = testing::TempDir() + "stream-" + std::to_string(getpid()) + ".toml";
  std::ofstream(path) << "action = \"protect\"\n";
  EXPECT_EQ(sluice({"ctl", "srtp", "add", path, "--api", "ADDRESS"}), 0);
  EXPECT_EQ(out_, "added\n");
  EXPECT_EQ(err_, "");
  EXPECT_EQ(source_.body, "action = \"protect\"\n");
  source_.warnings = {"one", "two"};
  EXPECT_EQ(sluice({"ctl", "srtp", "add", path, "--api", "ADDRESS"}), 0);
  EXPECT_EQ(out_, "added\n");
  EXPECT_EQ(err_, "sluice: warning: one\nsluice: warning: two\n");
  EXPECT_EQ(sluice({"ctl", "srtp", "add", path, "--json", "--api", "ADDRESS"}), 0);
  EXPECT_THAT(out_, HasSubstr("\"warnings\":[\"one\",\"two\"]"));
  EXPECT_EQ(err_, "");
  source_.body.clear();
  EXPECT_EQ(sluice({"ctl", "srtp", "remove", path, "--api", "ADDRESS"}), 0);
  EXPECT_EQ(out_, "removed\n");
  EXPECT_EQ(source_.body, "action = \"protect\"\n");
  source_.mistakes = "the request:1: action: is missing";
  EXPECT_EQ(sluice({"ctl", "srtp", "add", path, "--api", "ADDRESS"}), 1);
  EXPECT_EQ(err_, "sluice: the request:1: action: is missing\n");
  std::filesystem::remove(path);
  EXPECT_EQ(sluice({"ctl", "srtp", "add", path, "--api", "ADDRESS"}), 2);
  EXPECT_THAT(err_, HasSubstr("No such file"));
}

TEST_F(Commands, CtlRepeatsTheGatewaysRefusal) {
  EXPECT_EQ(sluice({"ctl", "neighbours", "--api", "ADDRESS"}), 1);
  EXPECT_EQ(err_, "sluice: the chain is no router\n");
  EXPECT_EQ(out_, "");
}

TEST_F(Commands, CtlReloadListsEveryMistake) {
  source_.mistakes = "r.toml:2: one\nr.toml:7: another";
  EXPECT_EQ(sluice({"ctl", "reload", "--api", "ADDRESS"}), 1);
  EXPECT_EQ(err_, "sluice: r.toml:2: one\nsluice: r.toml:7: another\n");
  EXPECT_EQ(out_, "");
}

TEST_F(Commands, ASocketCarriesEverything) {
  EXPECT_EQ(sluice({"ctl", "--socket", "SOCKET", "stats"}), 0);
  EXPECT_EQ(sluice({"ctl", "stop", "--socket", "SOCKET"}), 0);
  EXPECT_TRUE(source_.stopped);
  EXPECT_EQ(sluice({"ctl", "stop", "--socket", "/nowhere/a.sock"}), 1);
  EXPECT_EQ(err_,
            "sluice: no gateway listens at /nowhere/a.sock: is sluice running? ([api] socket in its configuration; "
            "--socket PATH for another)\n");
}

TEST_F(Commands, NoGatewayIsOneClearLine) {
  for (const char* command : {"ctl", "top"}) {
    std::vector<std::string> words = {command, "--api", "127.0.0.1:1"};
    words.emplace_back(words[0] == "ctl" ? "stats" : "--once");
    EXPECT_EQ(sluice(words), 1);
    EXPECT_THAT(err_, StartsWith("sluice: no answer from 127.0.0.1:1: is sluice running?"));
  }
}

TEST_F(Commands, TopOncePrintsOneReport) {
  EXPECT_EQ(sluice({"top", "--once", "--interval", "100ms", "--api", "ADDRESS"}), 0);
  EXPECT_THAT(out_, StartsWith("sluice 0.1.0  route  up 01:02:05"));
  EXPECT_EQ(source_.calls, 2U);
}

}  // namespace
}  // namespace sluice::cli
