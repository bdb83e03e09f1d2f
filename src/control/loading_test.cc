#include "control/loading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

namespace sluice::control {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class LoadingTest : public testing::Test {
 protected:
  void SetUp() override {
    auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_));
    logger->set_pattern("%v");
    spdlog::set_default_logger(std::move(logger));
  }
  void TearDown() override { spdlog::set_default_logger(before_); }

  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream log_;
  const Loading::Clock::time_point start_ = Loading::Clock::now();
};

TEST_F(LoadingTest, LogsALineASecondAfterTheFirst) {
  Loading loading(false);
  for (int ms = 0; ms <= 3500; ms += 10) {
    EXPECT_TRUE(loading.step("routes", static_cast<std::size_t>(ms), 10'000, start_ + ms * 1ms));
  }
  EXPECT_EQ(log_.str(), "routes: 10% (1000 of 10000)\nroutes: 20% (2000 of 10000)\nroutes: 30% (3000 of 10000)\n");
}

TEST_F(LoadingTest, WhatIsQuickSaysNothing) {
  Loading loading(false);
  loading.step("routes", 1, 10, start_);
  loading.step("routes", 10, 10, start_ + 900ms);
  loading.done();
  loading.step("routes", 1, 10, start_ + 5s);  // another one, which begins anew
  EXPECT_EQ(log_.str(), "");
}

TEST_F(LoadingTest, DrawsOneLineOnATerminalAndClearsIt) {
  testing::internal::CaptureStderr();
  Loading loading(true);
  for (const auto at : {0ms, 1000ms, 1100ms, 1200ms})
    loading.step("routes", static_cast<std::size_t>(at.count()), 2000, start_ + at);
  loading.done();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "\r\033[Kroutes: [###############...............] 50% (1000 of 2000)"
            "\r\033[Kroutes: [##################............] 60% (1200 of 2000)\r\033[K");
  EXPECT_EQ(log_.str(), "");
}

TEST_F(LoadingTest, StateIsThereWhileSomethingIsLoaded) {
  Loading loading(false);
  EXPECT_EQ(loading.state().what, "");
  loading.step("routes of the kernel", 7, 0, start_);
  EXPECT_EQ(loading.state().what, "routes of the kernel");
  EXPECT_EQ(progress_text(loading.state(), true), "routes of the kernel: 7");
  loading.done();
  EXPECT_EQ(loading.state().what, "");
}

TEST_F(LoadingTest, EndsWhenAskedAndWhenASignalWaits) {
  Loading stopped(false);
  stopped.stop();
  EXPECT_FALSE(stopped.step("routes", 1, 2, start_));

  Loading loading(false);
  sigset_t interrupt;
  sigset_t before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  EXPECT_EQ(waiting_end_signal(), 0);
  EXPECT_TRUE(loading.step("routes", 1, 2, start_));
  raise(SIGINT);
  EXPECT_EQ(waiting_end_signal(), SIGINT);
  EXPECT_FALSE(loading.step("routes", 2, 2, start_));
  int taken = 0;
  sigwait(&interrupt, &taken);
  EXPECT_EQ(taken, SIGINT);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace sluice::control
