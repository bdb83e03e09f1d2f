// That what is refused for its size never holds, by the matcher itself. Cases one by one: contradictions_test.cc.
#include "match/rules/impossible_contents.h"

#include <random>

#include "match/confirm/payload_matcher.h"
#include "match/rules/rule_trial_test.h"

namespace sluice::match {
namespace {

class Checks {
 public:
  // One to four checks of the payload, and a number that some of them use.
  std::string any() {
    std::string text = below(2) == 0 ? "byte_extract:1," + number() + ",n,string,dec; " : "";
    const bool has_number = !text.empty();
    for (std::size_t left = 1 + below(4); left > 0; --left) text += one(has_number);
    return text;
  }
  std::string payload(std::size_t size) {
    std::string text;
    while (text.size() < size) text += "ab12"[below(4)];
    return text;
  }
  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  std::string number() { return std::to_string(below(4)); }
  std::string signed_number() { return std::to_string(static_cast<int>(below(6)) - 2); }
  std::string operand(bool has_number, const std::string& other) { return has_number && below(3) == 0 ? "n" : other; }
  std::string content() { return "content:\"" + payload(1 + below(2)) + "\"; "; }
  std::string one(bool has_number) {
    switch (below(8)) {
      case 0:
        return content() + "offset:" + operand(has_number, number()) + "; ";
      case 1:
      case 2:
        return content() + "distance:" + operand(has_number, signed_number()) + "; ";
      case 3:
        return "content:!\"" + payload(1) + "\"; distance:" + number() + "; ";
      case 4:
        return std::string("pcre:\"/[ab]?/") + (below(2) == 0 ? "R" : "") + "\"; ";
      case 5:
        return "isdataat:" + operand(has_number, number()) + (below(2) == 0 ? ",relative; " : "; ");
      case 6:
        return "byte_test:1,>=,0," + operand(has_number, number()) + ",string,dec" +
               (below(2) == 0 ? ",relative; " : "; ");
      default: {
        const char* const from[] = {"", ",from_beginning", ",from_end"};
        return "byte_jump:1," + number() + ",string,dec" + (below(2) == 0 ? ",relative" : "") + from[below(3)] +
               ",post_offset " + signed_number() + "; ";
      }
    }
  }

  std::mt19937 random_{11};
};

TEST(ImpossibleContents, NeverHold) {
  Checks checks;
  PayloadMatcher::Scratch scratch;
  std::size_t impossible = 0, held = 0;
  for (int n = 0; n < 20'000; ++n) {
    const std::string text = checks.any();
    const std::size_t size = 1 + checks.below(7);
    Rule rule = read("alert udp any any -> any any (" + text + "sid:1;)");
    rule.numbers.push_back({HeaderField::payload_size, 0, static_cast<std::uint32_t>(size)});
    const bool is_impossible = !impossible_content(rule).message.empty();
    impossible += is_impossible ? 1 : 0;
    const auto matcher = PayloadMatcher::make(rule);
    ASSERT_TRUE(matcher);
    for (int k = 0; k < 20; ++k) {
      const std::string payload = checks.payload(size);
      Buffers buffers;
      buffers.set(Buffer::payload, payload);
      const bool holds = matcher->matches(buffers, scratch) != PayloadVerdict::no;
      held += holds ? 1 : 0;
      ASSERT_FALSE(holds && is_impossible) << text << " in " << payload << ": " << impossible_content(rule).message;
    }
  }
  EXPECT_GT(impossible, 2000U);
  EXPECT_GT(held, 2000U);
}

}  // namespace
}  // namespace sluice::match
