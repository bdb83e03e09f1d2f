#include "control/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <vector>

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
