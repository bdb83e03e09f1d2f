// What `sluice rules` says of a set.
#include "cli/rules_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

match::RuleSet read(const std::string& text, bool all = false) {
  match::ReadOptions options;
  options.commented_out = all;
  auto set = match::read_rules_text(text, "t.rules", options);
  EXPECT_TRUE(set);
  return *set;
}

constexpr const char* rules =
    "preprocessor x\n"
    "alert tcp any any -> any any (content:\"ab\"; content:!\"cde\"; sid:1;)\n"
    "drop tcp any any -> any any (content:\"abcdefgh\"; sid:2;)\n"
    "alert icmp any any -> any any (itype:8; sid:3;)\n"
    "alert tcp any any -> any any (asn1:a; sid:4;)\n"
    "alert tcp any any -> any any (asn1:b; sid:5;)\n"
    "alert tcp any any -> any any (content:\"abc\"; depth:1; sid:6;)\n"
    "# alert tcp any any -> any any (tag:x; sid:7;)\n";

TEST(RulesReport, CountsForPeople) {
  const std::string text = rules_text(read(rules), false);
  EXPECT_THAT(text, HasSubstr("6 rules in 1 file, 1 commented out\n3 load (50.0 %), 3 not\n  alert 2\n  drop 1\n"
                              "1 line by which Snort configures itself, not followed: preprocessor\n"));
  EXPECT_THAT(text, HasSubstr("    2  asn1: ASN.1 is not decoded"));
  EXPECT_THAT(text, HasSubstr("t.rules:5\n    1  depth: "));
  EXPECT_THAT(text,
              HasSubstr("3 contents (1 negated) in the rules that load\n1 rule without a pattern for the matcher\n"
                        "1 pattern below 4 bytes"));
  EXPECT_THAT(text, HasSubstr("\n2                         1\n"));
  EXPECT_THAT(text, HasSubstr("\n8-15                      1\n"));
  EXPECT_THAT(text, Not(HasSubstr("t.rules:6: ")));
  EXPECT_THAT(text, HasSubstr("; --list says each in full\n"));
}

TEST(RulesReport, ListsEachRuleThatDoesNotLoad) {
  const std::string text = rules_text(read(rules), true);
  EXPECT_THAT(text, HasSubstr("t.rules:5: sid 4: asn1: ASN.1 is not decoded\nt.rules:6: sid 5: "));
  EXPECT_THAT(text, HasSubstr("t.rules:7: sid 6: depth: 1 is smaller than the content's 3 bytes"));
}

TEST(RulesReport, SaysTheSameInJson) {
  const auto json = nlohmann::json::parse(rules_json(read(rules, true)));
  EXPECT_EQ(json["rules"], 7);
  EXPECT_EQ(json["load"], 3);
  EXPECT_EQ(json["actions"]["drop"], 1);
  EXPECT_EQ(json["reasons"][0]["rules"], 2);
  EXPECT_EQ(json["rules_without_pattern"], 1);
  EXPECT_EQ(json["patterns_below_4_bytes"], 1);
  EXPECT_EQ(json["pattern_lengths"]["8-15"], 1);
  ASSERT_EQ(json["not_loaded"].size(), 4U);
  EXPECT_EQ(json["not_loaded"][3]["sid"], 7);
  EXPECT_EQ(json["not_loaded"][3]["commented_out"], true);
}

TEST(RulesReport, CountsLinesThatKeepAlertsBack) {
  const match::RuleSet set = read(
      "suppress gen_id 1, sig_id 1\nsuppress gen_id 1, sig_id 2\n"
      "event_filter gen_id 1, sig_id 0, type limit, track by_src, count 1, seconds 60\n");
  EXPECT_THAT(rules_text(set, false), HasSubstr("3 lines that keep alerts back: 2 of suppress, 1 of event_filter\n"));
  const auto json = nlohmann::json::parse(rules_json(set));
  EXPECT_EQ(json["suppressions"], 2);
  EXPECT_EQ(json["event_filters"], 1);
  EXPECT_THAT(rules_text(read(rules), false), Not(HasSubstr("keep alerts back")));
}

TEST(RulesReport, SaysWhichLinesAVariableStandsBefore) {
  match::ReadOptions options;
  ASSERT_TRUE(options.variables.fix("HOME_NET", "10.0.0.0/8"));
  const auto set = match::read_rules_text("\nipvar HOME_NET any\n", "t.rules", options);
  ASSERT_TRUE(set);
  EXPECT_THAT(rules_text(*set, false), HasSubstr("t.rules:2: HOME_NET stays as --var sets it\n"));
  const auto json = nlohmann::json::parse(rules_json(*set));
  ASSERT_EQ(json["overridden_variables"].size(), 1U);
  EXPECT_EQ(json["overridden_variables"][0], (nlohmann::json{{"file", "t.rules"}, {"line", 2}, {"name", "HOME_NET"}}));
  EXPECT_THAT(rules_text(read(rules), true), Not(HasSubstr("--var")));
}

TEST(RulesReport, SaysWhichVariablesNoRuleUses) {
  match::ReadOptions options;
  ASSERT_TRUE(options.variables.fix("HOME_NETS", "10.0.0.0/8"));
  const auto set = match::read_rules_text("alert tcp $HOME_NET any -> any any (sid:1;)\n", "t.rules", options);
  ASSERT_TRUE(set);
  EXPECT_THAT(rules_text(*set, false),
              HasSubstr("variable HOME_NETS is set but no rule uses it; did you mean \"HOME_NET\"?\n"));
  EXPECT_EQ(nlohmann::json::parse(rules_json(*set))["unused_variables"], nlohmann::json::array({"HOME_NETS"}));
  EXPECT_THAT(rules_text(read(rules), true), Not(HasSubstr("no rule uses")));
}

TEST(RulesReport, SaysWhichRulesWaitInVain) {
  const auto set = read(
      "alert tcp any any -> any any (flowbits:isset,never; sid:1;)\n"
      "alert tcp any any -> any any (classtype:mine; sid:2;)\n");
  EXPECT_EQ(rules_status(set), 0) << "they load";
  const std::string text = rules_text(set, false);
  EXPECT_THAT(text, HasSubstr("2 load (100.0 %), 0 not\n"));
  EXPECT_THAT(text, HasSubstr("1 rule waits for a flowbit that no rule sets, such as t.rules:1: flowbits: no rule "
                              "sets 'never'\n1 rule is of a class type that is not known, such as t.rules:2: "));
  const std::string each = "t.rules:1: sid 1: flowbits: no rule sets 'never'\n";
  EXPECT_THAT(text, Not(HasSubstr(each)));
  EXPECT_THAT(rules_text(set, true), HasSubstr("\n1 rule waits for a flowbit that no rule sets:\n" + each));
  const auto json = nlohmann::json::parse(rules_json(set));
  EXPECT_EQ(json["noted"]["waiting_in_vain"][0]["sid"], 1);
  EXPECT_EQ(json["noted"]["of_unknown_class"][0]["line"], 2);
  EXPECT_EQ(nlohmann::json::parse(rules_json(read(rules)))["noted"], nlohmann::json::object());
}

TEST(RulesReport, OnlyActiveRulesDecideTheStatus) {
  EXPECT_EQ(rules_status(read(rules)), 1);
  const std::string fine = "alert tcp any any -> any any (sid:1;)\n# alert tcp any any -> any any (tag:x; sid:7;)\n";
  EXPECT_EQ(rules_status(read(fine)), 0);
  EXPECT_EQ(rules_status(read(fine, true)), 0);
  EXPECT_EQ(read(fine, true).refused.size(), 1U);
}

TEST(RulesReport, AnEmptyFileIsFine) {
  EXPECT_THAT(rules_text(read(""), true), HasSubstr("0 rules in 1 file\n0 load, 0 not\n"));
}

}  // namespace
}  // namespace sluice::cli
