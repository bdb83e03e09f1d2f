// The benches' commands as a user types them.
#include "bench/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "bench/bench.h"
#include "cli/command_line_test.h"
#include "device/gpu.h"

namespace sluice::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Benches : public Commands {
 protected:
  void add_commands(CLI::App& app, int& status) override { add_benches(app, status); }
};

TEST_F(Benches, ABenchWhoseChainIsOneThreadsHasNoForwarders) {
  for (const char* bench : {"media", "inspect"}) {
    EXPECT_EQ(sluice({"bench", bench, "--forwarders", "1"}), 2);
    EXPECT_THAT(err_, HasSubstr("there is no option '--forwarders'"));
    EXPECT_EQ(sluice({"bench", bench, "--stagger", "sometimes"}), 2);
    EXPECT_THAT(err_, HasSubstr("--stagger: sometimes not in {auto,on,off}"));
  }
}

TEST_F(Benches, ABenchRefusesBadOptionsBeforeItMeasures) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--device", "gpu"}, "bench route: --device gpu: the devices are auto, cpu and cuda:N\n"},
      {{"--mix", "big"}, "bench route: --mix big: "},
      {{"--mix", "9216"},
       "bench route: --mix 9216: frames of 9216 bytes do not fit into a bench's buffers: up to 2048 do\n"},
      {{"--seconds", "0"}, "bench route: --seconds 0: allowed is above 0 and at most 1000000\n"},
      {{"--deadline-ms", "0.01"}, "bench route: --deadline-ms 0.01: "},
      {{"--table", "/nowhere"}, "bench route: --table /nowhere: No such file or directory\n"},
      {{"--batch", "1"}, "bench route: --batch 1: allowed is from 64 to 65536, or 0 for the bench's own\n"},
      {{"--batch", "4000000000"}, "bench route: --batch 4000000000: allowed is from 64 to 65536, "},
      {{"--batches", "1"}, "bench route: --batches 1: allowed is from 2 to 32, "},
      {{"--batches", "4000000000"}, "bench route: --batches 4000000000: allowed is from 2 to 32, "},
      {{"--overlap", "9", "--streams", "33"}, "bench route: --overlap 9: allowed is from 1 to 8, "},
      {{"--streams", "33"}, "bench route: --streams 33: allowed is from 1 to 32, "},
      {{"--lanes", "65"}, "bench route: --lanes 65: each has a core of its own, and this machine has "},
      {{"--forwarders", "64"},
       "bench route: --forwarders 64: each has a core of its own beside the 3 of lanes, worker and "},
      {{"--frames", "63"}, "bench route: --frames 63: 64 is the least\n"},
      {{"--device", "cuda:99"}, "bench route: --device cuda:99: no such GPU: this machine has "},
      {{"--hold", "0"}, "bench soak: --hold 0: allowed is above 0 and at most 1000000\n"},
      {{"--at", "75"}, "bench echo: --at 75: allowed is a share, above 0 and at most 1, such as 0.75\n"},
      {{"--updates", "/nowhere"}, "bench churn: --updates /nowhere: No such file or directory\n"},
      {{"--pace", "fast"}, "bench churn: --pace fast: own, max, or updates per second\n"},
      {{"--settings", "path = "}, "bench echo: --settings:1:8: "},
      {{"--settings", "pth = 1"}, "bench echo: --settings:1: "},
      {{"--settings", "path = \"up\""}, "bench touch: --settings:1: "},
      {{"--ring", "128", "--frames", "64"}, "bench touch: --ring 128: is more than the 64 of --frames\n"},
      {{"--deadline-ms", "1", "--cycle-us", "900"}, "bench echo: --deadline-ms 1: "},
      {{"--csv", "/nowhere/rows.csv"}, "bench route: --csv /nowhere/rows.csv: cannot be written\n"},
  };
  for (const auto& [options, error] : cases) {
    std::vector<std::string> words = {"bench", error.substr(6, error.find(':') - 6), "--device", "cpu"};
    if (options.front() == "--device") words.resize(2);
    words.insert(words.end(), options.begin(), options.end());
    EXPECT_EQ(sluice(words), 2);
    EXPECT_THAT(err_, StartsWith(error));
    EXPECT_EQ(out_, "");
  }
  EXPECT_EQ(sluice({"bench", "rout"}), 2);
}

TEST_F(Benches, ABenchOfTheGpuRefusesToRunWithoutOne) {
  const auto gpus = device::list_gpus();
  for (const std::string name : {"link", "echo", "touch"}) {
    EXPECT_EQ(sluice({"bench", name, "--device", "cpu"}), 2);
    EXPECT_EQ(err_, "bench " + name + ": --device cpu: this bench measures the GPU: give cuda:N, or auto for cuda:0\n");
    if (gpus) continue;  // it would measure, for minutes
    EXPECT_EQ(sluice({"bench", name}), 2);
    EXPECT_EQ(err_, "bench " + name + ": --device auto: " + gpus.error().message + "; this bench measures the GPU\n");
    EXPECT_EQ(out_, "");
  }
}

TEST(Bench, SaysOnceThatThereIsNoGpu) {
  EXPECT_EQ(bench::no_gpu_line({"no GPU: the NVIDIA driver is missing"}), "no GPU: the NVIDIA driver is missing");
  EXPECT_EQ(bench::no_gpu_line({"out of memory"}), "no GPU: out of memory");
}

TEST_F(Benches, ABenchRefusesTheOptionsThatItDoesNotUse) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"link", {"--hold", "--mix", "--ring", "--table", "--at", "--updates", "--pace"}},
      {"echo", {"--table", "--updates", "--pace"}},
      {"route", {"--hold", "--ring", "--settings", "--at", "--updates", "--pace"}},
      {"idle", {"--hold", "--ring", "--settings", "--at", "--updates", "--pace"}},
      {"soak", {"--seconds", "--ring", "--settings", "--at", "--updates", "--pace"}},
      {"churn", {"--hold", "--ring", "--settings"}},
      {"order",
       {"--seconds", "--hold", "--mix", "--batch", "--realtime", "--ring", "--table", "--at", "--pace", "--rules"}},
      {"acl", {"--hold", "--mix", "--batch", "--ring", "--table", "--at", "--pace"}},
  };
  for (const auto& [name, options] : cases) {
    for (const std::string& option : options) {
      EXPECT_EQ(sluice({"bench", name, option, "1"}), 2);
      EXPECT_EQ(err_, "sluice: bench " + name + ": there is no option '" + option + "': 'sluice bench " + name +
                          " --help' lists what there is\n");
    }
  }
}

TEST_F(Benches, ABenchRefusesNumbersThatAreNone) {
  for (const std::string option : {"--seconds", "--at", "--deadline-ms", "--cycle-us"}) {
    for (const std::string value : {"nan", "inf", "-inf", "-1", "1e300"}) {
      EXPECT_EQ(sluice({"bench", "churn", option, value}), 2);
      EXPECT_THAT(err_, StartsWith("bench churn: " + option + " "));
      EXPECT_THAT(err_, HasSubstr(": allowed is "));
      EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1);
      EXPECT_EQ(out_, "");
    }
  }
}

TEST_F(Benches, ABenchReadsItsTableBeforeItStartsAnything) {
  const std::string path = testing::TempDir() + "sluice_table_" + std::to_string(getpid());
  for (const auto& [text, wrong] : {std::pair{"", "has no routes"},
                                    {"# none\n\n", "has no routes"},
                                    {"2001:db8::/32\n", "no IPv4 route of it leads to unicast addresses"},
                                    {"127.0.0.0/8\n224.0.0.0/4\n", "no IPv4 route of it leads to unicast addresses"}}) {
    std::ofstream(path) << text;
    for (const std::string name : {"route", "idle", "soak", "churn"}) {
      const std::string series = path + ".csv";
      EXPECT_EQ(sluice({"bench", name, "--device", "cpu", "--table", path, "--csv", series}), 2);
      EXPECT_THAT(err_, StartsWith("bench " + name + ": --table " + path + ": " + wrong + ": "));
      EXPECT_EQ(out_, "") << "something was started";
      if (name == "soak") {
        EXPECT_NE(access(series.c_str(), F_OK), 0) << "a run that did not begin left a file";
      }
      unlink(series.c_str());
    }
  }
  unlink(path.c_str());
}

TEST_F(Benches, AMistakeIsOneLineThatSaysWhereHelpIs) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"idle", "--lanes", "-1"}, "--lanes = -1 is no value that it takes"},
      {{"idle", "--admission", "some"}, "--admission: some not in {auto,deadline,all}"},
  };
  for (auto [words, error] : cases) {
    words.insert(words.begin(), "bench");
    EXPECT_EQ(sluice(words), 2);
    EXPECT_EQ(err_, "sluice: bench idle: " + error + ": 'sluice bench idle --help' lists what there is\n");
    EXPECT_EQ(out_, "");
  }
}

TEST_F(Benches, HelpIsEverywhere) {
  EXPECT_EQ(sluice({"bench", "--help"}), 0);
  EXPECT_THAT(out_, HasSubstr("Usage"));
  EXPECT_EQ(sluice({"bench", "idle", "--help"}), 0);
  EXPECT_THAT(out_, testing::Not(HasSubstr("{false}"))) << "--no-goals takes no value";
}

TEST(Packaging, ManualAndCompletionKnowEveryBenchAndItsOptions) {
  CLI::App app;
  int status = 0;
  add_benches(app, status);
  expect_described(app);
}

}  // namespace
}  // namespace sluice::cli
