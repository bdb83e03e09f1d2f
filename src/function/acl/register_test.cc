// What [acl] may say, and where a mistake is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/settings.h"
#include "engine/element.h"
#include "engine/port_table.h"
#include "engine/tables.h"

namespace sluice::function {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// `notes`, if given, gets what is said though it is no mistake.
std::vector<std::string> mistakes(const std::string& text, std::vector<std::string>* notes = nullptr) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "a.toml", diagnostics);
  EXPECT_TRUE(file) << text;
  const engine::PortTable ports({{.name = "lan", .mac = {}}, {.name = "wan", .mac = {}, .mtu = 9000}});
  Settings section = file->section("acl");
  const auto acl = engine::find_element("acl")->make(section, ports);
  EXPECT_TRUE(acl) << text;
  if (acl && notes != nullptr) *notes = (*acl)->trait<engine::Tables>()->notes();
  section.finish();
  return diagnostics.lines;
}

class AclSettings : public testing::Test {
 protected:
  AclSettings() { std::filesystem::create_directories(folder_); }
  ~AclSettings() override { std::filesystem::remove_all(folder_); }
  std::string written(const char* name, const char* text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  static std::string naming(const std::string& path) { return "[acl]\nrules = \"" + path + "\"\n"; }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("sluice-acl-settings-" + std::to_string(getpid()));
};

TEST_F(AclSettings, NothingIsEnough) {
  EXPECT_THAT(mistakes(""), IsEmpty());
  EXPECT_THAT(mistakes("[acl]\ndefault = \"permit\"\n"), IsEmpty());
}

// One that is cut off, or not yet written: with `default = "permit"` it would let everything by.
TEST_F(AclSettings, AFileWithoutARuleIsAMistake) {
  for (const std::string& path : {written("none", ""), written("blank", "\n\n"), written("none.toml", ""),
                                  written("comment.toml", "# of the night\n")}) {
    EXPECT_THAT(mistakes(naming(path)),
                ElementsAre(HasSubstr("a.toml:2: [acl] rules = \"" + path + "\": there is no rule in " + path)))
        << path;
  }
}

TEST_F(AclSettings, MistakesOfTheConfiguration) {
  EXPECT_THAT(mistakes("[acl]\ndefault = \"drop\"\n"), ElementsAre(HasSubstr("a.toml:2: [acl] default = \"drop\"")));
  EXPECT_THAT(mistakes("[acl]\nrule_file = \"x\"\n"), ElementsAre(HasSubstr("a.toml:2: [acl] rule_file")));
  EXPECT_THAT(mistakes("[[acl.rule]]\naction = \"mark\"\nmark = 64\n"),
              ElementsAre(HasSubstr("a.toml:3: [[acl.rule]] mark = 64: allowed is a whole number from 0 to 63")));
  EXPECT_THAT(mistakes("[[acl.rule]]\naction = \"police\"\nrate = 1000\nburst = 9013\n"),
              ElementsAre("a.toml:4: [[acl.rule]] burst = 9013: a frame that is longer never passes: 9014 bytes, one "
                          "of the largest, at least"));
  EXPECT_THAT(mistakes("[[acl.rule]]\naction = \"police\"\nrate = 1000\nburst = 9014\n"), IsEmpty());
}

TEST_F(AclSettings, MistakesOfAFileNameItAndItsLine) {
  const std::string toml = written("rules.toml",
                                   "[[acl.rule]]\naction = \"deny\"\nsource = \"10.0.0.1/8\"\n\n"
                                   "[[acl.rule]]\naction = \"mark\"\nmark = 64\n");
  EXPECT_THAT(mistakes(naming(toml)),
              ElementsAre(testing::AllOf(HasSubstr("a.toml:2: [acl] rules = "), HasSubstr(toml + ":3: ")),
                          testing::AllOf(HasSubstr("a.toml:2: [acl] rules = "), HasSubstr(toml + ":7: "))));
  const std::string filters = written("filters", "@1.2.3.4/32\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x06/0xFF\nnonsense\n");
  EXPECT_THAT(mistakes(naming(filters)), ElementsAre(HasSubstr(filters + ":2: ")));
  EXPECT_THAT(mistakes(naming("/nowhere/at/all")),
              ElementsAre(HasSubstr("a.toml:2: [acl] rules = \"/nowhere/at/all\"")));
  EXPECT_THAT(mistakes(naming(written("good.toml", "[[acl.rule]]\naction = \"deny\"\n"))), IsEmpty());
}

TEST_F(AclSettings, ASetWhoseFileHasNoEntriesIsReported) {
  const auto with_file = [&](const char* name, const char* text) {
    return "[[acl.set]]\nname = \"blocked\"\nfile = \"" + written(name, text) + "\"\n";
  };
  std::vector<std::string> notes;
  EXPECT_THAT(mistakes(with_file("cut", ""), &notes), IsEmpty());
  EXPECT_THAT(notes, ElementsAre(testing::AllOf(testing::StartsWith("acl: the set 'blocked' is empty, for "),
                                                HasSubstr("/cut has no entries"))));
  EXPECT_THAT(mistakes(with_file("some", "192.0.2.1\n"), &notes), IsEmpty());
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_THAT(mistakes("[[acl.set]]\nname = \"blocked\"\n", &notes), IsEmpty());
  EXPECT_THAT(notes, IsEmpty()) << "without a file it is to be filled";
}

// A generator makes them, and a trace counts them.
TEST_F(AclSettings, FiltersThatNamePortsOfAProtocolWithoutAreReported) {
  const std::string any = "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x01/0xff\n";
  const std::string one = "@0.0.0.0/0 0.0.0.0/0 0 : 65535 8 : 8 0x01/0xff\n";
  std::vector<std::string> notes;
  EXPECT_THAT(mistakes(naming(written("any", any.c_str())), &notes), IsEmpty());
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_THAT(mistakes(naming(written("one", (any + one).c_str())), &notes), IsEmpty());
  EXPECT_THAT(notes, ElementsAre(testing::AllOf(testing::StartsWith("acl: 1 filter names ports"),
                                                HasSubstr("/one:2: they match"))));
  EXPECT_THAT(mistakes(naming(written("two", (one + any + one).c_str())), &notes), IsEmpty());
  EXPECT_THAT(notes, ElementsAre(testing::AllOf(testing::StartsWith("acl: 2 filters name ports"),
                                                HasSubstr("/two:1: they match"))));
}

}  // namespace
}  // namespace sluice::function
