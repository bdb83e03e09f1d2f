#include "match/rules/rule_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice::match {
namespace {

using testing::ElementsAre;

class RuleFilePatterns : public testing::Test {
 protected:
  RuleFilePatterns() {
    std::filesystem::create_directories(folder_ + "/more");
    for (const char* const name : {"b.rules", "a.rules", "Z.rules", ".hidden.rules", "other.txt", "odd[1].rules"}) {
      std::ofstream(folder_ + "/" + name);
    }
    std::ofstream(folder_ + "/more/c.rules");
  }
  ~RuleFilePatterns() override { std::filesystem::remove_all(folder_); }

  // Without the folder; of an error its message.
  std::vector<std::string> files(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(folder_ + "/" + name);
    auto files = rule_files(paths);
    if (!files) return {files.error().message.substr(folder_.size() + 1)};
    for (std::string& file : *files) file = file.substr(folder_.size() + 1);
    return *files;
  }
  const std::string folder_ = testing::TempDir() + "sluice_rule_files_" + std::to_string(getpid());
};

TEST_F(RuleFilePatterns, APatternIsItsFilesSorted) {
  EXPECT_THAT(files({"[a-z].rules"}), ElementsAre("a.rules", "b.rules"));
  EXPECT_THAT(files({"*.rules"}), ElementsAre("Z.rules", "a.rules", "b.rules", "odd[1].rules"));
  EXPECT_THAT(files({"*/?.rules"}), ElementsAre("more/c.rules"));
}

TEST_F(RuleFilePatterns, NamesStayInTheirOrderAndAPatternAddsWhatIsNotThereYet) {
  EXPECT_THAT(files({"b.rules", "?.rules", "more/*"}), ElementsAre("b.rules", "Z.rules", "a.rules", "more/c.rules"));
}

TEST_F(RuleFilePatterns, ANameWithoutAPatternAndOneThatIsThereAreThemselves) {
  EXPECT_THAT(files({"missing.rules", "odd[1].rules"}), ElementsAre("missing.rules", "odd[1].rules"));
  EXPECT_THAT(files({"a.rules", "a.rules"}), ElementsAre("a.rules", "a.rules"))
      << "named twice by hand: the reader says";
}

TEST_F(RuleFilePatterns, APatternThatNothingMatchesIsAnError) {
  EXPECT_THAT(files({"a.rules", "*.conf"}), ElementsAre("*.conf: no file matches"));
  EXPECT_THAT(files({"missing/*.rules"}), ElementsAre("missing/*.rules: No such file or directory"));
}

}  // namespace
}  // namespace sluice::match
