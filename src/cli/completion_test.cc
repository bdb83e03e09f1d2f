// What the shell is given. That every command and option is offered, commands_test.cc looks up.
#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands.h"

namespace sluice::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

class CompletionTest : public testing::Test {
 protected:
  CompletionTest() {
    for (const auto add :
         {add_run, add_check, add_functions, add_rules, add_bench, add_calibrate, add_top, add_ctl, add_capture}) {
      add(app_, status_);
    }
  }
  Completion at(const std::vector<std::string>& words) { return complete(app_, words); }

  CLI::App app_{"", "sluice"};
  int status_ = 0;
};

TEST_F(CompletionTest, SaysWhatBeginsAsTheWord) {
  EXPECT_THAT(at({"r"}).words, ElementsAre("run", "rules"));
  EXPECT_THAT(at({"ctl", "re"}).words, ElementsAre("reload", "reopen"));
  EXPECT_THAT(at({"capture", "--dir"}).words, ElementsAre("--direction"));
  EXPECT_THAT(at({"nothing", ""}).words, Not(Contains("run")));
  EXPECT_THAT(at({}).words, IsEmpty());
}

TEST_F(CompletionTest, OptionsOfACommandAboveHoldBelow) {
  EXPECT_THAT(at({"ctl", "srtp", "list", "--"}).words, IsSupersetOf({"--api", "--socket", "--json", "--limit"}));
  EXPECT_THAT(at({"ctl", "--socket", "x", "sr"}).words, ElementsAre("srtp"));
  EXPECT_THAT(at({"ctl", "--json", "stats", "--"}).words, Not(Contains("--json")));
}

TEST_F(CompletionTest, ValuesAreTheOptions) {
  EXPECT_THAT(at({"capture", "--direction", ""}).words, ElementsAre("in", "out"));
  EXPECT_THAT(at({"capture", "--direction", "in", ""}).words, ElementsAre("any", "drops", "lane:0"));
  EXPECT_THAT(at({"calibrate", "--device", "c"}).words, ElementsAre("cpu", "cuda:0"));
  EXPECT_THAT(at({"capture", "--count", ""}).words, IsEmpty());
}

// Another option may have its address then.
TEST(CompletionOfAnOption, ValuesEndWithIt) {
  const std::vector<std::string> words = {"--one", ""};
  for (int round = 0; round < 100; ++round) {
    {
      CLI::App app;
      complete_with(complete_with_files(app.add_option("--one"), "toml"), {"first", "second"});
      EXPECT_THAT(complete(app, words).words, ElementsAre("first", "second"));
      EXPECT_EQ(complete(app, words).ending, "toml");
    }
    CLI::App app;
    app.add_option("--one")->check(CLI::IsMember({"in", "out"}));
    ASSERT_THAT(complete(app, words).words, ElementsAre("in", "out")) << round;
    ASSERT_FALSE(complete(app, words).files) << round;
  }
}

TEST_F(CompletionTest, FilesAreAskedForWhereOneIsWanted) {
  EXPECT_TRUE(at({"run", ""}).files);
  EXPECT_EQ(at({"run", ""}).ending, "toml");
  EXPECT_EQ(at({"functions", "--load", ""}).ending, "so");
  EXPECT_TRUE(at({"rules", "one.rules", "--all", ""}).files);
  EXPECT_TRUE(at({"ctl", "acl", "set", "add", "bad", "-f", ""}).files);
  EXPECT_FALSE(at({"run", "one.toml", ""}).files);
  EXPECT_FALSE(at({"top", ""}).files);
}

}  // namespace
}  // namespace sluice::cli
