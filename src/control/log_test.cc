#include "control/log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <vector>

#include "base/appended_file.h"

namespace sluice::control {
namespace {

class LogTest : public testing::Test {
 protected:
  void SetUp() override { unlink(path_.c_str()); }
  void TearDown() override {
    spdlog::set_default_logger(before_);
    unlink(path_.c_str());
  }
  std::vector<std::string> lines() const {
    std::ifstream in(path_);
    std::vector<std::string> result;
    for (std::string line; std::getline(in, line);) result.push_back(line);
    return result;
  }
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::string path_ = testing::TempDir() + "sluice_log_" + std::to_string(getpid());
};

TEST_F(LogTest, TextHasTimeLevelAndMessage) {
  ASSERT_TRUE(set_up_log({"info", path_, "text"}));
  spdlog::info("port {} is up", "left");
  spdlog::debug("not this");
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_TRUE(
      std::regex_match(lines()[0], std::regex(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} info  port left is up)")))
      << lines()[0];
}

TEST_F(LogTest, JsonLinesAreValidWhateverTheMessageHolds) {
  ASSERT_TRUE(set_up_log({"debug", path_, "json"}));
  const std::string message = "a \"quote\", a \\, a \n break, a \xff byte";
  spdlog::debug("{}", message);
  spdlog::error("second");
  ASSERT_EQ(lines().size(), 2U);
  const auto first = nlohmann::json::parse(lines()[0]);
  EXPECT_EQ(first["level"], "debug");
  EXPECT_EQ(first["message"], "a \"quote\", a \\, a \n break, a \xEF\xBF\xBD byte");
  EXPECT_TRUE(
      std::regex_match(first["time"].get<std::string>(), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)")));
  EXPECT_EQ(nlohmann::json::parse(lines()[1])["level"], "error");
}

TEST_F(LogTest, AFileIsContinued) {
  ASSERT_TRUE(set_up_log({"info", path_, "text"}));
  spdlog::info("one");
  ASSERT_TRUE(set_up_log({"info", path_, "text"}));
  spdlog::info("two");
  EXPECT_EQ(lines().size(), 2U);
}

TEST_F(LogTest, OffIsSilent) {
  ASSERT_TRUE(set_up_log({"off", path_, "text"}));
  spdlog::critical("not this");
  EXPECT_TRUE(lines().empty());
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsAnError) {
  const auto result = set_up_log({"info", "/proc/nowhere/log", "text"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message.rfind("[log] file = \"/proc/nowhere/log\": ", 0), 0U) << result.error().message;
  EXPECT_EQ(spdlog::default_logger(), before_);
}

TEST_F(LogTest, ARenamedFileIsBegunAnewWhenItIsSaid) {
  ASSERT_TRUE(set_up_log({"info", path_, "text"}));
  const std::string old = path_ + ".1";
  ASSERT_EQ(rename(path_.c_str(), old.c_str()), 0);
  spdlog::info("one");
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
  AppendedFile::reopen_all();
  spdlog::info("two");
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_TRUE(lines()[0].ends_with("two"));
  unlink(old.c_str());
}

TEST_F(LogTest, ADeletedFileIsMadeAgain) {
  ASSERT_TRUE(set_up_log({"info", path_, "text"}));
  unlink(path_.c_str());
  spdlog::info("one");
  EXPECT_EQ(lines().size(), 1U);
}

TEST_F(LogTest, AFileThatCannotBeBegunAnewGoesOn) {
  const std::string folder = path_ + ".folder";
  const std::string file = folder + "/log";
  mkdir(folder.c_str(), 0755);
  ASSERT_TRUE(set_up_log({"info", file, "text"}));
  ASSERT_EQ(rename(folder.c_str(), path_.c_str()), 0);
  AppendedFile::reopen_all();
  spdlog::info("one");
  EXPECT_EQ(AppendedFile::troubles(),
            std::vector<std::string>{file + " cannot be opened anew: No such file or directory"});
  const std::string moved = path_ + "/log";
  std::ifstream in(moved);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  ASSERT_EQ(rename(path_.c_str(), folder.c_str()), 0);
  EXPECT_TRUE(AppendedFile::troubles().empty()) << "it is tried again";
  spdlog::set_default_logger(before_);
  unlink(file.c_str());
  rmdir(folder.c_str());
}

TEST_F(LogTest, AFullDiskIsKnownAndItsLostLinesAreReported) {
  ASSERT_EQ(symlink("/dev/full", path_.c_str()), 0);
  ASSERT_TRUE(set_up_log({"info", path_, "text"}));
  EXPECT_TRUE(AppendedFile::troubles().empty());
  spdlog::info("one");
  spdlog::info("two");
  EXPECT_EQ(AppendedFile::troubles(), std::vector<std::string>{path_ + " cannot be written: No space left on device"});
  unlink(path_.c_str());
  AppendedFile::reopen_all();
  EXPECT_TRUE(AppendedFile::troubles().empty());
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_TRUE(lines()[0].ends_with("log: 2 lines before this one could not be written")) << lines()[0];
  spdlog::info("three");
  EXPECT_EQ(lines().size(), 2U);
}

TEST(LogLimiter, LetsOneThroughPerIntervalAndCountsTheRest) {
  LogLimiter limiter(std::chrono::seconds(10));
  const LogLimiter::Clock::time_point start{std::chrono::hours(1)};
  EXPECT_EQ(limiter.admit(start), 0U);
  EXPECT_FALSE(limiter.admit(start));
  EXPECT_FALSE(limiter.admit(start + std::chrono::milliseconds(9999)));
  EXPECT_EQ(limiter.admit(start + std::chrono::seconds(10)), 2U);
  EXPECT_FALSE(limiter.admit(start + std::chrono::seconds(19)));
  EXPECT_EQ(limiter.admit(start + std::chrono::seconds(30)), 1U);
}

}  // namespace
}  // namespace sluice::control
