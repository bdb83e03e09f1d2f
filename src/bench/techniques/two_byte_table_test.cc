// A walk by pairs counts what the automaton counts by single bytes, whatever the budget holds.
#include "bench/techniques/two_byte_table.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sluice::match {
namespace {

std::string random_text(std::mt19937& random, std::string_view bytes, std::size_t size) {
  std::string out(size, ' ');
  for (char& c : out) c = bytes[random() % bytes.size()];
  return out;
}

Dfa automaton(const std::vector<std::string>& patterns) {
  std::vector<Pattern> all;
  for (const std::string& pattern : patterns) all.push_back({pattern, true});
  return Dfa::make(all, 16).value();
}

std::size_t bytes_of_a_state(const Dfa& dfa) {
  const std::size_t classes = TwoByteTable(dfa, 0).classes();
  return classes * classes * sizeof(std::uint32_t);
}

struct Walked {
  std::uint32_t ends = 0;
  std::size_t steps = 0;
};

Walked walk(const Dfa& dfa, const TwoByteTable& table, std::string_view text) {
  Walked out;
  std::uint32_t state = 0;
  for (std::size_t at = 0; at < text.size(); ++out.steps) {
    const auto first = static_cast<std::uint8_t>(text[at]);
    const bool both = state < table.hot_states() && at + 1 < text.size();
    std::uint32_t entry = dfa.next()[state * std::size_t{256} + first];
    if (both) {
      const std::size_t row = std::size_t{state} * table.classes() + table.class_of()[first];
      entry = table.pairs()[row * table.classes() + table.class_of()[static_cast<std::uint8_t>(text[at + 1])]];
    }
    out.ends += (entry & TwoByteTable::ends_first) != 0 ? 1 : 0;
    out.ends += (entry & TwoByteTable::ends_second) != 0 ? 1 : 0;
    state = entry & TwoByteTable::state_mask;
    at += both ? 2 : 1;
  }
  return out;
}

TEST(TwoByteTable, ClassesAreOfBytesThatNoStateDistinguishes) {
  struct Case {
    std::vector<std::string> patterns;
    std::uint32_t classes;
  };
  const Case cases[] = {
      {{}, 1},                        // one state, one class
      {{"a"}, 2},                     // a and A, all others
      {{"ab"}, 3},                    //
      {{"ax", "ay", "bx", "by"}, 5},  // x and y end other patterns, but lead to states of their own
      {{"\x01\xff"}, 3},
  };
  for (const Case& one : cases) {
    const TwoByteTable table(automaton(one.patterns));
    EXPECT_EQ(table.classes(), one.classes) << testing::PrintToString(one.patterns);
    EXPECT_EQ(table.class_of()['A'], table.class_of()['a']);
    EXPECT_EQ(table.class_of()['\t'], table.class_of()['~']);
  }
}

TEST(TwoByteTable, All256BytesMayBeClasses) {
  std::vector<std::string> patterns;
  for (unsigned byte = 0; byte < 256; ++byte) patterns.push_back(std::string(2, static_cast<char>(byte)));
  const TwoByteTable table(automaton(patterns));
  EXPECT_EQ(table.classes(), 256u - 26);
  EXPECT_EQ(table.class_of()[0xff], table.classes() - 1);
}

TEST(TwoByteTable, TheBudgetSaysHowManyStatesAreHot) {
  const Dfa dfa = automaton({"abc", "b", "cab"});
  const std::size_t one = bytes_of_a_state(dfa);
  struct Case {
    std::size_t bytes;
    std::size_t states;
  };
  for (const Case& budget : {Case{0, 0}, Case{one - 1, 0}, Case{one, 1}, Case{2 * one - 1, 1}, Case{3 * one, 3},
                             Case{std::size_t{1} << 30, dfa.states()}}) {
    const TwoByteTable table(dfa, budget.bytes);
    EXPECT_EQ(table.hot_states(), budget.states) << budget.bytes;
    EXPECT_EQ(table.bytes(), budget.states * one) << budget.bytes;
  }
}

TEST(TwoByteTable, AnEndMayBeAtTheFirstByteTheSecondOrBoth) {
  const Dfa dfa = automaton({"a", "bc"});
  const TwoByteTable table(dfa);
  struct Case {
    std::string text;
    std::uint32_t ends;
    std::size_t steps;
  };
  const Case cases[] = {{"", 0, 0},   {"a", 1, 1},   {"x", 0, 1},      {"ax", 1, 1},     {"xa", 1, 1},
                        {"aa", 2, 1}, {"bc", 1, 1},  {"xbc", 1, 2},    {"abc", 2, 2},    {"bca", 2, 2},
                        {"bx", 0, 1}, {"aaa", 3, 2}, {"xbcbca", 3, 3}, {"BCxxAaa", 4, 4}};
  for (const Case& one : cases) {
    const Walked walked = walk(dfa, table, one.text);
    EXPECT_EQ(walked.ends, one.ends) << one.text;
    EXPECT_EQ(walked.ends, dfa.count(one.text)) << one.text;
    EXPECT_EQ(walked.steps, one.steps) << one.text;
  }
}

TEST(TwoByteTable, CountsWhatTheAutomatonCountsWhateverIsHot) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> patterns;
    for (int i = 0; i < 30; ++i) patterns.push_back(random_text(random, "abAc\xff", 1 + random() % 6));
    const Dfa dfa = automaton(patterns);
    const std::size_t one = bytes_of_a_state(dfa);
    for (const std::size_t hot : {std::size_t{0}, std::size_t{1}, std::size_t{4}, dfa.states()}) {
      const TwoByteTable table(dfa, hot * one);
      ASSERT_EQ(table.hot_states(), hot);
      for (std::size_t size = 0; size < 40; ++size) {
        const std::string text = random_text(random, "abAcx\xff", size);
        const Walked walked = walk(dfa, table, text);
        ASSERT_EQ(walked.ends, dfa.count(text)) << text;
        EXPECT_GE(walked.steps, hot == 0 ? size : (size + 1) / 2);
        EXPECT_LE(walked.steps, hot == dfa.states() ? (size + 1) / 2 : size);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::match
