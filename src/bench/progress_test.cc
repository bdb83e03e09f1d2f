#include "bench/progress.h"

#include <gtest/gtest.h>

#include <functional>

namespace sluice::cli::bench {
namespace {

using namespace std::chrono_literals;

constexpr Progress::Pace fast{5ms, 5ms};

std::string said_by(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

TEST(Progress, WhatTakesLongIsSaidAgainAndAgain) {
  const std::string said = said_by([] {
    const Progress progress("building", 0, fast);
    std::this_thread::sleep_for(100ms);
  });
  const std::string line = "bench: building: 0 s\n";
  ASSERT_GE(said.size(), 2 * line.size());
  EXPECT_EQ(said.substr(0, 2 * line.size()), line + line);
  EXPECT_EQ(said_by([] {
              const Progress progress("holding", 60, {20ms, 10s});
              std::this_thread::sleep_for(100ms);
            }),
            "bench: holding: 0 of 60 s\n");
}

TEST(Progress, WhatIsSoonDoneIsNotSaid) {
  EXPECT_EQ(said_by([] { const Progress progress("building"); }), "");
}

TEST(Progress, TheOutermostSpeaks) {
  const std::string said = said_by([] {
    const Progress outer("verifying", 0, {20ms, 10s});
    { const Progress inner("building", 0, {1ms, 1ms}); }
    const Progress inner("measuring", 0, {1ms, 1ms});
    std::this_thread::sleep_for(100ms);
  });
  EXPECT_EQ(said, "bench: verifying: 0 s\n");
  EXPECT_NE(said_by([] {
              const Progress next("building", 0, fast);
              std::this_thread::sleep_for(100ms);
            }),
            "");
}

}  // namespace
}  // namespace sluice::cli::bench
