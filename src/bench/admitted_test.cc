#include "bench/admitted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace sluice::cli::bench {
namespace {

constexpr double top = 1e6;  // frames per second, of 1000 bytes: 1 GB/s
constexpr double least_seconds = 2, hold_seconds = 60;

// At one rate: whether a short look at it is clean, and for how long it is clean when it is held.
struct Try {
  bool clean;
  double clean_for;
};

// Every rate that is set takes the next of `tries`; after the last one no rate is clean.
class FakeLoad : public Load {
 public:
  explicit FakeLoad(std::vector<Try> tries) : tries_(std::move(tries)) {}

  void set_rate(double frames_per_second) override { rates.push_back(frames_per_second); }
  Outcome measure(double /*warm_up_seconds*/, double seconds) override {
    return outcome(seconds, rates.empty() || now().clean);
  }
  Hold hold(double seconds, bool while_clean) override {
    holds_while_clean.push_back(while_clean);
    const double clean_for = std::min(seconds, now().clean_for);
    Hold held{outcome(while_clean ? clean_for : seconds, clean_for >= seconds), {}};
    held.windows.assign(static_cast<std::size_t>(held.whole.seconds), outcome(1, true));
    return held;
  }

  double frames_per_second = top;
  std::vector<double> rates;
  std::vector<bool> holds_while_clean;

 private:
  Try now() const { return rates.size() <= tries_.size() ? tries_[rates.size() - 1] : Try{false, 0}; }
  Outcome outcome(double seconds, bool clean) const {
    Outcome one;
    one.seconds = seconds;
    const double rate = rates.empty() ? frames_per_second : rates.back();
    one.frames = static_cast<std::uint64_t>(std::llround(rate * seconds));
    one.bytes = 1000 * one.frames;
    one.deadline_misses = clean ? 0 : 1;
    return one;
  }
  std::vector<Try> tries_;
};

double rate_of_step(std::size_t step) {
  return top * 0.98 * std::pow(0.97, static_cast<double>(step));
}

TEST(FindAdmitted, StepsDownUntilARateIsHeldAndKeepsTheOneThatWasCleanForLongest) {
  constexpr std::size_t all = 53;  // down to a fifth
  constexpr Try no{false, 0}, yes{true, hold_seconds};
  struct Case {
    const char* what;
    std::vector<Try> tries;
    std::size_t steps;
    std::size_t holds;
    double held_seconds;
    std::size_t held_step;
  };
  const Case cases[] = {
      {"the first rate", {yes, yes}, 1, 1, hold_seconds, 0},
      {"the third rate, and no lower one is tried", {no, no, yes, yes}, 3, 1, hold_seconds, 2},
      {"held after a try that broke", {{true, 50}, no, yes}, 3, 2, hold_seconds, 2},
      {"none is held: the one that was clean for longest", {{true, 5}, {true, 20}, no, {true, 10}}, all, 3, 20, 1},
      {"of two alike the higher rate", {{true, 20}, {true, 20}}, all, 2, 20, 0},
      {"no rate is clean even for a short time", {}, all, 0, 0, 0},
      {"eight times the hold are spent", std::vector<Try>(20, {true, 54}), 9, 9, 54, 0},
      {"seven tries of it are not the limit", std::vector<Try>(7, {true, 59}), all, 7, 59, 0},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    FakeLoad load(one.tries);
    const auto found = find_admitted(load, least_seconds, hold_seconds);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->saturated.frames, static_cast<std::uint64_t>(top * least_seconds));
    ASSERT_EQ(load.rates.size(), one.steps);
    for (std::size_t step = 0; step < one.steps; ++step) {
      EXPECT_NEAR(load.rates[step], rate_of_step(step), 1) << step;
    }
    EXPECT_EQ(load.holds_while_clean, std::vector<bool>(one.holds, true));
    EXPECT_EQ(found->held.seconds, one.held_seconds);
    EXPECT_EQ(found->windows.size(), static_cast<std::size_t>(one.held_seconds)) << "those of another try";
    if (one.held_seconds > 0) {
      EXPECT_NEAR(found->held.mpps(), rate_of_step(one.held_step) / 1e6, 1e-6);
      EXPECT_EQ(found->held.clean(), one.held_seconds == hold_seconds);
    }
  }
}

TEST(HoldAt, HoldsTheRateOfTheBytesWhateverComes) {
  FakeLoad load({{true, 7}});
  const auto held = hold_at(load, 0.25, least_seconds, hold_seconds);
  ASSERT_TRUE(held) << held.error().message;
  ASSERT_EQ(load.rates.size(), 1U);
  EXPECT_NEAR(load.rates[0], top / 4, 1);
  EXPECT_EQ(load.holds_while_clean, std::vector<bool>{false});
  EXPECT_NEAR(held->held.gbytes(), 0.25, 1e-6);
  EXPECT_EQ(held->held.seconds, hold_seconds);
  EXPECT_FALSE(held->held.clean());
  EXPECT_EQ(held->windows.size(), static_cast<std::size_t>(hold_seconds));
}

TEST(Admitted, NothingForwardedAtTheHighestRateIsAnErrorAndNoRate) {
  FakeLoad load({});
  load.frames_per_second = 0;
  for (const auto& answer :
       {find_admitted(load, least_seconds, hold_seconds), hold_at(load, 0.25, least_seconds, hold_seconds)}) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message,
              "no frame was forwarded in 2 s at the highest rate, so there is no rate to hold: raise --seconds, or see "
              "why");
  }
  EXPECT_TRUE(load.rates.empty()) << "0 would be no limit";
}

}  // namespace
}  // namespace sluice::cli::bench
