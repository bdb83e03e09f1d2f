// What is left out of a content's places changes nothing: against a search that tries each of them.
#include "match/confirm/later_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <regex>
#include <string>

#include "match/confirm/payload_trial_test.h"

namespace sluice::match {
namespace {

// All that follows from checks[i] on, each place of each check tried.
struct EachPlace {
  const std::vector<Check>& checks;
  const std::string& bytes;

  bool from(std::size_t i, std::size_t cursor) const {
    if (i == checks.size()) return true;
    return std::visit([&](const auto& one) { return check(one, i, cursor); }, checks[i]);
  }

 private:
  static std::size_t clamped(std::int64_t at, std::size_t size) {
    return static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, static_cast<std::int64_t>(size)));
  }
  bool check(const Content& content, std::size_t i, std::size_t cursor) const {
    const std::int64_t begin =
        (content.place.relative ? static_cast<std::int64_t>(cursor) : 0) + content.place.start.value;
    const std::size_t end =
        content.place.has_end ? clamped(begin + content.place.length.value, bytes.size()) : bytes.size();
    bool found = false;
    for (std::size_t at = clamped(begin, bytes.size()); at + content.bytes.size() <= end; ++at) {
      if (bytes.compare(at, content.bytes.size(), content.bytes) != 0) continue;
      if (content.place.at_end && at + content.bytes.size() != bytes.size()) continue;
      found = true;
      if (!content.negated && from(i + 1, at + content.bytes.size())) return true;
    }
    return content.negated && !found && from(i + 1, cursor);
  }
  bool check(const Pcre& pcre, std::size_t i, std::size_t cursor) const {
    const std::regex expression(pcre.pattern);
    bool found = false;
    for (std::size_t at = pcre.relative ? cursor : 0; at <= bytes.size(); ++at) {
      std::smatch match;
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      if (!std::regex_search(begin, bytes.end(), match, expression, std::regex_constants::match_continuous)) continue;
      found = true;
      if (!pcre.negated && from(i + 1, at + static_cast<std::size_t>(match.length()))) return true;
    }
    return pcre.negated && !found && from(i + 1, cursor);
  }
  bool check(const IsDataAt& data, std::size_t i, std::size_t cursor) const {
    const auto count = static_cast<std::size_t>(data.count.value);
    const bool holds = data.relative ? cursor + count <= bytes.size() : count < bytes.size();
    return holds != data.negated && from(i + 1, cursor);
  }
  bool check(const ByteTest& test, std::size_t i, std::size_t cursor) const {
    const std::size_t at = (test.number.relative ? cursor : 0) + static_cast<std::size_t>(test.number.offset.value);
    return at < bytes.size() && static_cast<std::uint8_t>(bytes[at]) == static_cast<std::uint64_t>(test.value.value) &&
           from(i + 1, cursor);
  }
  template <typename Other>
  bool check(const Other& /*one*/, std::size_t /*i*/, std::size_t /*cursor*/) const {
    ADD_FAILURE() << "not asked for here";
    return false;
  }
};

TEST(LaterChecks, NoRuleHoldsOrFailsForThePlacesThatAreLeftOut) {
  std::mt19937 random(7);
  const auto letters = [&](std::size_t most) {
    std::string text;
    for (std::size_t left = 1 + random() % most; left != 0; --left) text += "aaabc"[random() % 5];
    return text;
  };
  const auto number = [&](unsigned most) { return std::to_string(random() % (most + 1)); };
  const std::string expressions[] = {"b[^a]", "a+b", "c|a.*b", "[ab]{2}c", "b.?.?$"};
  std::size_t holding = 0, undecided = 0;
  constexpr std::size_t trials = 20'000;
  for (std::size_t t = 0; t < trials; ++t) {
    std::string options = "content:\"" + letters(2) + "\"; ";
    for (std::size_t left = 1 + random() % 4; left != 0; --left) {
      const bool relative = random() % 4 != 0;
      switch (random() % 8) {
        case 0:
          options +=
              "isdataat:" + std::string(random() % 3 == 0 ? "!" : "") + number(6) + (relative ? ",relative; " : "; ");
          break;
        case 1:
          options += "byte_test:1,=," + std::to_string('a' + random() % 3) + "," + number(3) +
                     (relative ? ",relative; " : "; ");
          break;
        case 2:
          options += "pcre:" + std::string(random() % 4 == 0 ? "!" : "") + "\"/" + expressions[random() % 5] +
                     (relative ? "/R\"; " : "/\"; ");
          break;
        default:
          options += "content:" + std::string(random() % 5 == 0 ? "!" : "") + "\"" + letters(3) + "\"; ";
          if (relative) {
            options += "distance:" + std::string(random() % 4 == 0 ? "-" : "") + number(2) + "; ";
            if (random() % 3 == 0) options += "within:" + std::to_string(3 + random() % 5) + "; ";
          } else if (random() % 3 == 0) {
            options += "offset:" + number(5) + "; ";
          }
          if (random() % 8 == 0) options += "endswith; ";
      }
    }
    const auto rule = read_rule("alert tcp any any -> any any (msg:\"t\"; " + options + " sid:1;)");
    if (!rule) continue;  // contradictions, mostly
    const auto matcher = PayloadMatcher::make(*rule);
    ASSERT_TRUE(matcher);
    PayloadMatcher::Scratch scratch;
    for (int payloads = 0; payloads < 4; ++payloads) {
      const std::string payload = letters(24);
      Buffers buffers;
      buffers.set(Buffer::payload, payload);
      const bool holds = EachPlace{rule->checks, payload}.from(0, 0);
      const PayloadVerdict verdict = matcher->matches(buffers, scratch);
      holding += holds ? 1 : 0;
      undecided += verdict == PayloadVerdict::given_up ? 1 : 0;
      ASSERT_EQ(verdict == PayloadVerdict::yes, holds) << options << " on " << payload;
    }
  }
  EXPECT_GT(holding, trials / 2);
  EXPECT_EQ(undecided, 0U);
}

TEST(LaterChecks, Table) {
  constexpr Places first = Places::first, decides = Places::first_decides, each = Places::each;
  const struct {
    const char* options;
    Places places;  // of the first check
  } cases[] = {
      {"content:\"a\";", first},
      {"content:\"a\"; content:\"b\";", first},
      {"content:\"a\"; content:\"b\"; distance:3;", decides},
      {"content:\"a\"; content:\"b\"; distance:-3;", decides},
      {"content:\"a\"; content:\"b\"; distance:0; content:\"c\"; within:2;", decides},  // c is tried behind each b
      {"content:\"a\"; content:\"b\"; distance:0; endswith;", decides},
      {"content:\"a\"; content:\"b\"; within:5;", each},
      {"content:\"a\"; content:!\"b\"; distance:0;", each},
      {"content:\"a\"; content:!\"b\"; content:\"c\"; within:3;", each},  // c is behind a
      {"content:\"a\"; byte_test:1,=,1,0; content:\"c\"; distance:0;", decides},
      {"content:\"a\"; byte_test:1,=,1,0; content:\"c\"; within:3;", each},
      {"content:\"a\"; byte_test:1,=,1,0,relative;", each},
      {"content:\"a\"; isdataat:5,relative;", decides},
      {"content:\"a\"; isdataat:!5,relative;", each},
      {"content:\"a\"; isdataat:5,relative; content:\"b\"; within:4;", each},
      {"content:\"a\"; byte_jump:1,0,relative; content:\"b\"; distance:0;", each},
      {"content:\"a\"; byte_jump:1,0; content:\"b\"; within:4;", first},  // b is behind the jump
      {"content:\"a\"; base64_decode:relative; base64_data; content:\"b\";", each},
      {"content:\"a\"; pcre:\"/b[^c]d/R\";", decides},
      {"content:\"a\"; pcre:\"/b/\";", first},
      {"content:\"a\"; pcre:!\"/b/R\";", each},
      {"content:\"a\"; pcre:\"/^b/R\";", each},
      {"pcre:\"/a/\"; content:\"b\"; distance:0;", each},  // of an expression a later place may end earlier
      {"pcre:\"/a/\"; content:\"b\";", first},
      {"content:\"a\"; http_uri; content:\"b\"; content:\"c\"; distance:0;", first},  // another buffer's
  };
  for (const auto& one : cases) {
    const auto rule = read_rule("alert tcp any any -> any any (msg:\"t\"; " + std::string(one.options) + " sid:1;)");
    ASSERT_TRUE(rule) << one.options << ": " << rule.error().message;
    std::vector<const Check*> checks;
    for (const Check& check : rule->checks) checks.push_back(&check);
    EXPECT_EQ(places_of(checks, 0), one.places) << one.options;
  }
}

TEST(LaterChecks, AnExpressionThatSeesWhatIsBeforeDoesNotLookAheadOnly) {
  const struct {
    const char* pattern;
    bool is_so;
  } cases[] = {{"abc", true},      {"a[^b]c", true},       {"a\\^b", true},     {"a$", true},
               {"a(?=b)c", true},  {"[[:alpha:]]b", true}, {"a[\\]^]b", true},  {"\\\\a", true},
               {"^a", false},      {"a|^b", false},        {"\\ba", false},     {"\\Ba", false},
               {"\\Aa", false},    {"\\Ga", false},        {"x\\Ka", false},    {"(?<!b)a", false},
               {"(?<=b)a", false}, {"(*COMMIT)a", false},  {"\\Q^a\\E", false}, {"[a]^b", false},
               {"[^]a]^b", false}};
  for (const auto& one : cases) {
    Pcre pcre;
    pcre.pattern = one.pattern;
    EXPECT_EQ(looks_ahead_only(pcre), one.is_so) << one.pattern;
  }
}

// A payload that has the first content in every byte: 50 searches to the end would be some 200 times as long.
TEST(LaterChecks, AContentEverywhereDoesNotMakeASearchForEach) {
  const std::string payload(100'000, 'a');
  EXPECT_EQ(verdict("content:\"a\"; content:\"b\"; distance:0;", payload), PayloadVerdict::no);
  EXPECT_EQ(verdict("content:\"a\"; pcre:\"/b[0-9]/R\";", payload), PayloadVerdict::no);
  EXPECT_EQ(verdict("content:\"a\"; content:!\"b\"; within:1; content:\"c\"; within:2;", payload),
            PayloadVerdict::given_up);
}

}  // namespace
}  // namespace sluice::match
