// The subcommands as a user types them, but for those of ctl_test.cc.
#include "cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "cli/command_line_test.h"

namespace sluice::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Commands, RulesReadsFilesWithVariables) {
  const std::string path = testing::TempDir() + "sluice_commands.rules";
  std::ofstream(path) << "alert tcp $MINE any -> any any (sid:1;)\n";
  EXPECT_EQ(sluice({"rules", path}), 1);
  EXPECT_THAT(out_, HasSubstr("the variable '...' is not set"));
  EXPECT_EQ(sluice({"rules", "--var", "MINE=10.0.0.0/8", path}), 0);
  EXPECT_THAT(out_, StartsWith("1 rule in 1 file\n1 load (100.0 %), 0 not\n"));
  EXPECT_EQ(sluice({"rules", "--json", "--var", "MINE=10.0.0.0/8", path}), 0);
  EXPECT_THAT(out_, StartsWith("{\n  \"files\": ["));
  std::ofstream(path) << "ipvar MINE 192.0.2.0/24\nalert tcp $MINE any -> any any (sid:1;)\n";
  EXPECT_EQ(sluice({"rules", "--var", "MINE=10.0.0.0/8", path}), 0);
  EXPECT_THAT(out_, HasSubstr(path + ":1: MINE stays as --var sets it\n"));
  EXPECT_EQ(sluice({"rules", "--var", "OTHER=$MINE", path}), 0) << err_;
  EXPECT_EQ(sluice({"rules", "--var", "OTHER=1.2.3", path}), 2) << "though no rule uses it";
  EXPECT_THAT(err_, StartsWith("sluice rules: --var: $OTHER: '1.2.3'"));
  EXPECT_EQ(sluice({"rules", "--var", "MINE=any", "--var", "MINE=10.0.0.1", path}), 2);
  EXPECT_EQ(err_, "sluice rules: --var: 'MINE=10.0.0.1': MINE is given twice\n");
  std::remove(path.c_str());
  EXPECT_EQ(sluice({"rules", path}), 2);
  EXPECT_EQ(err_, path + ": No such file or directory\n");
  EXPECT_EQ(sluice({"rules", "--var", "MINE", path}), 2);
  EXPECT_EQ(err_, "sluice rules: --var: 'MINE' is not NAME=VALUE, such as \"HOME_NET=192.0.2.0/24\"\n");
}

TEST_F(Commands, BadInputIsStatusTwo) {
  EXPECT_EQ(sluice({"ctl", "stats", "--api", "nowhere"}), 2);
  EXPECT_EQ(err_, "sluice: --api nowhere: allowed is ADDRESS:PORT, such as \"127.0.0.1:9230\" or \"[::1]:9230\"\n");
  EXPECT_EQ(sluice({"ctl"}), 2);
  EXPECT_EQ(sluice({"ctl", "stat"}), 2);
  EXPECT_EQ(sluice({"top", "--interval", "1"}), 2);
  EXPECT_THAT(err_, HasSubstr("allowed is \"100ms\" to \"3600s\""));
  EXPECT_EQ(sluice({"check"}), 2);
  for (const char* command : {"check", "run"}) {
    EXPECT_EQ(sluice({command, ""}), 2);
    EXPECT_THAT(err_, StartsWith("sluice: " + std::string(command) + ": FILE is empty: "));
  }
}

TEST_F(Commands, AnUnknownCommandIsOneLineWithTheKnownOnes) {
  const std::string ctl =
      "stats, ports, neighbours, functions, config, metrics, reload, reopen, stop, device, routes, acl, ipsec, srtp\n";
  EXPECT_EQ(sluice({"chekc", "r.toml"}), 2);
  EXPECT_EQ(err_, "sluice: there is no command 'chekc'; there are bench, calibrate, check, run, rules, ctl, top\n");
  EXPECT_EQ(sluice({}), 2);
  EXPECT_EQ(err_, "sluice: which command? There are bench, calibrate, check, run, rules, ctl, top\n");
  EXPECT_EQ(sluice({"ctl", "stat"}), 2);
  EXPECT_EQ(err_, "sluice: there is no command 'ctl stat'; there are " + ctl);
  EXPECT_EQ(sluice({"ctl", "--json"}), 2);
  EXPECT_EQ(err_, "sluice: which ctl command? There are " + ctl);
  EXPECT_EQ(out_, "");
}

TEST_F(Commands, AMistakeIsOneLineThatSaysWhereHelpIs) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--foo"}, "there is no option '--foo': 'sluice --help' lists what there is"},
      {{"--foo", "top", "--once"}, "there is no option '--foo': 'sluice --help' lists what there is"},
      {{"ctl", "--foo"}, "ctl: there is no option '--foo': 'sluice ctl --help' lists what there is"},
      {{"ctl", "stats", "-x"}, "ctl stats: there is no option '-x': 'sluice ctl stats --help' lists what there is"},
      {{"top", "--often"}, "top: there is no option '--often': 'sluice top --help' lists what there is"},
      {{"top", "now\n"}, "top: 'now?' is too much: 'sluice top --help' lists what there is"},
      {{"top", "--interval"}, "top: --interval: 1 required DURATION missing: 'sluice top --help' lists what there is"},
      {{"check"}, "check: FILE is required: 'sluice check --help' lists what there is"},
  };
  for (const auto& [words, error] : cases) {
    EXPECT_EQ(sluice(words), 2);
    EXPECT_EQ(err_, "sluice: " + error + "\n");
    EXPECT_EQ(out_, "");
  }
}

TEST_F(Commands, HelpIsEverywhere) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"--help"}, {"check", "--help"}, {"ctl", "--help"}, {"ctl", "routes", "--help"}, {"top", "--help"}}) {
    EXPECT_EQ(sluice(command), 0);
    EXPECT_THAT(out_, HasSubstr("Usage"));
  }
}

TEST(Packaging, ManualAndCompletionKnowEveryCommandAndOption) {
  CLI::App app;
  int status = 0;
  add_run(app, status);
  add_bench(app, status);
  add_calibrate(app, status);
  add_check(app, status);
  add_ctl(app, status);
  add_capture(app, status);
  add_top(app, status);
  expect_described(app);
}

TEST_F(Commands, CheckPassesAGoodFileAndListsEveryMistake) {
  EXPECT_EQ(sluice({"check", "examples/router.toml"}), 0);
  EXPECT_THAT(out_, StartsWith("examples/router.toml: ok: route on 2 ports, 2 lanes, device auto, deadline 1ms, "
                               "on a GPU: bound 900 us (but for late cycles and overruns), "
                               "on the CPU: estimate 50.0 us (of an idle core, no bound)"));
  const std::string path = testing::TempDir() + "sluice_check_" + std::to_string(getpid()) + ".toml";
  std::ofstream(path) << "[engine]\ndevise = \"cpu\"\nbatch = 1\n";
  EXPECT_EQ(sluice({"check", path}), 2);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(err_, HasSubstr(path + ":2: [engine] devise = \"cpu\": unknown key; did you mean \"device\"?\n"));
  EXPECT_THAT(err_, HasSubstr(path + ":3: [engine] batch = 1: allowed is a whole number from 64 to 65536\n"));
  EXPECT_THAT(err_, HasSubstr("there is no port"));
  // The function's own section is checked too.
  std::ofstream(path) << "[[port]]\nname = \"a\"\ndevice = \"replay\"\n[route]\nkernl = true\n";
  EXPECT_EQ(sluice({"check", path}), 2);
  EXPECT_EQ(err_, path + ":5: [route] kernl = true: unknown key; did you mean \"kernel\"?\n");
  unlink(path.c_str());
}

// What a start would refuse is said; the file is fine all the same, for it may be for another machine.
TEST_F(Commands, CheckSaysWhatMemoryTheStartWouldRefuse) {
  const std::string path = testing::TempDir() + "sluice_memory_" + std::to_string(getpid()) + ".toml";
  const std::string rules = path + ".rules";
  std::ofstream(rules) << "alert tcp any any -> any any (content:\"a\"; sid:1;)\n";
  for (const std::string line : {"stream_memory = \"1T\"", "http = 250_000_000"}) {
    std::ofstream(path) << "[engine]\nchain = [\"inspect\", \"bridge\"]\ndevice = \"cpu\"\n[memory]\nsize = \"128M\"\n"
                        << "frames = 4096\n[[port]]\nname = \"a\"\ndevice = \"replay\"\n[[port]]\nname = \"b\"\n"
                        << "device = \"replay\"\n[inspect]\nrules = [\"" << rules << "\"]\n"
                        << line << "\n";
    EXPECT_EQ(sluice({"check", path}), 0);
    EXPECT_THAT(out_, HasSubstr(path + ": ok: inspect, bridge on 2 ports")) << err_;
    EXPECT_TRUE(std::regex_search(err_, std::regex("they take [0-9]{6,7} MB, and .* MB to give: lower them; until then "
                                                   "'sluice run' refuses to start on this machine\n")))
        << err_;
  }
  unlink(path.c_str());
  unlink(rules.c_str());
}

// Before memory is taken or a GPU is asked for anything.
TEST_F(Commands, CalibrateRefusesWhatItCannotMeasure) {
  const std::string path = testing::TempDir() + "sluice_calibrate_" + std::to_string(getpid()) + ".toml";
  std::ofstream(path)
      << "[engine]\nchain = [\"touch\"]\ndevice = \"cpu\"\n[[port]]\nname = \"a\"\ndevice = \"replay\"\n";
  EXPECT_EQ(sluice({"calibrate", path + ".none"}), 2);
  EXPECT_THAT(err_, HasSubstr("there is no such file"));
  EXPECT_EQ(sluice({"calibrate", path, "--device", "gpu"}), 2);
  EXPECT_EQ(err_, "calibrate: --device gpu: the devices are auto, cpu and cuda:N\n");
  EXPECT_EQ(sluice({"calibrate", path, "--packets", "1515"}), 2);
  EXPECT_EQ(err_, "calibrate: --packets 1515: allowed is from 64 to 1514, the largest MTU with its Ethernet header\n");
  EXPECT_EQ(sluice({"calibrate", path, "--streams", "4", "--packets", "1515"}), 2);
  EXPECT_THAT(err_, HasSubstr("calibrate: on a CPU core there are no cycles and no streams: --cycles and --streams "
                              "choose nothing\n"));
  EXPECT_EQ(sluice({"calibrate", path, "--cycles", "1us"}), 2);
  EXPECT_THAT(err_, HasSubstr("--cycles 1us: allowed are durations from 20us"));
  EXPECT_EQ(sluice({"calibrate", path, "--out", path}), 2);
  EXPECT_THAT(err_, HasSubstr("there is a file that is no profile"));
  EXPECT_EQ(sluice({"calibrate", path, "--csv", path}), 2);
  EXPECT_THAT(err_, HasSubstr("--csv " + path + ": there is a file that is no table of calibrate's"));
  EXPECT_EQ(sluice({"calibrate", path, "--csv", testing::TempDir()}), 2);
  EXPECT_THAT(err_, HasSubstr("--csv " + testing::TempDir() + ": is a directory"));
  EXPECT_EQ(sluice({"calibrate", path, "--csv", path + ".none/rows.csv"}), 2);
  EXPECT_THAT(err_, HasSubstr("--csv " + path + ".none/rows.csv: cannot be written: No such file or directory"));
  EXPECT_EQ(sluice({"calibrate", path, "--out", path + ".rows", "--csv", path + ".rows"}), 2);
  EXPECT_THAT(err_, HasSubstr("--csv " + path + ".rows: is the file that --out names"));
  EXPECT_EQ(out_, "");
  EXPECT_FALSE(std::filesystem::exists(path + ".rows") || std::filesystem::exists(path + ".rows.new"));
  std::ofstream(path)
      << "[engine]\nchain = [\"srtp\", \"route\"]\ndevice = \"cpu\"\n[[port]]\nname = \"a\"\ndevice = \"replay\"\n";
  EXPECT_EQ(sluice({"calibrate", path, "--packets", "1505"}), 2);
  EXPECT_THAT(err_,
              HasSubstr("allowed is from 64 to 1504, the largest MTU with its Ethernet header, less what srtp adds\n"));
  std::ofstream(path) << "[engine]\nchian = [\"touch\"]\n";
  EXPECT_EQ(sluice({"calibrate", path}), 2);
  EXPECT_THAT(err_, HasSubstr(path + ":2: [engine] chian"));
  unlink(path.c_str());
}

TEST_F(Commands, CheckSaysWhatIsWrongWithRoutesWhereItStands) {
  const std::string path = testing::TempDir() + "sluice_routes_" + std::to_string(getpid()) + ".toml";
  const std::string table = path + ".txt";
  std::ofstream routes(table);
  std::string expected =
      path + ":5: [[route.connected]] prefix = \"224.0.0.0/4\": begins with 224.0.0.0, which is a " +
      "multicast address: give the prefix of a link\n" + path +
      ":9: [[route.neighbour]] address = \"255.255.255.255\": is the broadcast address: give the "
      "address that the neighbour has on its link\n" +
      path +
      ":10: [[route.neighbour]] mac = \"ff:ff:ff:ff:ff:ff\": is the broadcast address: give the one of "
      "the neighbour's interface\n";
  for (int line = 1; line <= 12; ++line) {
    routes << "10.0.0.0/8 via 10.0.0.1\n";
    expected +=
        line > 10 ? ""
                  : table + ":" + std::to_string(line) + ": '10.0.0.1' is too much; each line is \"prefix gateway\"\n";
  }
  routes.close();
  std::ofstream(path) << "[[port]]\nname = \"a\"\ndevice = \"replay\"\n[[route.connected]]\nprefix = \"224.0.0.0/4\"\n"
                      << "port = \"a\"\n[[route.neighbour]]\nport = \"a\"\naddress = \"255.255.255.255\"\n"
                      << "mac = \"ff:ff:ff:ff:ff:ff\"\n[route]\ntable = \"" << table << "\"\n";
  EXPECT_EQ(sluice({"check", path}), 2);
  EXPECT_EQ(err_, expected + table + ":11: and 2 more mistakes from here on\n");
  unlink(path.c_str());
  unlink(table.c_str());
}

}  // namespace
}  // namespace sluice::cli
