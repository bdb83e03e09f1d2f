#include "base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SettingsTest : public testing::Test {
 protected:
  Settings parse(std::string_view text) {
    auto settings = Settings::from_text(text, "router.toml", diagnostics_);
    EXPECT_TRUE(settings) << (settings ? "" : settings.error().message);
    return settings.value_or(Settings::empty("router.toml", diagnostics_));
  }
  Diagnostics diagnostics_;
};

TEST_F(SettingsTest, ReadsEveryType) {
  Settings root = parse(R"(
[engine]
batch = 4096
fast = true
device = "cuda:0"
mode = "full"
deadline = "1.5ms"
size = "512M"
plain = 4096
chain = ["route", "acl"]
cores = [1, 2]
)");
  Settings s = root.section("engine");
  EXPECT_TRUE(s.has("batch"));
  EXPECT_FALSE(s.has("nothing"));
  EXPECT_EQ(s.integer("batch", 1, 64, 65536), 4096);
  EXPECT_TRUE(s.boolean("fast", false));
  EXPECT_EQ(s.text("device", "auto"), "cuda:0");
  EXPECT_EQ(s.required_text("device"), "cuda:0");
  EXPECT_EQ(s.choice("mode", "x", {"full", "half"}), "full");
  EXPECT_EQ(s.duration("deadline", 1s), 1500us);
  EXPECT_EQ(s.bytes("size", 0), 512ULL << 20);
  EXPECT_EQ(s.bytes("plain", 0), 4096U);
  EXPECT_THAT(s.texts("chain"), ElementsAre("route", "acl"));
  EXPECT_THAT(s.integers("cores"), ElementsAre(1, 2));
  s.finish();
  root.finish();
  EXPECT_THAT(diagnostics_.lines, IsEmpty());
}

TEST_F(SettingsTest, HiddenValuesAreInNoMessage) {
  const std::string name(33, 'k');
  Settings s = parse("[a]\nx = \"secret\"\n[[a.b]]\ny = \"secret\"\nz = \"secret\"\n" + name + " = 1\n").section("a");
  s.hide_values();
  s.integer("x", 1, 0, 9);
  for (Settings& b : s.sections("b")) {
    b.text("y", "");
    b.error("y", "is wrong");
    b.finish();
  }
  EXPECT_THAT(diagnostics_.lines, ElementsAre("router.toml:2: [a] x: allowed is a whole number from 0 to 9",
                                              "router.toml:4: [[a.b]] y: is wrong",
                                              "router.toml:3: [[a.b]]: unknown key in line 6, too long to be shown",
                                              "router.toml:5: [[a.b]] z: unknown key; did you mean \"y\"?"));
}

TEST_F(SettingsTest, AbsentKeysGiveTheDefault) {
  Settings s = parse("").section("engine");
  EXPECT_EQ(s.integer("a", 7, 0, 1), 7);
  EXPECT_TRUE(s.boolean("b", true));
  EXPECT_EQ(s.text("c", "t"), "t");
  EXPECT_EQ(s.choice("d", "none", {"x"}), "none");
  EXPECT_EQ(s.duration("e", 3us), 3us);
  EXPECT_EQ(s.bytes("f", 9), 9U);
  EXPECT_THAT(s.texts("g", {"p"}), ElementsAre("p"));
  EXPECT_THAT(s.integers("h", {4}), ElementsAre(4));
  EXPECT_FALSE(s.is("i", "auto"));
  EXPECT_THAT(s.sections("j"), IsEmpty());
  s.finish();
  EXPECT_THAT(diagnostics_.lines, IsEmpty());
}

void read_integer(Settings& s) {
  EXPECT_EQ(s.integer("k", 5, 1, 8), 5);
}
void read_boolean(Settings& s) {
  EXPECT_TRUE(s.boolean("k", true));
}
void read_text(Settings& s) {
  EXPECT_EQ(s.text("k", "d"), "d");
}
void read_choice(Settings& s) {
  EXPECT_EQ(s.choice("k", "d", {"full", "half"}), "d");
}
void read_duration(Settings& s) {
  EXPECT_EQ(s.duration("k", 1ms), 1ms);
}
void read_bytes(Settings& s) {
  EXPECT_EQ(s.bytes("k", 3), 3U);
}
void read_texts(Settings& s) {
  EXPECT_THAT(s.texts("k", {"d"}), ElementsAre("d"));
}
void read_integers(Settings& s) {
  EXPECT_THAT(s.integers("k", {1}), ElementsAre(1));
}
void read_section(Settings& s) {
  EXPECT_FALSE(s.section("k").has("x"));
}
void read_sections(Settings& s) {
  EXPECT_THAT(s.sections("k"), IsEmpty());
}
void read_auto_or_integer(Settings& s) {
  if (!s.is("k", "auto")) read_integer(s);
}

// What a getter answers to a value of the wrong kind, as the one line that the user sees.
TEST(SettingsRefusal, NamesPlaceKeyValueAndWhatIsAllowed) {
  const std::string integer = "a whole number from 1 to 8";
  const std::string duration = "a duration above 0 with its unit, such as \"250us\", \"1ms\" or \"2s\"";
  const std::string bytes = "a size such as \"512M\", \"4K\" or \"2G\", or a number of bytes";
  const std::string texts = "a list of texts, such as [\"a\", \"b\"]";
  const std::string integers = "a list of whole numbers, such as [1, 2]";
  struct Case {
    std::string value;
    void (*read)(Settings&);
    std::string allowed;
  };
  const std::vector<Case> cases = {
      {"0", read_integer, integer},
      {"9", read_integer, integer},
      {"\"5\"", read_integer, integer},
      {"5.0", read_integer, integer},
      {"true", read_integer, integer},
      {"\"aut\"", read_auto_or_integer, "\"auto\" or " + integer},
      {"1", read_boolean, "true or false"},
      {"\"true\"", read_boolean, "true or false"},
      {"5", read_text, "a text in quotes"},
      {"[ \"a\" ]", read_text, "a text in quotes"},
      {"\"ful\"", read_choice, "\"full\", \"half\""},
      {"1", read_choice, "\"full\", \"half\""},
      {"5", read_duration, duration},
      {"\"5\"", read_duration, duration},
      {"\"0ms\"", read_duration, duration},
      {"\"-1ms\"", read_duration, duration},
      {"\"1 ms\"", read_duration, duration},
      {"\"1h\"", read_duration, duration},
      {"\"\"", read_duration, duration},
      {"\"9999999999s\"", read_duration, duration},
      {"-1", read_bytes, bytes},
      {"\"512MB\"", read_bytes, bytes},
      {"\"M\"", read_bytes, bytes},
      {"\"99999999999T\"", read_bytes, bytes},
      {"1.5", read_bytes, bytes},
      {"\"route\"", read_texts, texts},
      {"[ \"route\", 1 ]", read_texts, texts},
      {"1", read_integers, integers},
      {"[ 1, \"2\" ]", read_integers, integers},
      {"1", read_section, "a section, written as [engine.k]"},
      {"1", read_sections, "a list of sections, each written as [[engine.k]]"},
  };
  for (const Case& c : cases) {
    Diagnostics diagnostics;
    auto root = Settings::from_text("\n[engine]\nother = 1\nk = " + c.value + "\n", "router.toml", diagnostics);
    ASSERT_TRUE(root) << c.value;
    Settings engine = root->section("engine");
    c.read(engine);
    EXPECT_THAT(diagnostics.lines, ElementsAre("router.toml:4: [engine] k = " + c.value + ": allowed is " + c.allowed));
  }
}

TEST_F(SettingsTest, TextWithANulByteIsRefused) {
  Settings s = parse("iface = \"a\\u0000b\"");
  EXPECT_EQ(s.text("iface", "d"), "d");
  EXPECT_EQ(diagnostics_.lines.size(), 1U);
}

TEST_F(SettingsTest, MissingKeyIsReportedAtItsSection) {
  Settings root = parse("\n[[port]]\nqueues = 1\n\n[[port]]\nname = \"b\"\n");
  auto ports = root.sections("port");
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0].required_text("name"), "");
  EXPECT_EQ(ports[1].required_text("name"), "b");
  EXPECT_THAT(diagnostics_.lines, ElementsAre("router.toml:2: [[port]] name: is missing: give a text in quotes"));
}

TEST_F(SettingsTest, UnknownKeysNameTheClosestKnownOne) {
  Settings root = parse("[engine]\ncycel = 1\nzzz = 2\ncycle = 3\n[engin]\n[[prot]]\na = 1\n");
  Settings engine = root.section("engine");
  root.sections("port");
  engine.integer("cycle", 1, 1, 9);
  engine.integer("batch", 1, 1, 9);
  engine.finish();
  root.finish();
  root.finish();
  EXPECT_THAT(diagnostics_.lines, ElementsAre("router.toml:2: [engine] cycel = 1: unknown key; did you mean \"cycle\"?",
                                              "router.toml:3: [engine] zzz = 2: unknown key; known are cycle, batch",
                                              "router.toml:5: [engin]: unknown section; did you mean \"engine\"?",
                                              "router.toml:6: [[prot]]: unknown section; did you mean \"port\"?"));
}

TEST_F(SettingsTest, ASectionReadTwiceIsOneSection) {
  Settings root = parse("[route]\na = 1\nb = 2\n");
  root.section("route").integer("a", 0, 0, 9);
  root.section("route").integer("b", 0, 0, 9);
  root.section("route").finish();
  EXPECT_THAT(diagnostics_.lines, IsEmpty());
}

TEST_F(SettingsTest, NestedSectionsAreNamedByTheirPath) {
  Settings root = parse("[route]\na = 1\n[[route.connected]]\nport = 3\n[route.more]\nb = 2\n");
  Settings route = root.section("route");
  EXPECT_EQ(route.integer("a", 0, 0, 1), 1);
  for (Settings& connected : route.sections("connected")) connected.text("port", "");
  Settings more = route.section("more");
  more.finish();
  EXPECT_EQ(more.name(), "route.more");
  route.finish();
  EXPECT_THAT(diagnostics_.lines,
              ElementsAre("router.toml:4: [[route.connected]] port = 3: allowed is a text in quotes",
                          "router.toml:6: [route.more] b = 2: unknown key"));
}

TEST_F(SettingsTest, OwnErrorsCarryTheirPlace) {
  Settings root = parse("\n[engine]\ncycle = \"2ms\"\n");
  Settings engine = root.section("engine");
  engine.error("cycle", "is longer than the deadline");
  engine.error("deadline", "is needed");
  engine.error("", "is not complete");
  root.error("", "has no port");
  EXPECT_THAT(diagnostics_.lines, ElementsAre("router.toml:3: [engine] cycle = \"2ms\": is longer than the deadline",
                                              "router.toml:2: [engine] deadline: is needed",
                                              "router.toml:2: [engine]: is not complete", "router.toml: has no port"));
  EXPECT_EQ(engine.line("cycle"), 3U);
  EXPECT_EQ(engine.line(""), 2U);
  EXPECT_EQ(engine.name(), "engine");
  EXPECT_EQ(root.name(), "router.toml");
}

// What a getter gives in its place is none of the user's, and who judges it need not know.
TEST_F(SettingsTest, AValueHasOneMessage) {
  Settings root = parse("[engine]\ncycle = 5\nname = 7\nother = 1\nmore = 2\n");
  Settings engine = root.section("engine");
  for (int reader = 0; reader < 2; ++reader) engine.duration("cycle", {});
  EXPECT_EQ(engine.text("name", ""), "");
  engine.error("name", "is empty");
  engine.error("other", "does not go with it");
  engine.error("missing", "is needed");
  engine.finish();
  EXPECT_THAT(diagnostics_.lines, ElementsAre(testing::StartsWith("router.toml:2: [engine] cycle = 5: allowed is"),
                                              "router.toml:3: [engine] name = 7: allowed is a text in quotes",
                                              "router.toml:4: [engine] other = 1: does not go with it",
                                              "router.toml:1: [engine] missing: is needed",
                                              testing::StartsWith("router.toml:5: [engine] more = 2: unknown key")));
}

TEST_F(SettingsTest, ALongValueIsCutAndStaysOnOneLine) {
  Settings s = parse("k = \"\"\"" + std::string(30, 'a') + "\n" + std::string(300, 'b') + "\"\"\"");
  s.integer("k", 0, 0, 1);
  ASSERT_EQ(diagnostics_.lines.size(), 1U);
  EXPECT_LT(diagnostics_.lines[0].size(), 160U);
  EXPECT_EQ(diagnostics_.lines[0].find('\n'), std::string::npos);
}

TEST(SettingsSyntax, IsAnErrorWithLineAndColumn) {
  struct Case {
    const char* text;
    const char* begins;
  };
  for (const Case& c : {Case{"[engine]\nbatch = \n", "x.toml:2:9: "}, Case{"a = 1\na = 2\n", "x.toml:2:"},
                        Case{"[engine\n", "x.toml:1:8: "}, Case{"a = \"\xff\"", "x.toml:1:"},
                        Case{"[)[port]]\n", "x.toml:1:"}, Case{"[ \"a\", b\n", "x.toml:1:"}}) {
    Diagnostics diagnostics;
    const auto result = Settings::from_text(c.text, "x.toml", diagnostics);
    ASSERT_FALSE(result) << c.text;
    EXPECT_EQ(result.error().message.rfind(c.begins, 0), 0U) << result.error().message;
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
    EXPECT_THAT(result.error().message, HasSubstr("; write KEY = VALUE with a text or duration in quotes ("));
  }
}

TEST(SettingsFile, IsReadOrRefusedWithTheReason) {
  Diagnostics diagnostics;
  const std::string path = testing::TempDir() + "sluice_settings_" + std::to_string(getpid()) + ".toml";
  std::ofstream(path) << "a = 3\n";
  auto good = Settings::from_file(path, diagnostics);
  ASSERT_TRUE(good);
  EXPECT_EQ(good->integer("a", 0, 0, 9), 3);
  std::ofstream(path) << "";
  EXPECT_TRUE(Settings::from_file(path, diagnostics)) << "an empty file is a configuration with every default";
  std::ofstream(path) << "a = 4\n" << std::string(40 << 20, '#');
  EXPECT_TRUE(Settings::from_file(path, diagnostics)) << "100,000 streams take half of it";
  std::ofstream(path) << std::string((64 << 20) + 1, '#');
  EXPECT_EQ(Settings::from_file(path, diagnostics).error().message,
            path + ": is larger than 64M, the most that is read");
  unlink(path.c_str());
  EXPECT_EQ(Settings::from_file(path, diagnostics).error().message, path + ": No such file or directory");
  EXPECT_EQ(Settings::from_file("/tmp", diagnostics).error().message, "/tmp: is a folder: name a regular file");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(Settings::from_file(path, diagnostics).error().message, path + ": is a pipe: name a regular file")
      << "and nobody waits for a writer";
  unlink(path.c_str());
}

TEST(SettingsEmpty, GivesDefaultsAndNamesItself) {
  Diagnostics diagnostics;
  Settings s = Settings::empty("route", diagnostics);
  EXPECT_EQ(s.integer("n", 2, 0, 9), 2);
  EXPECT_EQ(s.name(), "route");
  s.finish();
  EXPECT_TRUE(diagnostics.ok());
  s.error("file", "is needed");
  EXPECT_THAT(diagnostics.lines, ElementsAre("[route] file: is needed"));
}

}  // namespace
}  // namespace sluice
