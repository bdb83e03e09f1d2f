#include "function/srtp/measured_rate.h"

#include <gtest/gtest.h>

#include <random>

#include "function/policer.h"

namespace sluice::function {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t hz = 1'000'000'000;
constexpr StreamRate given{8'000'000, 100'000};  // what comes in a tenth of a second, so windows of half of that
constexpr std::uint64_t least_burst = 3028;

MeasuredRate rate_of(const StreamRate& rate, std::uint32_t margin = 25, seconds time = seconds(1)) {
  return {rate, {.time = time, .margin = margin, .share = {}, .follows = {}}, least_burst, hz, nullptr};
}

void bring(MeasuredRate& rate, std::uint64_t now) {
  if (engine::RateMeter* const meter = rate.meter()) meter->add(1000, now);
}

// Frames of 1,000 bytes at even distances.
void send(MeasuredRate& rate, std::uint64_t& now, unsigned frames_a_second, seconds time) {
  for (const std::uint64_t end = now + static_cast<std::uint64_t>(time.count()) * hz; now < end;
       now += hz / frames_a_second) {
    bring(rate, now);
  }
}

TEST(MeasuredRate, IsTheFullestWindowAndAMarginOnceThereWereEnough) {
  MeasuredRate rate = rate_of(given);
  std::uint64_t now = hz;
  EXPECT_EQ(rate.meter()->window(), hz / 20);
  EXPECT_EQ(rate.wanted(), std::nullopt);
  send(rate, now, 200, seconds(1));
  EXPECT_EQ(rate.wanted(), std::nullopt) << "the last window is not over";
  bring(rate, now);
  EXPECT_EQ(rate.wanted(), 2'000'000U);
  rate.set(*rate.wanted());
  EXPECT_TRUE(rate.is_measured());
  EXPECT_EQ(rate.burst(), 25'000U) << "of the same time";
  EXPECT_EQ(rate.wanted(), std::nullopt);
  send(rate, now, 20, seconds(10));
  EXPECT_EQ(rate.wanted(), std::nullopt) << "it never sinks";
  send(rate, now, 400, seconds(1));
  EXPECT_EQ(rate.wanted(), 4'000'000U);
  EXPECT_TRUE(rate.note_refused(4'000'000));
  EXPECT_FALSE(rate.note_refused(4'000'000)) << "as before";
  EXPECT_TRUE(rate.note_refused(4'000'001));
  rate.set(4'000'000);
  EXPECT_TRUE(rate.note_refused(4'000'001));
  send(rate, now, 4000, seconds(1));
  EXPECT_EQ(rate.wanted(), given.bits) << "at most";
  rate.set(given.bits);
  EXPECT_EQ(rate.wanted(), std::nullopt);
}

// Silence is not measured.
TEST(MeasuredRate, WaitsForPacketsAndNotForTime) {
  MeasuredRate rate = rate_of(given);
  for (std::uint64_t second = 1; second <= 20; ++second) {
    EXPECT_EQ(rate.wanted(), std::nullopt);
    bring(rate, second * hz);
  }
  bring(rate, 21 * hz);
  EXPECT_EQ(rate.wanted(), 200'000U) << "a frame in each of 20 windows of a twentieth";
}

TEST(MeasuredRate, HasWindowsOfASecondAtMost) {
  EXPECT_EQ(rate_of({1000, 3028}).meter()->window(), hz);
  EXPECT_EQ(rate_of({1'000'000'000'000, 3028}).meter()->window(), 12U);
  MeasuredRate slow = rate_of({1000, 3028});
  slow.set(1);
  EXPECT_EQ(slow.burst(), 3028U) << "two frames";
}

TEST(MeasuredRate, OfRtcpFollows) {
  MeasuredRate media = rate_of(given);
  MeasuredRate rtcp({given.bits / 20, 5000}, {.time = seconds(1), .margin = 25, .share = {}, .follows = MediaKey{}},
                    least_burst, hz, nullptr);
  EXPECT_EQ(rtcp.meter(), nullptr);
  EXPECT_EQ(rtcp.wanted_beside(media), std::nullopt);
  media.set(2'000'000);
  EXPECT_EQ(rtcp.wanted_beside(media), 100'000U);
  rtcp.set(100'000);
  EXPECT_EQ(rtcp.burst(), least_burst);
  EXPECT_EQ(rtcp.wanted_beside(media), std::nullopt);
  media.set(1);
  EXPECT_EQ(rtcp.wanted_beside(media), 1U);
}

TEST(MeasuredRate, GoesOnWithOtherSettings) {
  MeasuredRate before = rate_of(given);
  before.set(1'000'000);
  MeasuredRate after = rate_of({given.bits, 2 * given.burst});
  after.go_on_from(before);
  EXPECT_EQ(after.bits(), 1'000'000U);
  EXPECT_TRUE(after.is_measured());
  EXPECT_EQ(after.burst(), 25'000U);
  EXPECT_EQ(after.wanted(), std::nullopt) << "until something fuller comes";
}

// What a stream brings in windows no fuller than those that were measured passes a bucket of that, however it is
// distributed within them, and without a margin.
TEST(MeasuredRate, LosesNothingOfWhatGoesOnAsItWasMeasured) {
  std::mt19937 random(3);
  unsigned taken = 0;
  for (unsigned round = 0; round < 50; ++round) {
    MeasuredRate rate = rate_of(given, 0);
    const std::uint64_t window = rate.meter()->window();
    // Bursts of up to 20 frames somewhere in each window's time, of the full link; longer pauses now and then.
    std::vector<std::uint64_t> times;
    for (std::uint64_t begin = hz; begin < 40 * hz; begin += window * (random() % 8 == 0 ? 5 : 1)) {
      std::uint64_t at = begin + random() % (window / 2);
      for (unsigned frames = 1 + random() % 20; frames-- > 0; at += 8'000) times.push_back(at);
    }
    const std::size_t half = times.size() / 2;
    for (std::size_t i = 0; i < half; ++i) bring(rate, times[i]);
    ASSERT_TRUE(rate.wanted());
    rate.set(*rate.wanted());
    Policer bucket(rate.bits(), rate.burst(), hz);
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (i >= half) bring(rate, times[i]);
      if (rate.wanted()) break;  // it has brought more than it had
      ASSERT_TRUE(bucket.take(1000, times[i])) << round << " " << i << " of " << times.size();
      ++taken;
    }
  }
  EXPECT_GT(taken, 50U * 1000) << "most of them go on as they were measured";
}

}  // namespace
}  // namespace sluice::function
