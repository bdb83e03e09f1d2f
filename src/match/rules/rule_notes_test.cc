// What is said of rules that load.
#include "match/rules/rule_notes.h"

#include "match/rules/rule_trial_test.h"

namespace sluice::match {
namespace {

std::string rule(int sid, const std::string& options) {
  return "alert tcp any any -> any any (" + options + " content:\"a\"; sid:" + std::to_string(sid) + ";)\n";
}

// "name: sid: message" of each.
std::vector<std::string> noted(const std::string& text) {
  const auto set = read_rules_text(text, "t.rules", {});
  EXPECT_TRUE(set);
  std::vector<std::string> all;
  for (const RuleNotes& notes : notes_on(*set)) {
    for (const RuleNote& note : notes.rules) {
      all.push_back(std::string(notes.name) + ": " + std::to_string(note.sid) + ": " + note.message);
    }
  }
  return all;
}

struct Case {
  const char* what;
  std::string rules;
  std::vector<std::string> noted;
};

TEST(RuleNotes, SayWhichRulesWaitForFlowbitsInVain) {
  const std::string vain = "waiting_in_vain: ";
  for (const Case& one : {
           Case{"nobody sets it", rule(1, "flowbits:isset,a;"), {vain + "1: flowbits: no rule sets 'a'"}},
           {"isnotset waits for nothing", rule(1, "flowbits:isnotset,a;"), {}},
           {"set, before or behind",
            rule(1, "flowbits:isset,a;") + rule(2, "flowbits:set,a;") + rule(3, "flowbits:isset,a;"),
            {}},
           {"toggled", rule(1, "flowbits:isset,a;") + rule(2, "flowbits:toggle,a;"), {}},
           {"only unset",
            rule(1, "flowbits:isset,a;") + rule(2, "flowbits:unset,a;"),
            {vain + "1: flowbits: no rule sets 'a'"}},
           {"its setter is refused",
            rule(1, "flowbits:isset,a;") + rule(2, "flowbits:set,a; tag:x;"),
            {vain + "1: flowbits: no rule sets 'a'"}},
           {"one of two is enough", rule(1, "flowbits:isset,a|b;") + rule(2, "flowbits:set,b;"), {}},
           {"both are needed",
            rule(1, "flowbits:isset,a&b;") + rule(2, "flowbits:set,a;"),
            {vain + "1: flowbits: no rule sets 'b'"}},
           {"a chain",
            rule(1, "flowbits:isset,b;") + rule(2, "flowbits:isset,a; flowbits:set,b;"),
            {vain + "1: flowbits: only rules set 'b' that wait in vain themselves",
             vain + "2: flowbits: no rule sets 'a'"}},
           {"a chain that begins",
            rule(1, "flowbits:isset,b;") + rule(2, "flowbits:isset,a; flowbits:set,b;") + rule(3, "flowbits:set,a;"),
            {}},
           {"itself alone",
            rule(1, "flowbits:isset,a; flowbits:set,a;"),
            {vain + "1: flowbits: only rules set 'a' that wait in vain themselves"}},
       }) {
    EXPECT_EQ(noted(one.rules), one.noted) << one.what;
  }
}

TEST(RuleNotes, SayWhichClassTypesAreNotKnown) {
  const std::string of = "of_unknown_class: ";
  EXPECT_EQ(noted(rule(1, "classtype:trojan-activity;") + rule(2, "classtype:trojan-activty;") +
                  rule(3, "classtype:mine; priority:1;") + rule(4, "")),
            (std::vector<std::string>{of + "2: classtype: 'trojan-activty' is not known, and the priority is 3",
                                      of + "3: classtype: 'mine' is not known, and the priority is 1"}));
  EXPECT_EQ(noted("config classification: mine,My own,2\n" + rule(1, "classtype:mine;")), std::vector<std::string>{});
}

TEST(RuleNotes, SayHowManyAndTheFirst) {
  const auto set = read_rules_text(rule(1, "flowbits:isset,a;") + rule(2, "flowbits:isset,b;"), "t.rules", {});
  ASSERT_TRUE(set);
  EXPECT_EQ(notes_on(*set).at(0).text(*set),
            "2 rules wait for flowbits that no rule sets, such as t.rules:1: flowbits: no rule sets 'a'");
}

}  // namespace
}  // namespace sluice::match
