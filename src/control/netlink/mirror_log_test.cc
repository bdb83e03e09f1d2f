#include "control/netlink/mirror_log.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

namespace sluice::control {
namespace {

using namespace std::chrono_literals;

class MirrorLogTest : public testing::Test {
 protected:
  void SetUp() override {
    auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out_));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(logger);
  }
  void TearDown() override { spdlog::set_default_logger(before_); }
  // What was logged since the last call.
  std::string logged() {
    const std::string text = out_.str();
    out_.str("");
    return text;
  }

  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream out_;
  MirrorLog log_{10s};
  MirrorLog::Clock::time_point start_{1h};
  MirrorStats stats_;
};

TEST_F(MirrorLogTest, IsSilentWhenNothingIsWrong) {
  stats_.routes = stats_.messages = stats_.probes = stats_.resyncs = 1000;
  log_.look(stats_, start_);
  EXPECT_EQ(logged(), "");
}

TEST_F(MirrorLogTest, ARefusalIsToldWithItsReasonAndNoneIsForgotten) {
  stats_.refusals = 1;
  stats_.last_refusal = "the table is full; raise [route] max_ipv4";
  log_.look(stats_, start_);
  EXPECT_EQ(
      logged(),
      "warning kernel: 1 changes of routes and neighbours refused; the last one: the table is full; raise [route] "
      "max_ipv4\n");
  stats_.refusals = 50;
  stats_.last_refusal = "another reason";
  log_.look(stats_, start_ + 1s);
  log_.look(stats_, start_ + 9s);
  EXPECT_EQ(logged(), "");
  // Told although nothing has happened since.
  log_.look(stats_, start_ + 10s);
  EXPECT_EQ(logged(), "warning kernel: 49 changes of routes and neighbours refused; the last one: another reason\n");
  log_.look(stats_, start_ + 30s);
  EXPECT_EQ(logged(), "");
}

TEST_F(MirrorLogTest, EveryKindHasALineOfItsOwn) {
  stats_.overruns = 2;
  stats_.malformed = 3;
  stats_.unsent = 4;
  stats_.shortened = 5;
  log_.look(stats_, start_);
  EXPECT_EQ(logged(),
            "warning kernel: notifications were lost 2 times; the tables are compared anew\n"
            "warning kernel: 3 messages passed over that are not as rtnetlink(7) says\n"
            "warning kernel: 4 probes and requests not taken, for want of memory; they are sent again\n"
            "warning kernel: 5 sets of next hops have more than the 64 that a route can have; the first 64 are used\n");
  log_.look(stats_, start_ + 20s);
  EXPECT_EQ(logged(), "");
}

}  // namespace
}  // namespace sluice::control
