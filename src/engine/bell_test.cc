#include "engine/bell.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace sluice::engine {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

milliseconds wait(Bell& bell, milliseconds timeout, int other = -1) {
  std::array<pollfd, 2> fds{{{other, POLLIN, 0}, {}}};
  const auto begin = Clock::now();
  bell.wait(fds, timeout);
  return std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
}

TEST(Bell, ARingAfterArmingEndsTheWaitAtOnce) {
  Bell bell;
  bell.arm();
  bell.ring();
  EXPECT_LT(wait(bell, milliseconds(5000)), milliseconds(1000));
}

TEST(Bell, ARingFromAnotherThreadEndsTheWait) {
  Bell bell;
  bell.arm();
  std::thread ringer([&] {
    std::this_thread::sleep_for(milliseconds(20));
    bell.ring();
  });
  EXPECT_LT(wait(bell, milliseconds(5000)), milliseconds(2000));
  ringer.join();
}

TEST(Bell, RingsWhileAwakeOrForAnEarlierSleepAreNotKept) {
  Bell bell;
  bell.ring();
  bell.arm();
  bell.disarm();
  bell.ring();
  bell.arm();
  EXPECT_GE(wait(bell, milliseconds(30)), milliseconds(29));
  bell.arm();
  bell.ring();
  wait(bell, milliseconds(30));
  bell.arm();
  EXPECT_GE(wait(bell, milliseconds(30)), milliseconds(29));
}

TEST(Bell, AnotherDescriptorEndsTheWait) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  Bell bell;
  bell.arm();
  EXPECT_LT(wait(bell, milliseconds(5000), ends[0]), milliseconds(1000));
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace sluice::engine
