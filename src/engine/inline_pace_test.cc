#include "engine/inline_pace.h"

#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

constexpr std::uint64_t deadline = 30'000'000;
constexpr std::uint32_t most = 256;

// So many batches of frames that cost so much.
void go_through(InlinePace& pace, int batches, std::uint64_t computing, std::uint64_t forwarding) {
  for (int b = 0; b < batches; ++b) {
    pace.computing().took(pace.next() * computing, pace.next());
    pace.forwarding().took(pace.next() * forwarding, pace.next());
    pace.begin();
  }
}

TEST(InlinePace, ABatchTakesAThirdOfTheDeadline) {
  struct Case {
    std::uint64_t computing, forwarding;
    std::uint32_t frames;
  };
  for (const Case& one : {Case{0, 0, most}, Case{100, 400, most}, Case{39'000, 0, most}, Case{0, 78'000, 128},
                          Case{39'000, 39'000, 128}, Case{100'000, 100'000, 48}, Case{10'000'000, 0, 16}}) {
    InlinePace pace(deadline, most);
    EXPECT_EQ(pace.next(), most);
    go_through(pace, 100, one.computing, one.forwarding);
    EXPECT_EQ(pace.next(), one.frames) << one.computing << ' ' << one.forwarding;
  }
}

TEST(InlinePace, FramesThatCostMoreMakeItSmallerWithinAFewBatches) {
  InlinePace pace(deadline, most);
  go_through(pace, 100, 0, 4'000);
  EXPECT_EQ(pace.next(), most);
  go_through(pace, 6, 0, 200'000);
  EXPECT_LT(pace.next(), 64U);
  go_through(pace, 40, 0, 4'000);
  EXPECT_EQ(pace.next(), most) << "and larger again";
}

TEST(InlinePace, AnAbsenceOnceMakesNoFrameDear) {
  InlinePace pace(deadline, most);
  go_through(pace, 100, 0, 10'000);
  pace.forwarding().took(100 * deadline, 1);
  pace.begin();
  EXPECT_EQ(pace.next(), most);
}

}  // namespace
}  // namespace sluice::engine
