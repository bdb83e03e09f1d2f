#include "function/srtp/rtsp/medium_rate.h"

#include <gtest/gtest.h>

#include <limits>

namespace sluice::function::rtsp {
namespace {

using function::Carries;
using function::MediaStreamSettings;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto highest = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t largest = 1514;

TEST(MediumRate, HasAMarginAndATwentiethEachWay) {
  const struct {
    std::uint64_t rate;
    std::uint32_t margin;
    std::uint64_t media, rtcp, sum;
  } cases[] = {
      {0, 25, 0, 0, 0},
      {1'000'000, 0, 1'000'000, 50'000, 1'100'000},
      {1'000'000, 25, 1'250'000, 62'500, 1'375'000},
      {64'000, 1000, 704'000, 35'200, 774'400},
      {1, 0, 1, 1, 3},
      {highest, 25, highest, highest / 16, highest},
  };
  for (const auto& one : cases) {
    const MediumRate rate = medium_rate({one.rate}, one.margin);
    EXPECT_EQ(rate.media, one.media) << one.rate;
    EXPECT_EQ(rate.rtcp, one.rtcp) << one.rate;
    EXPECT_EQ(rate.sum(), one.sum) << one.rate;
    const MediumRate opened = medium_rate({one.rate, true}, one.margin);
    EXPECT_EQ(opened.media, one.media) << one.rate;
    EXPECT_EQ(opened.sum(), one.sum == highest ? highest : one.sum + one.rtcp) << one.rate;
  }
}

// The server's, then the client's.
std::vector<MediaStreamSettings> streams_that_carry(std::initializer_list<Carries> server,
                                                    std::initializer_list<Carries> client) {
  std::vector<MediaStreamSettings> streams;
  for (const Carries carries : server) streams.emplace_back().carries = carries;
  for (const Carries carries : client) streams.emplace_back().carries = carries;
  return streams;
}

std::uint64_t rate_of(const std::vector<MediaStreamSettings>& streams) {
  std::uint64_t bits = 0;
  for (const MediaStreamSettings& one : streams) bits += one.rate->bits;
  return bits;
}

// Of all kinds of media the buckets' rates are sum(), which is what is admitted.
TEST(MediumRate, IsABucketOfEachStream) {
  const MediumRate rate = medium_rate({8'000'000}, 0);
  auto apart = streams_that_carry({Carries::rtp, Carries::rtcp}, {Carries::rtcp, Carries::rtp});
  police(apart, rate, milliseconds(500), largest);
  EXPECT_EQ(apart[0].rate, (MediaStreamSettings::Rate{8'000'000, 500'000}));
  EXPECT_EQ(apart[1].rate, (MediaStreamSettings::Rate{400'000, 25'000}));
  EXPECT_EQ(apart[2].rate, apart[1].rate);
  EXPECT_EQ(apart[3].rate, apart[1].rate) << "what a client sends that brings no media";
  EXPECT_EQ(rate_of(apart), medium_rate({8'000'000, true}, 0).sum());
  apart.pop_back();
  EXPECT_EQ(rate_of(apart), rate.sum());
  auto together = streams_that_carry({Carries::both}, {Carries::both});
  police(together, rate, milliseconds(500), largest);
  EXPECT_EQ(together[0].rate, (MediaStreamSettings::Rate{8'400'000, 525'000}));
  EXPECT_EQ(together[1].rate, (MediaStreamSettings::Rate{400'000, 25'000}));
  EXPECT_EQ(rate_of(together), rate.sum());
}

// What the server sends as RTP is measured, and all else of the medium goes with it.
TEST(MediumRate, OfAMediumThatIsMeasured) {
  const function::MeasureSettings measure{.time = seconds(3), .margin = 10, .share = "rtsp 1", .follows = {}};
  auto streams = streams_that_carry({Carries::rtp, Carries::rtcp}, {Carries::rtcp, Carries::rtp});
  police(streams, medium_rate({8'000'000}, 0), seconds(1), largest, measure);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    ASSERT_TRUE(streams[i].measure);
    EXPECT_EQ(streams[i].measure->share, "rtsp 1");
    EXPECT_EQ(streams[i].measure->follows.has_value(), i != 0);
    if (i != 0) {
      EXPECT_EQ(*streams[i].measure->follows, streams[0].key);
    }
  }
  police(streams, medium_rate({8'000'000}, 0), seconds(1), largest);
  EXPECT_FALSE(streams[0].measure);
  auto boundless = streams_that_carry({Carries::rtp}, {Carries::rtcp});
  police(boundless, {}, seconds(1), largest, measure);
  EXPECT_FALSE(boundless[0].measure) << "held to nothing";
}

TEST(MediumRate, HasCapacityForTwoFramesAndNotForMoreThanMemory) {
  auto streams = streams_that_carry({Carries::rtp}, {Carries::rtcp});
  police(streams, medium_rate({64'000}, 0), milliseconds(1), largest);
  EXPECT_EQ(streams[0].rate->burst, 2 * largest);
  EXPECT_EQ(streams[1].rate->burst, 2 * largest);
  police(streams, medium_rate({highest}, 0), seconds(1000), largest);
  EXPECT_EQ(streams[0].rate->burst, 1U << 30);
}

TEST(MediumRate, OfNothingIsNoBucket) {
  auto streams = streams_that_carry({Carries::rtp, Carries::rtcp}, {Carries::rtcp});
  police(streams, {}, seconds(1), largest);
  for (const auto& one : streams) EXPECT_FALSE(one.rate);
}

}  // namespace
}  // namespace sluice::function::rtsp
