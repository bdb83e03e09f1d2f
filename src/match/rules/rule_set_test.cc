// Files of rules: lines, includes, variables, duplicates, and files that are none.
#include "match/rules/rule_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace sluice::match {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RuleFiles : public testing::Test {
 protected:
  RuleFiles() {
    std::string name = testing::TempDir() + "sluice-rules-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~RuleFiles() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::path path = std::filesystem::path(folder_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

RuleSet of(const std::string& text, bool commented_out = false) {
  ReadOptions options;
  options.commented_out = commented_out;
  auto set = read_rules_text(text, "t.rules", options);
  EXPECT_TRUE(set) << (set ? "" : set.error().message);
  return set ? *set : RuleSet{};
}

Expected<RuleSet> read_one(const std::string& path) {
  return read_rules(std::vector<std::string>{path});
}

std::string rule(int sid, const std::string& options = "") {
  return "alert tcp any any -> any any (" + options + "sid:" + std::to_string(sid) + ";)";
}

std::vector<std::uint32_t> sids(const RuleSet& set) {
  std::vector<std::uint32_t> all;
  for (const Rule& one : set.rules) all.push_back(one.sid);
  return all;
}

TEST(RuleSet, ReadsLinesOfEveryKind) {
  const RuleSet set = of("\xef\xbb\xbf# a comment \\\r\n" + rule(1) + "\r\n\r\n  " + rule(2) +
                         "\nalert tcp any any -> any any (msg:\"a\\\n b\"; \\\n\tsid:3; \\\n)\n# " + rule(4) + "\n#" +
                         rule(5) + "\n# see rule (x)\n" + rule(6));
  EXPECT_THAT(sids(set), ElementsAre(1, 2, 3, 6));
  EXPECT_EQ(set.rules[0].line, 2U);
  EXPECT_EQ(set.rules[2].line, 5U);
  EXPECT_EQ(set.rules[2].msg, "a b");
  EXPECT_EQ(set.rules[3].line, 12U);
  EXPECT_EQ(set.commented_out, 2U);
  EXPECT_TRUE(set.refused.empty());
}

TEST(RuleSet, ReadsCommentedOutRulesWhenAsked) {
  const RuleSet set = of("# " + rule(1) + "\n" + rule(2) + "\n## " + rule(3, "asn1:x; "), true);
  EXPECT_THAT(sids(set), ElementsAre(1, 2));
  EXPECT_TRUE(set.rules[0].commented_out);
  EXPECT_FALSE(set.rules[1].commented_out);
  ASSERT_EQ(set.refused.size(), 1U);
  EXPECT_TRUE(set.refused[0].commented_out);
}

TEST(RuleSet, ARefusalHasItsPlaceSidReasonAndMessage) {
  const RuleSet set = of("\n" + rule(77, "gid:4; content:\"abc\"; depth:1; ") + "\nwhat is this\n");
  EXPECT_TRUE(set.rules.empty());
  ASSERT_EQ(set.refused.size(), 2U);
  EXPECT_EQ(set.place(set.refused[0].file, set.refused[0].line), "t.rules:2");
  EXPECT_EQ(set.refused[0].sid, 77U);
  EXPECT_EQ(set.refused[0].gid, 4U);
  EXPECT_EQ(set.refused[0].message, "depth: 1 is smaller than the content's 3 bytes: it could never match");
  EXPECT_EQ(set.refused[0].reason, "depth: N is smaller than the content's N bytes: it could never match");
  EXPECT_EQ(set.refused[1].line, 3U);
  EXPECT_EQ(set.refused[1].sid, 0U);
}

struct Duplicate {
  std::string text;
  std::uint32_t line_that_stays;
  const char* message;
};

TEST(RuleSet, OfTwoRulesWithOneSidOneStays) {
  for (const auto& [text, line, message] : {
           Duplicate{rule(1, "rev:1; ") + "\n" + rule(1, "rev:2; "), 2, "sid: t.rules:2 has the same sid and a higher"},
           Duplicate{rule(1, "rev:2; ") + "\n" + rule(1, "rev:1; "), 1, "sid: t.rules:1 has the same sid and a higher"},
           Duplicate{rule(1, "rev:1; ") + "\n" + rule(1, "rev:1; "), 1, "sid: t.rules:1 has the same sid"},
           Duplicate{rule(1, "rev:1; ") + "\n# " + rule(1, "rev:9; "), 1, "sid: t.rules:1 has the same sid"},
           Duplicate{"# " + rule(1, "rev:9; ") + "\n" + rule(1, "rev:1; "), 2, "sid: t.rules:2 has the same sid"},
       }) {
    const RuleSet set = of(text, true);
    ASSERT_EQ(set.rules.size(), 1U) << text;
    EXPECT_EQ(set.rules[0].line, line) << text;
    ASSERT_EQ(set.refused.size(), 1U) << text;
    EXPECT_EQ(set.refused[0].line, 3 - line) << text;
    EXPECT_THAT(set.refused[0].message, HasSubstr(message)) << text;
  }
  EXPECT_EQ(of(rule(1, "gid:1; ") + "\n" + rule(1, "gid:2; ")).rules.size(), 2U);
}

TEST(RuleSet, ThreeRevisionsOfARuleLeaveTheHighest) {
  const RuleSet set = of(rule(1, "rev:1; ") + "\n" + rule(1, "rev:3; ") + "\n" + rule(1, "rev:2; ") + "\n" + rule(2));
  EXPECT_THAT(sids(set), ElementsAre(1, 2));
  EXPECT_EQ(set.rules[0].rev, 3U);
  EXPECT_EQ(set.refused.size(), 2U);
}

TEST(RuleSet, FollowsSnortsLines) {
  const RuleSet set =
      of("ipvar HOME_NET 10.0.0.0/8\nportvar WEB [80,443]\nvar OTHER !$HOME_NET\n"
         "config classification: my-class,Mine,1\nconfig reference: my http://my/\n"
         "preprocessor flow: x \\\n  y\nconfig checksum_mode: all\noutput x\n"
         "alert tcp $OTHER any -> $HOME_NET $WEB (classtype:my-class; sid:1;)\n");
  EXPECT_TRUE(set.refused.empty());
  ASSERT_EQ(set.rules.size(), 1U);
  EXPECT_EQ(set.rules[0].priority, 1);
  EXPECT_TRUE(set.rules[0].destination.ports.contains(443));
  EXPECT_FALSE(set.rules[0].source.addresses.contains(*packet::IpAddress::parse("10.1.1.1")));
  EXPECT_EQ(set.ignored, 3U);
  EXPECT_THAT(set.ignored_words, ElementsAre("preprocessor", "config", "output"));
  ASSERT_NE(set.classification.url_of("my"), nullptr);
  EXPECT_EQ(*set.classification.url_of("MY"), "http://my/");
}

TEST(RuleSet, AVariableThatIsFixedAndThatNothingUsesIsSaid) {
  struct Case {
    std::string name, text, hint;
    bool used;
  };
  const std::string rule = "alert tcp $EXTERNAL_NET any -> $HTTP_SERVERS $HTTP_PORTS (msg:\"$MSG\"; sid:1;)\n";
  for (const Case& c : {Case{"HTTP_PORTS", rule, "", true},
                        {"HOME_NET", rule, "", true},  // HTTP_SERVERS is $HOME_NET
                        {"HOME_NET", "ipvar HTTP_SERVERS 192.0.2.1\n" + rule, "", false},
                        {"HOME_NET", rule + "ipvar HTTP_SERVERS 192.0.2.1\n" + rule, "", true},
                        {"OWN", rule + "ipvar HTTP_SERVERS $OWN\n", "", false},
                        {"OWN", rule + "ipvar HTTP_SERVERS $OWN\n" + rule, "", true},
                        {"OWN", "alert tcp !$OWN any -> [$HOME_NET,!$OWN] any (sid:1;)\n", "", true},
                        {"OWN", "# alert tcp $OWN any -> any any (sid:1;)\n", "", false},
                        {"OWN", "alert tcp $OWN any -> any any (unknown:1; sid:1;)\n", "", true},
                        {"OWN", "suppress gen_id 1, sig_id 1, track by_src, ip $OWN\n", "", true},
                        {"MSG", rule, "", false},
                        {"HTTP_SERVER", rule, "; did you mean \"HTTP_SERVERS\"?", false},
                        {"HTTP_SERVERS_NET", rule, "", false},
                        {"SSH_PORTS", rule, "", false}}) {
    ReadOptions options;
    ASSERT_TRUE(options.variables.fix(c.name, c.name.ends_with("_PORTS") ? "8080" : "192.0.2.0/24"));
    const auto set = read_rules_text(c.text, "t.rules", options);
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_EQ(set->unused.empty(), c.used) << c.name << "\n" << c.text;
    if (c.used || set->unused.empty()) continue;
    EXPECT_EQ(set->unused[0].name, c.name);
    EXPECT_EQ(set->unused[0].hint, c.hint);
  }
  EXPECT_TRUE(read_rules_text("ipvar OWN 192.0.2.1\n", "t.rules")->unused.empty()) << "a file may set what others use";
}

TEST(RuleSet, AVariableThatIsFixedStaysAndTheLinesThatWouldChangeItAreSaid) {
  ReadOptions options;
  ASSERT_TRUE(options.variables.fix("HOME_NET", "192.0.2.0/24"));
  const auto set = read_rules_text(
      "ipvar HOME_NET 10.0.0.0/8\nipvar HTTP_SERVERS $HOME_NET\nvar HOME_NET  192.0.2.0/24 \n"
      "portvar HTTP_PORTS 8080\nalert tcp any any -> $HTTP_SERVERS $HTTP_PORTS (sid:1;)\nvar HOME_NET any\n",
      "t.rules", options);
  ASSERT_TRUE(set) << set.error().message;
  ASSERT_EQ(set->rules.size(), 1U);
  EXPECT_TRUE(set->rules[0].destination.addresses.contains(*packet::IpAddress::parse("192.0.2.7")));
  EXPECT_FALSE(set->rules[0].destination.addresses.contains(*packet::IpAddress::parse("10.1.1.1")));
  EXPECT_TRUE(set->rules[0].destination.ports.contains(8080)) << "of another variable the file's text counts";
  ASSERT_EQ(set->overridden.size(), 2U) << "a line with the same text overrides nothing";
  EXPECT_EQ(set->place(set->overridden[0].file, set->overridden[0].line), "t.rules:1");
  EXPECT_EQ(set->overridden[0].name, "HOME_NET");
  EXPECT_EQ(set->overridden[1].line, 6U);
  EXPECT_FALSE(read_rules_text("ipvar HOME_NET\n", "t.rules", options))
      << "a line that says nothing is a mistake still";
}

TEST_F(RuleFiles, IncludesLieBelowTheirFile) {
  write("more/a.rules", rule(2) + "\ninclude b.rules\n");
  write("more/b.rules", rule(3));
  const auto set = read_one(write("snort.conf", "var WHERE more\n" + rule(1) + "\ninclude $WHERE/a.rules\n" + rule(4)));
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_THAT(sids(*set), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(set->place(set->rules[2].file, set->rules[2].line), path("more/b.rules") + ":1");
}

struct Unreadable {
  std::string text;
  const char* message;
};

TEST_F(RuleFiles, WhatCannotBeReadIsAnError) {
  mkfifo(path("pipe").c_str(), 0600);
  const std::string loop = path("loop.rules");
  write("loop.rules", "include loop.rules\n");
  for (const auto& [file, message] : {
           Unreadable{path("none"), "No such file"},
           Unreadable{path(""), "a folder"},
           Unreadable{path("pipe"), "a pipe"},
           Unreadable{write("nul", rule(1) + "\n\n" + std::string(3, '\0')), "nul:3: has a NUL byte"},
           Unreadable{loop, "more than 8 deep"},
           Unreadable{write("a", "include none.rules\n"), "a:1: include: "},
           Unreadable{write("b", "\ninclude $X/y\n"), "b:2: include: the variable 'X' is not set"},
           Unreadable{write("c", "ipvar HOME_NET\n"), "c:1: the variable HOME_NET is given no value"},
           Unreadable{write("d", "config classification: a,b\n"), "d:1: 'a,b' is not NAME,DESCRIPTION,PRIORITY"},
       }) {
    const auto set = read_one(file);
    ASSERT_FALSE(set) << file;
    EXPECT_THAT(set.error().message, HasSubstr(message));
    EXPECT_EQ(set.error().message.find('\n'), std::string::npos);
  }
}

TEST(RuleSet, ALineOfTenMegabytesIsOneRefusedRule) {
  const RuleSet set = of("alert " + std::string(10 << 20, 'x') + "\n" + rule(1));
  EXPECT_THAT(sids(set), ElementsAre(1));
  ASSERT_EQ(set.refused.size(), 1U);
  EXPECT_THAT(set.refused[0].message, HasSubstr("more than 64 KiB"));
}

TEST(RuleSet, MessagesHoldNoBytesOfATerminal) {
  const RuleSet set = of("alert \x1b[31m any any -> any any (\x1b\x07:\"\x1b\"; sid:1;)\n");
  ASSERT_EQ(set.refused.size(), 1U);
  EXPECT_EQ(set.refused[0].message.find('\x1b'), std::string::npos);
}

TEST(RuleSet, FilesThatSayNothingAreNamed) {
  for (const auto& [text, silent] : {std::pair{"", true},
                                     {"# a note\n\n  \n", true},
                                     {"ipvar HOME any\n", false},
                                     {"alert tcp any any -> any any (bad)\n", false}}) {
    const auto set = read_rules_text(text, "t.rules");
    ASSERT_TRUE(set) << text;
    EXPECT_EQ(set->silent_files.size(), silent ? 1U : 0U) << text;
  }
}

}  // namespace
}  // namespace sluice::match
