// The section [inspect]: what it refuses, where, and what a reload cannot change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../tests/support/captured_log.h"
#include "engine/element.h"
#include "engine/port_table.h"
#include "engine/tables.h"
#include "engine/traits.h"

namespace sluice::function {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct Made {
  std::unique_ptr<engine::Element> element;
  std::vector<std::string> mistakes;
};

// Line 1 is the section's name.
Made make(const std::string& lines, const std::vector<engine::PortInfo>& ports = {}) {
  Diagnostics diagnostics;
  auto file = Settings::from_text("[inspect]\n" + lines, "a.toml", diagnostics);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  Settings section = file->section("inspect");
  auto element = engine::find_element("inspect")->make(section, engine::PortTable(ports));
  section.finish();
  return {element ? std::move(*element) : nullptr, diagnostics.lines};
}

std::vector<std::string> mistakes_of_variables(const std::string& list) {
  return make("rules = [\"x\"]\nvariables = [" + list + "]\n").mistakes;
}

class InspectSettings : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("sluice-inspect-settings-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // With this rule in a file of its own.
  Made with_rule(const std::string& rule, const std::string& lines = "") {
    const std::string path = (folder_ / "a.rules").string();
    std::ofstream(path) << rule << "\n";
    return make("rules = [\"" + path + "\"]\n" + lines);
  }

  std::filesystem::path folder_;
};

TEST_F(InspectSettings, RulesMustBeThere) {
  EXPECT_THAT(make("").mistakes, ElementsAre(StartsWith("a.toml:1: [inspect] rules: must be there")));
}

TEST_F(InspectSettings, VariablesAreAddressesOrPorts) {
  const std::string place = "a.toml:3: [inspect] variables = ";
  EXPECT_THAT(mistakes_of_variables("\"EXTERNAL_NET=!$HOME_NET\", \"HOME_NET=[10.0.0.0/8,2001:db8::/32]\""), IsEmpty());
  EXPECT_THAT(mistakes_of_variables("\"HTTP_PORTS=[80,8080:8090]\", \"MY_OWN=!53\""), IsEmpty());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\"HOME_NET\"", "is not NAME=VALUE"},
      {"\"HOME NET=any\"", "HOME NET"},
      {"\"HOME_NET=[10.0.0.0/8\"", "$HOME_NET: '[10.0.0.0/8' has no closing ]"},
      {"\"HOME_NET=10.0.0.0/33\"", "$HOME_NET: "},
      {"\"HTTP_PORTS=80000\"", "$HTTP_PORTS: "},
      {"\"HOME_NET=$OFFICE\"", "$HOME_NET: the variable 'OFFICE' is not set"},
      {"\"EXTERNAL_NET=!$HOME_NET\"", "leaves nothing"},
      {"\"HOME_NET=10.0.0.1\", \"HOME_NET=192.0.2.1\"", "'HOME_NET=192.0.2.1': HOME_NET is given twice"},
  };
  for (const auto& [list, why] : cases) {
    EXPECT_THAT(mistakes_of_variables(list), ElementsAre(AllOf(StartsWith(place), HasSubstr(why)))) << list;
  }
}

TEST_F(InspectSettings, AFileThatCannotBeReadIsSaidWithItsKey) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {(folder_ / "none.rules").string(), "none.rules: No such file or directory"},
      {folder_.string(), "is a folder: name a regular file"},
      {"none/local.rules",
       "names are as seen from where sluice was started, " + std::filesystem::current_path().string()},
  };
  for (const auto& [path, why] : cases) {
    const Made made = make("rules = [\"" + path + "\"]\n");
    ASSERT_THAT(made.mistakes, IsEmpty());
    const auto read = made.element->trait<engine::Tables>()->read();
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, AllOf(StartsWith("[inspect] rules: "), HasSubstr(why)));
  }
}

// Looked for when the files are read, so that a reload finds new ones.
TEST_F(InspectSettings, RulesMayBeAPatternOfFiles) {
  const Made made = make("rules = [\"" + (folder_ / "*.rules").string() + "\"]\n");
  ASSERT_THAT(made.mistakes, IsEmpty());
  auto read = made.element->trait<engine::Tables>()->read();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "[inspect] rules: " + (folder_ / "*.rules").string() + ": no file matches");
  std::ofstream(folder_ / "b.rules") << "alert ip any any -> any any (msg:\"B\"; sid:2;)\n";
  std::ofstream(folder_ / "a.rules") << "alert ip any any -> any any (msg:\"A\"; sid:1; what:ever;)\n";
  read = made.element->trait<engine::Tables>()->read();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(made.element->trait<engine::Tables>()->notes(),
              ElementsAre(HasSubstr("1 rule of 2 does not load, such as " + (folder_ / "a.rules").string() + ":1")));
}

TEST_F(InspectSettings, FilesOfAlertsAreInFoldersThatAreThere) {
  const std::string rules = "rules = [\"x\"]\n";
  EXPECT_THAT(make(rules + "eve = \"-\"\nfast = \"" + (folder_ / "fast.log").string() + "\"\n").mistakes, IsEmpty());
  EXPECT_THAT(make(rules + "eve = \"" + folder_.string() + "\"\n").mistakes,
              ElementsAre("a.toml:3: [inspect] eve = \"" + folder_.string() + "\": is a folder: name a file in it"));
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(
      make(rules + "eve = \"" + pipe + "\"\n").mistakes,
      ElementsAre("a.toml:3: [inspect] eve = \"" + pipe + "\": is a pipe, a socket or a disk: name a regular file"));
  EXPECT_THAT(
      make(rules + "fast = \"/no/fast.log\"\n").mistakes,
      ElementsAre("a.toml:3: [inspect] fast = \"/no/fast.log\": there is no folder /no: make it, or name a file "
                  "in one that is there"));
}

TEST_F(InspectSettings, EveAndFastAreTwoFiles) {
  const std::string rules = "rules = [\"x\"]\n";
  const std::string name = (folder_ / "a.log").string(), same = (folder_ / "." / "a.log").string();
  EXPECT_THAT(make(rules + "eve = \"" + name + "\"\nfast = \"" + same + "\"\n").mistakes,
              ElementsAre("a.toml:4: [inspect] fast = \"" + same + "\": is eve's file: name two files"));
  std::ofstream(name) << "";
  const std::string link = (folder_ / "link.log").string();
  std::filesystem::create_hard_link(name, link);
  EXPECT_THAT(make(rules + "eve = \"" + name + "\"\nfast = \"" + link + "\"\n").mistakes,
              ElementsAre("a.toml:4: [inspect] fast = \"" + link + "\": is eve's file: name two files"));
  EXPECT_THAT(make(rules + "eve = \"-\"\nfast = \"-\"\n").mistakes,
              ElementsAre("a.toml:4: [inspect] fast = \"-\": is eve's file: name two files"));
}

// Alerts would be appended to them; whatever the file's other name, and whichever line names it.
TEST_F(InspectSettings, FilesOfAlertsAreNoFilesOfRules) {
  const auto file = [&](const char* name) { return (folder_ / name).string(); };
  std::ofstream(file("b.rules")) << "alert udp any any -> any any (sid:2;)\n";
  std::ofstream(file("lines")) << "suppress gen_id 1, sig_id 2\n";
  std::filesystem::create_hard_link(file("b.rules"), file("link"));
  const std::string rule = "alert udp any any -> any any (sid:1;)\ninclude b.rules";
  const std::string lines = "threshold_file = \"" + file("lines") + "\"\n";
  for (const auto& [key, name, read] : {std::tuple{"eve", "a.rules", "a.rules"},
                                        {"fast", "b.rules", "b.rules"},
                                        {"eve", "link", "b.rules"},
                                        {"fast", "./lines", "lines"}}) {
    const Made made = with_rule(rule, lines + key + " = \"" + file(name) + "\"\n");
    ASSERT_THAT(made.mistakes, IsEmpty());
    const auto ok = made.element->trait<engine::Tables>()->read();
    ASSERT_FALSE(ok) << name;
    EXPECT_EQ(ok.error().message, "[inspect] " + std::string(key) + ": it is a file that [inspect] reads, " +
                                      file(read) + ": name another one");
  }
  const Made made = with_rule(rule, lines + "eve = \"" + file("eve.json") + "\"\nfast = \"-\"\n");
  EXPECT_TRUE(made.element->trait<engine::Tables>()->read());
}

// A check and a reload read on behind a mistake, for more of them.
TEST_F(InspectSettings, WithoutRulesThereIsAMistakeAndNothingToRead) {
  for (const char* lines : {"", "rules = []\n", "rules = \"live.rules\"\n", "rules = [1, 2]\n"}) {
    const Made made = make(lines);
    ASSERT_FALSE(made.mistakes.empty()) << lines;
    EXPECT_THAT(made.mistakes.front(), HasSubstr("[inspect] rules")) << lines;
    ASSERT_TRUE(made.element) << lines;
    EXPECT_TRUE(made.element->trait<engine::Tables>()->read()) << lines;
  }
}

TEST_F(InspectSettings, AFileThatSaysNothingIsANote) {
  const std::string empty = (folder_ / "empty.rules").string();
  std::ofstream(empty) << "# gone\n";
  const std::string path = (folder_ / "a.rules").string();
  std::ofstream(path) << "alert udp any any -> any any (sid:1;)\n";
  const Made made = make("rules = [\"" + path + "\", \"" + empty + "\"]\n");
  ASSERT_TRUE(made.element->trait<engine::Tables>()->read());
  EXPECT_THAT(made.element->trait<engine::Tables>()->notes(),
              ElementsAre("inspect: " + empty + " has no line but empty ones and comments"));
}

TEST_F(InspectSettings, RulesThatWaitInVainAreNotes) {
  const Made made = with_rule(
      "alert udp any any -> any any (flowbits:isset,a; sid:1;)\nalert udp any any -> any any (flowbits:isset,b; "
      "sid:2;)");
  ASSERT_TRUE(made.element->trait<engine::Tables>()->read());
  EXPECT_THAT(
      made.element->trait<engine::Tables>()->notes(),
      ElementsAre("inspect: 2 rules wait for flowbits that no rule sets, such as " + (folder_ / "a.rules").string() +
                  ":1: flowbits: no rule sets 'a'; 'sluice rules --list' names each"));
}

TEST_F(InspectSettings, WithoutARuleThatLoadsNothingBegins) {
  const Made none = with_rule("alert udp any any -> $NOBODY any (msg:\"a\"; sid:1;)\n");
  const auto read = none.element->trait<engine::Tables>()->read();
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, AllOf(HasSubstr("none of 1 rule loads, such as "), HasSubstr("NOBODY")));
}

TEST_F(InspectSettings, MoreMemoryThanThereIsIsRefusedAtTheStart) {
  for (const char* line : {"stream_memory = \"1T\"\n", "http = 250_000_000\n"}) {
    const Made much = with_rule("alert udp any any -> any any (msg:\"a\"; sid:1;)\n", line);
    ASSERT_THAT(much.mistakes, IsEmpty());
    const auto prepared = much.element->prepare({});
    ASSERT_FALSE(prepared) << line;
    EXPECT_THAT(
        prepared.error().message,
        testing::MatchesRegex("\\[inspect\\] flows, streams, http, stream_memory, http_memory, fragment_memory: "
                              "they take [0-9]{6,7} MB, and .* MB to give: lower them"));
  }
}

TEST_F(InspectSettings, LimitsAreWithinBounds) {
  const std::string rules = "rules = [\"x\"]\n";
  for (const char* line :
       {"stream_depth = 0", "stream_depth = \"4K\"", "stream_history = 256", "stream_history = \"64K\"",
        "request_body_limit = \"1M\"", "response_body_limit = \"1K\"", "header_limit = \"256K\"",
        "headers_limit = \"16K\"", "headers_limit = 1000000", "header_fields = 16", "header_fields = 16384",
        "content_codings = 1", "content_codings = 4", "on_http_limit = \"pass\""}) {
    EXPECT_THAT(make(rules + line + "\n").mistakes, IsEmpty()) << line;
  }
  const std::pair<const char*, const char*> cases[] = {
      {"stream_depth = 4095", "allowed is \"4K\" to \"1T\", or 0 for no limit"},
      {"stream_history = 0", "allowed is 256 to \"64K\""},
      {"stream_history = \"65K\"", "allowed is 256 to \"64K\""},
      {"request_body_limit = 0", "allowed is \"1K\" to \"1M\", the largest block of http_memory"},
      {"response_body_limit = \"2M\"", "allowed is \"1K\" to \"1M\", the largest block of http_memory"},
      {"header_limit = \"1M\"", "allowed is \"1K\" to \"256K\""},
      {"headers_limit = \"1M\"", "allowed is \"16K\" to 1000000"},
      {"header_fields = 15", "allowed is a whole number from 16 to 16384"},
      {"content_codings = 5", "allowed is a whole number from 1 to 4"},
      {"on_http_limit = \"reject\"", "allowed is \"drop\", \"pass\""}};
  for (const auto& [line, why] : cases) {
    EXPECT_THAT(make(rules + line + "\n").mistakes,
                ElementsAre("a.toml:3: [inspect] " + std::string(line) + ": " + why));
  }
}

TEST_F(InspectSettings, LinesThatKeepAlertsBackAreReadWithTheRulesAndFromAFileOfTheirOwn) {
  const std::string lines = (folder_ / "threshold.config").string();
  const std::string setting = "threshold_file = \"" + lines + "\"\n";
  const std::string rule = "alert udp any any -> any any (msg:\"a\"; sid:1;)\n";
  const auto notes = [&](const std::string& inline_lines, const std::string& text) {
    std::ofstream(lines) << text;
    const Made made = with_rule(rule + inline_lines, setting);
    const auto read = made.element->trait<engine::Tables>()->read();
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    return made.element->trait<engine::Tables>()->notes();
  };
  EXPECT_THAT(notes("suppress gen_id 1, sig_id 1\n", "# a comment\n\nsuppress gen_id 0, sig_id 0\n"), IsEmpty());
  EXPECT_THAT(notes("", "suppress gen_id 1, sig_id 7\nsuppress gen_id 1, sig_id 1\n"),
              ElementsAre("inspect: 1 line of suppress and event_filter is about no rule that loads, such as " + lines +
                          ":1: gen_id 1, sig_id 7"));
  const std::string rate =
      "rate_filter gen_id 1, sig_id 1, track by_src, count 1, seconds 1, new_action drop, timeout 5\n";
  for (const bool is_inline : {false, true}) {
    EXPECT_THAT(notes(is_inline ? rate : "", is_inline ? "" : rate),
                ElementsAre("inspect: lines of rate_filter are not followed: rules keep the action that they have"));
  }
}

// At a check, a start and a reload alike: all of them read the files by a function that knows its ports.
TEST_F(InspectSettings, WhatLanesCountByThemselvesIsANote) {
  const std::string path = (folder_ / "a.rules").string();
  const auto notes = [&](const std::string& rules, std::uint32_t lanes) {
    std::ofstream(path) << rules;
    std::vector<engine::PortInfo> ports(2);
    for (engine::PortInfo& port : ports) port.lanes = lanes;
    const Made made = make("rules = [\"" + path + "\"]\n", ports);
    EXPECT_TRUE(made.element->trait<engine::Tables>()->read());
    return made.element->trait<engine::Tables>()->notes();
  };
  const auto rule = [](const std::string& action, const std::string& rate, int sid) {
    return action + " tcp any any -> any any (content:\"x\"; " + rate + "; sid:" + std::to_string(sid) + ";)\n";
  };
  const std::string by_flow = rule("drop", "detection_filter:track by_flow, count 3, seconds 9", 1) +
                              rule("alert", "threshold:type limit, track by_flow, count 3, seconds 9", 2) +
                              "event_filter gen_id 1, sig_id 1, type limit, track by_flow, count 1, seconds 60\n" +
                              "event_filter gen_id 1, sig_id 2, type limit, track by_src, count -1, seconds 60\n";
  const std::string one = rule("drop", "detection_filter:track by_src, count 3, seconds 9", 3);
  const std::string more = rule("alert", "threshold:type both, track by_rule, count 3, seconds 9", 4) +
                           rule("reject", "threshold:type threshold, track by_both, count 3, seconds 9", 5);
  const std::string line = "event_filter gen_id 1, sig_id 0, type limit, track by_dst, count 1, seconds 60\n";
  const std::string advice = "; where that is not wanted set lanes = 1, and queues = 1, for each port";
  const std::string filtered =
      "1 line of event_filter may let up to 4 times as many alerts by, or need as many more for one";
  const struct {
    const char* what;
    std::string rules;
    std::uint32_t lanes;
    std::vector<std::string> notes;
  } cases[] = {
      {"one lane is exact", by_flow + one + more + line, 1, {}},
      {"a flow is one lane's", by_flow, 4, {}},
      {"one rule, on two lanes",
       one,
       2,
       {"inspect: each of 2 lanes counts by itself: 1 rule with detection_filter or threshold, such as " + path +
        ":1, may need up to 2 times as many matches to take effect (1 of them to drop or reject), or alert up to 2 "
        "times as often" +
        advice}},
      {"rules and a line",
       by_flow + one + more + line,
       4,
       {"inspect: each of 4 lanes counts by itself: 3 rules with detection_filter or threshold, such as " + path +
        ":5, may need up to 4 times as many matches to take effect (2 of them to drop or reject), or alert up to 4 "
        "times as often, and " +
        filtered + advice}},
      {"a line alone", by_flow + line, 4, {"inspect: each of 4 lanes counts by itself: " + filtered + advice}},
  };
  for (const auto& [what, rules, lanes, expected] : cases) {
    EXPECT_EQ(notes(rules, lanes), expected) << what;
  }
}

TEST_F(InspectSettings, AFileOfLinesThatCannotBeReadIsRefusedWithThePlace) {
  const std::string lines = (folder_ / "threshold.config").string();
  const std::string rule = "alert udp any any -> any any (msg:\"a\"; sid:1;)\n";
  const std::string place = "[inspect] threshold_file: " + lines;
  const auto fault = [&](const std::string& file) {
    const Made made = with_rule(rule, "threshold_file = \"" + file + "\"\n");
    const auto read = made.element->trait<engine::Tables>()->read();
    EXPECT_FALSE(read);
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(fault(lines), AllOf(StartsWith(place), HasSubstr("No such file")));
  EXPECT_THAT(fault("none.config"), HasSubstr("; names are as seen from where sluice was started, "));
  std::ofstream(lines) << "\nsuppress gen_id 1\n";
  EXPECT_EQ(fault(lines), place + ":2: suppress: it needs gen_id and sig_id");
  std::ofstream(lines) << rule;
  EXPECT_EQ(fault(lines),
            place + ":1: 'alert' is none of suppress, event_filter and threshold, which this file is for");
}

TEST_F(InspectSettings, RulesThatAreCommentedOutAreReadWhenAsked) {
  const std::string good = "# alert udp any any -> any any (msg:\"a\"; content:\"x\"; sid:1;)\n";
  const std::string bad = "# alert udp any any -> any any (msg:\"a\"; contents:\"x\"; sid:2;)\n";
  const Made none = with_rule(good + bad);
  const auto refused = none.element->trait<engine::Tables>()->read();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("there is no rule in "), HasSubstr(" but 2 that are commented out: leave")));
  const Made without = with_rule(good + bad + "alert udp any any -> any any (msg:\"b\"; content:\"y\"; sid:3;)\n");
  ASSERT_TRUE(without.element->trait<engine::Tables>()->read());
  EXPECT_THAT(without.element->trait<engine::Tables>()->notes(), IsEmpty());
  const Made with = with_rule(good + bad, "commented_out = true\n");
  ASSERT_TRUE(with.element->trait<engine::Tables>()->read());
  EXPECT_THAT(with.element->trait<engine::Tables>()->notes(), ElementsAre(HasSubstr("1 rule of 2 does not load")));
  ASSERT_TRUE(without.element->prepare({}));
  EXPECT_EQ(without.element->reload(*with.element)->text, "1 rule inspects, 1 other does not load");
  without.element->trait<engine::Output>()->stopped();
}

TEST_F(InspectSettings, StrictRefusesFilesWithARuleThatDoesNotLoad) {
  const std::string good = "alert udp any any -> any any (msg:\"a\"; content:\"x\"; sid:1;)";
  const auto bad = [](int sid) {
    return "\nalert udp any any -> any any (dsize:9:1; sid:" + std::to_string(sid) + ";)";
  };
  const std::string place = (folder_ / "a.rules").string() + ":";
  const std::string why =
      ": dsize: '9:1' is no number up to 65535, with < <= > >= ! or nothing before it, nor a range A<>B";
  const struct {
    std::string rules;
    std::vector<std::string> parts;  // of the message; none: they are read
  } cases[] = {
      {good, {}},
      {good + "\n# alert udp any any -> any any (contents:\"x\"; sid:2;)", {}},
      {good + bad(2),
       {"[inspect] strict: 1 rule of 2 does not load: " + place + "2" + why + "; 'sluice rules --list' names each"}},
      {good + bad(2) + bad(3) + bad(4) + bad(5) + bad(6),
       {"[inspect] strict: 5 rules of 6 do not load: " + place + "2" + why, "; " + place + "4" + why,
        why + "; and 2 others; 'sluice rules --list' names each: correct them, leave them out, or set strict = false"}},
      {bad(2), {"[inspect] rules: none of 1 rule loads"}},
  };
  for (const auto& [rules, parts] : cases) {
    for (const char* off : {"", "strict = false\n"}) {
      const Made lenient = with_rule(rules, off);
      EXPECT_EQ(lenient.element->trait<engine::Tables>()->read().has_value(), rules.starts_with(good)) << rules;
    }
    const Made strict = with_rule(rules, "strict = true\n");
    ASSERT_THAT(strict.mistakes, IsEmpty());
    const auto read = strict.element->trait<engine::Tables>()->read();
    EXPECT_EQ(read.has_value(), parts.empty()) << rules;
    for (const std::string& part : parts) EXPECT_THAT(read.error().message, HasSubstr(part));
  }
}

TEST_F(InspectSettings, AReloadThatStrictRefusesLeavesTheOldRules) {
  const std::string good = "alert udp any any -> any any (msg:\"a\"; content:\"x\"; sid:1;)";
  const Made running = with_rule(good);
  ASSERT_TRUE(running.element->prepare({}));
  const auto rules_in_force = [&] {
    for (const engine::Metric& metric : running.element->trait<engine::Metrics>()->metrics()) {
      if (metric.name == "inspect_rules") return metric.value;
    }
    return std::uint64_t{0};
  };
  const std::string more =
      good + "\nalert udp any any -> any any (sid:2;)\nalert udp any any -> any any (what; sid:3;)";
  const auto refused = running.element->reload(*with_rule(more, "strict = true\n").element);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, StartsWith("[inspect] strict: 1 rule of 3 does not load: "));
  EXPECT_EQ(rules_in_force(), 1U);
  // A reload takes the setting, too.
  const auto taken = running.element->reload(*with_rule(more).element);
  ASSERT_TRUE(taken);
  taken->commit();
  EXPECT_EQ(rules_in_force(), 2U);
  running.element->trait<engine::Output>()->stopped();
}

// A download that broke off leaves a file that can be read.
TEST_F(InspectSettings, FewerThanHalfOfTheRulesAfterAReloadIsSaid) {
  const auto rules = [](int count) {
    std::string text;
    for (int sid = 1; sid <= count; ++sid) {
      text += "alert udp any any -> any any (msg:\"a\"; content:\"x\"; sid:" + std::to_string(sid) + ";)\n";
    }
    return text;
  };
  const Made running = with_rule(rules(9));
  ASSERT_TRUE(running.element->prepare({}));
  test::CapturedLog log;
  const std::string why = " before: was a file cut off, or not written whole yet?\n";
  const std::pair<int, std::string> cases[] = {
      {9, ""}, {5, ""}, {2, "warning reload: inspect: 2 rules are in force, and 5 were" + why},
      {1, ""}, {9, ""}, {1, "warning reload: inspect: 1 rule is in force, and 9 were" + why},
  };
  for (const auto& [count, said] : cases) {
    const auto change = running.element->reload(*with_rule(rules(count)).element);
    ASSERT_TRUE(change);
    EXPECT_EQ(log.take(), "") << "another part of the chain may refuse still";
    change->commit();
    EXPECT_EQ(log.take(), said) << count;
  }
  running.element->trait<engine::Output>()->stopped();
}

TEST_F(InspectSettings, HowFarTheRulesAreIsReportedAndTheyMayBeStopped) {
  using Step = std::tuple<std::string, std::size_t, std::size_t>;
  const std::vector<Step> steps = {{"reading rules", 0, 0}, {"compiling patterns", 0, 2}, {"compiling patterns", 2, 2}};
  for (std::size_t end = 1; end <= steps.size() + 1; ++end) {
    const Made made = with_rule(
        "alert udp any any -> any any (content:\"one\"; sid:1;)\nalert udp any any -> any any (content:\"two\"; "
        "sid:2;)");
    std::vector<Step> reported;
    made.element->trait<engine::Tables>()->watch_loading(
        [&](std::string_view what, std::size_t done, std::size_t total) {
          reported.emplace_back(what, done, total);
          return reported.size() < end;
        });
    const auto prepared = made.element->prepare({});
    EXPECT_THAT(reported, testing::ElementsAreArray(steps.data(), std::min(end, steps.size())));
    ASSERT_EQ(prepared.has_value(), end > steps.size());
    if (prepared) {
      made.element->trait<engine::Output>()->stopped();
    } else {
      EXPECT_THAT(prepared.error().message, StartsWith("interrupted while rules were "));
    }
  }
}

TEST_F(InspectSettings, VariablesStandBeforeThoseOfTheFiles) {
  const std::string file =
      "ipvar HOME_NET 10.0.0.0/8\nvar HOME_NET any\n"
      "alert udp $HOME_NET any -> any any (msg:\"a\"; content:\"x\"; sid:1;)";
  const Made with = with_rule(file, "variables = [\"HOME_NET=192.0.2.0/24\"]\n");
  ASSERT_TRUE(with.element->trait<engine::Tables>()->read());
  EXPECT_THAT(with.element->trait<engine::Tables>()->notes(),
              ElementsAre("inspect: [inspect] variables stands before 2 lines of the rules' files, such as " +
                          (folder_ / "a.rules:1").string() + ", which sets HOME_NET"));
  const Made other = with_rule(file, "variables = [\"HTTP_PORTS=8080\", \"HOME_NETS=10.0.0.0/8\"]\n");
  ASSERT_TRUE(other.element->trait<engine::Tables>()->read());
  EXPECT_THAT(other.element->trait<engine::Tables>()->notes(),
              ElementsAre("inspect: variable HOME_NETS is set but no rule uses it; did you mean \"HOME_NET\"?",
                          "inspect: variable HTTP_PORTS is set but no rule uses it"));
}

TEST_F(InspectSettings, WhatOnlyAStartTakesIsRefusedByAReload) {
  const std::string rule = "alert udp any any -> any any (msg:\"a\"; content:\"x\"; sid:1;)";
  const Made running = with_rule(rule);
  ASSERT_TRUE(running.element->prepare({}));
  const Made same = with_rule(rule, "variables = [\"HOME_NET=10.0.0.0/8\"]\n");
  EXPECT_TRUE(running.element->reload(*same.element));
  for (const char* line : {"flows = 1000",
                           "streams = 1000",
                           "http = 1000",
                           "stream_memory = \"3M\"",
                           "http_memory = \"3M\"",
                           "fragment_memory = \"3M\"",
                           "stream_depth = \"2M\"",
                           "stream_history = \"4K\"",
                           "request_body_limit = \"50K\"",
                           "response_body_limit = \"50K\"",
                           "header_limit = \"9K\"",
                           "headers_limit = \"90K\"",
                           "header_fields = 90",
                           "content_codings = 4",
                           "midstream = true",
                           "tunnels = false",
                           "on_conflict = \"pass\"",
                           "on_silence = \"pass\"",
                           "on_overload = \"pass\"",
                           "on_http_limit = \"pass\"",
                           "candidates = 3",
                           "budget = \"1ms\"",
                           "eve = \"/tmp/x\"",
                           "fast = \"/tmp/x\"",
                           "payload = false",
                           "alerts_per_second = 3",
                           "stats_interval = 3"}) {
    const Made other = with_rule(rule, std::string(line) + "\n");
    const std::string key = std::string(line).substr(0, std::string(line).find(' '));
    const auto change = running.element->reload(*other.element);
    ASSERT_FALSE(change) << line;
    EXPECT_THAT(change.error().message, HasSubstr("[inspect] " + key + " cannot change while it runs")) << line;
  }
  running.element->trait<engine::Output>()->stopped();
}

}  // namespace
}  // namespace sluice::function
