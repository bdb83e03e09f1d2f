// A setting that is declared once: what its reader takes and refuses, what it shows, and what people are shown.
#include "base/option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

enum class Way { up, down };
struct Inner {
  std::uint32_t room = 4096;
};
struct Limits {
  unsigned batch = 64;
  int below = -1;
  bool strict = false;
  std::string file = "a\"b";
  std::vector<std::string> names = {};
  std::chrono::nanoseconds time{0};
  std::chrono::seconds pause{60};
  Way way = Way::up;
  Inner inner = {};
};

const std::vector<Option<Limits>>& settings() {
  static const std::vector<Option<Limits>> all = {
      option::number("batch", &Limits::batch, {2, 128, "frames"}, "of a batch"),
      option::number_or("below", &Limits::below, {0, 9}, "auto", -1, "a bound"),
      option::flag("strict", &Limits::strict, "whether").reloadable(),
      option::text("file", &Limits::file, "a file").takes("path").by_default("none"),
      option::texts("names", &Limits::names, "names"),
      option::duration("time", &Limits::time, "auto", "a time"),
      option::seconds("pause", &Limits::pause, {0, 90, "s"}, "a pause"),
      option::word("way", &Limits::way, {{"up", Way::up}, {"down", Way::down}}, "where to"),
      option::bytes<Limits>(
          "room", [](auto& all) -> auto& { return all.inner.room; }, {1024, 65536, ", as much as there is"}, "room")};
  return all;
}

class OptionTest : public testing::Test {
 protected:
  Settings section(const std::string& lines) {
    return Settings::from_text("[limits]\n" + lines, "a.toml", diagnostics_)->section("limits");
  }
  Limits read(const std::string& lines) {
    Limits limits;
    Settings from = section(lines);
    option::read(settings(), from, limits);
    from.finish();
    return limits;
  }
  Diagnostics diagnostics_;
};

TEST_F(OptionTest, ReadsEachKindAndLeavesWhatIsNotThere) {
  const Limits usual = read("");
  EXPECT_EQ(usual.batch, 64U);
  EXPECT_EQ(usual.below, -1);
  EXPECT_EQ(usual.inner.room, 4096U);
  const Limits limits = read(
      "batch = 128\nbelow = 3\nstrict = true\nfile = \"x\"\nnames = [\"a\", \"b\"]\ntime = \"2ms\"\npause = 0\n"
      "way = \"down\"\nroom = \"8K\"\n");
  EXPECT_THAT(diagnostics_.lines, IsEmpty());
  EXPECT_EQ(limits.batch, 128U);
  EXPECT_EQ(limits.below, 3);
  EXPECT_TRUE(limits.strict);
  EXPECT_EQ(limits.file, "x");
  EXPECT_THAT(limits.names, ElementsAre("a", "b"));
  EXPECT_EQ(limits.time, 2ms);
  EXPECT_EQ(limits.pause, 0s);
  EXPECT_EQ(limits.way, Way::down);
  EXPECT_EQ(limits.inner.room, 8192U);
  EXPECT_EQ(read("below = \"auto\"\n").below, -1);
}

TEST_F(OptionTest, RefusesWhatIsBeyondTheBoundsOnceWithItsLine) {
  const Limits limits = read("batch = 1\nbelow = 10\nroom = 1023\nway = \"left\"\n");
  EXPECT_THAT(diagnostics_.lines,
              ElementsAre("a.toml:2: [limits] batch = 1: allowed is a whole number from 2 to 128",
                          "a.toml:3: [limits] below = 10: allowed is \"auto\" or a whole number from 0 to 9",
                          "a.toml:5: [limits] way = \"left\": allowed is \"up\", \"down\"",
                          "a.toml:4: [limits] room = 1023: allowed is \"1K\" to \"64K\", as much as there is"));
  EXPECT_EQ(limits.inner.room, 4096U);
}

TEST_F(OptionTest, AReloadRefusesWhatItCannotChange) {
  const Limits running;
  Limits wanted;
  wanted.strict = true;
  EXPECT_EQ(option::fixed("[limits]", settings(), running, wanted), "");
  wanted.batch = 3;
  wanted.way = Way::down;
  EXPECT_EQ(option::fixed("[limits]", settings(), running, wanted),
            "[limits] batch cannot change while the gateway runs: restart it\n"
            "[limits] way cannot change while the gateway runs: restart it");
}

TEST_F(OptionTest, PeopleAreShownValuesBoundsUnitAndDefault) {
  const OptionSection all = option::section("[limits]", settings(), "Bounds.");
  EXPECT_EQ(all.title, "[limits]");
  std::vector<std::string> rows;
  for (const OptionFacts& option : all.options) {
    rows.push_back(option.key + ": " + option.values + "; " + option.usual + (option.reloads ? "; reloads" : ""));
  }
  EXPECT_THAT(rows,
              ElementsAre("batch: 2 to 128 frames; `64`", "below: `\"auto\"`, or 0 to 9; `\"auto\"`",
                          "strict: `true`, `false`; `false`; reloads", "file: path; none", "names: list of texts; `[]`",
                          "time: `\"auto\"`, or a time above 0; `\"auto\"`", "pause: 0 to 90 s; `60`",
                          "way: `\"up\"`, `\"down\"`; `\"up\"`", "room: `\"1K\"` to `\"64K\"`; `\"4K\"`"));
}

TEST_F(OptionTest, ASectionKeepsWhatIsInForceUnlessItHidesValues) {
  Limits limits;
  Settings from = section("room = 1025\nfile = \"q\"\n[limits.more]\nbatch = 5\n[[limits.of]]\nbatch = 6\n");
  option::read(settings(), from, limits);
  Settings more = from.section("more");
  const std::vector<Option<Limits>> batch = {settings().front()};
  option::read(batch, more, limits);
  for (Settings& one : from.sections("of")) option::read(batch, one, limits);
  EXPECT_EQ(from.in_force(),
            R"({"batch": 64, "below": "auto", "strict": false, "file": "q", "names": [], "time": "auto", "pause": 60, )"
            R"("way": "up", "room": 1025, "more": {"batch": 5}, "of": [{"batch": 6}]})");
  Settings hidden = section("room = 1025\n");
  hidden.hide_values();
  option::read(settings(), hidden, limits);
  EXPECT_EQ(hidden.in_force(), "");
}

}  // namespace
}  // namespace sluice
