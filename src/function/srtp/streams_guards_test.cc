// Streams that have ended, and what is kept from going on in clear.
#include <chrono>

#include "function/srtp/streams_trial_test.h"

namespace sluice::function {
namespace {

using Clock = std::chrono::steady_clock;

TEST(Streams, WhatEndedIsGuardedUntilNothingComes) {
  SrtpTrial trial("");
  MediaStreams& streams = streams_of(trial);
  auto rtp_alone = settings_of(7000);
  rtp_alone[0].carries = Carries::rtp;
  ASSERT_TRUE(streams.add(rtp_alone));
  ASSERT_EQ(trial.one(frame_to(7000, 1)).name(), "passes");
  ASSERT_EQ(streams.remove(std::vector{key_of(7000)}, MediaOrigin::rtsp, true), 1U);
  EXPECT_EQ(trial.metric("srtp_streams"), 0U);
  EXPECT_EQ(trial.metric("srtp_ended_streams"), 1U);
  EXPECT_EQ(trial.one(frame_to(7000, 2)).name(), "srtp_ended");
  const auto now = Clock::now();
  streams.tidy(now + std::chrono::seconds(4));
  EXPECT_EQ(trial.one(frame_to(7000, 3)).name(), "srtp_ended");
  streams.tidy(now + std::chrono::seconds(6));
  EXPECT_EQ(trial.one(frame_to(7000, 4)).name(), "srtp_ended") << "some came since";
  streams.tidy(now + std::chrono::seconds(7));
  EXPECT_EQ(trial.metric("srtp_ended_streams"), 1U);
  streams.tidy(now + std::chrono::seconds(13));
  EXPECT_EQ(trial.metric("srtp_ended_streams"), 0U);
  EXPECT_EQ(trial.one(frame_to(7000, 5)).name(), "passes");
  // A new one takes the place of one that is guarded.
  ASSERT_TRUE(streams.add(settings_of(7000)));
  ASSERT_EQ(streams.remove(std::vector{key_of(7000)}, MediaOrigin::rtsp, true), 1U);
  ASSERT_TRUE(streams.add(settings_of(7000)));
  EXPECT_EQ(trial.one(frame_to(7000, 5)).name(), "passes");
  streams.tidy(now + std::chrono::hours(1));
  EXPECT_NE(trial.one(frame_to(7000, 6)).frame, frame_to(7000, 6)) << "and stays";
}

// RTCP comes seldom: its guard waits for more than its interval.
TEST(Streams, WhatCarriedRtcpIsGuardedForLonger) {
  using std::chrono::seconds;
  const std::pair<Carries, seconds> cases[] = {
      {Carries::rtp, seconds(5)}, {Carries::rtcp, seconds(30)}, {Carries::both, seconds(30)}};
  for (const auto& [carries, lasts] : cases) {
    SrtpTrial trial("");
    MediaStreams& streams = streams_of(trial);
    auto one = settings_of(7000);
    one[0].carries = carries;
    ASSERT_TRUE(streams.add(one));
    const auto before = Clock::now();
    ASSERT_EQ(streams.remove(std::vector{key_of(7000)}, MediaOrigin::rtsp, true), 1U);
    streams.tidy(before + lasts - seconds(1));
    EXPECT_EQ(trial.metric("srtp_ended_streams"), 1U) << lasts.count();
    streams.tidy(Clock::now() + lasts);
    EXPECT_EQ(trial.metric("srtp_ended_streams"), 0U) << lasts.count();
  }
}

// What comes protected, or was not even to be, is no secret.
TEST(Streams, OnlyWhatComesInClearIsGuarded) {
  SrtpTrial trial("");
  MediaStreams& streams = streams_of(trial);
  auto all = settings_of(7000);
  for (const auto& more : {settings_of(7001, Keyless::passes), settings_of(7002, Keyless::passes_rtcp),
                           settings_of(7003, Keyless::drops_rtcp), settings_of(7004)}) {
    all.push_back(more[0]);
  }
  all.back().direction = srtp::Direction::unprotect;
  std::vector<MediaKey> keys;
  for (const auto& one : all) keys.push_back(one.key);
  ASSERT_TRUE(streams.add(all));
  EXPECT_EQ(streams.remove(keys, MediaOrigin::rtsp, true), 5U);
  EXPECT_EQ(trial.metric("srtp_ended_streams"), 1U);
  EXPECT_EQ(trial.one(frame_to(7000, 1)).name(), "srtp_ended");
  for (const unsigned port : {7001U, 7002U, 7003U, 7004U}) EXPECT_EQ(trial.one(frame_to(port, 1)).name(), "passes");
}

// A server that goes on by another port of the gateway is kept out, too, and noted.
TEST(Streams, GuardsAreNoLanes) {
  SrtpTrial trial("", 2);
  MediaStreams& streams = streams_of(trial);
  ASSERT_TRUE(streams.add(settings_of(7000)));
  ASSERT_EQ(streams.remove(std::vector{key_of(7000)}, MediaOrigin::rtsp, true), 1U);
  for (const std::uint32_t lane : {0U, 1U, 0U}) EXPECT_EQ(trial.one(frame_to(7000, 1), lane).name(), "srtp_ended");
  EXPECT_EQ(streams.noted(key_of(7000)), 3U);
}

// From 10.0.0.1 to the client, with that port of its.
std::vector<MediaStreamSettings> medium_of(const char* client, unsigned port) {
  auto one = settings_of(port);
  one[0].key = media_key(*packet::IpAddress::parse("10.0.0.1"), 5004, *packet::IpAddress::parse(client),
                         static_cast<std::uint16_t>(port));
  return one;
}

// It comes, and goes with a guard in its place.
void come_and_end(MediaStreams& streams, const std::vector<MediaStreamSettings>& one) {
  ASSERT_TRUE(streams.add(one));
  ASSERT_EQ(streams.remove(std::vector{one[0].key}, MediaOrigin::rtsp, true), 1U);
  streams.tidy(Clock::now());
}

// Capacity for 128 5-tuples, and for 8 guards of one client.
TEST(Streams, ALiveStreamTakesThePlaceOfTheOldestGuard) {
  SrtpTrial trial("[srtp]\nmax_keys = 64\n");
  MediaStreams& streams = streams_of(trial);
  for (unsigned i = 0; i < 128; ++i)
    come_and_end(streams, medium_of(("10.0.1." + std::to_string(i / 8)).c_str(), 7000 + i));
  EXPECT_EQ(trial.metric("srtp_ended_streams"), 128U);
  EXPECT_EQ(trial.metric("srtp_guards_cut_short"), 0U);
  ASSERT_TRUE(streams.add(settings_of(6000)));
  ASSERT_TRUE(streams.add(medium_of("10.0.1.0", 7005))) << "a guard's own place";
  EXPECT_EQ(trial.metric("srtp_streams"), 2U);
  EXPECT_EQ(trial.metric("srtp_ended_streams"), 126U);
  EXPECT_EQ(trial.metric("srtp_guards_cut_short"), 1U);
  EXPECT_EQ(streams.noted(medium_of("10.0.1.0", 7000)[0].key), 0U);
  std::size_t count = 0;
  std::set<std::string> names;
  for (const MediaStreamRow& row : streams.list(200, {}, count)) names.insert(row.name);
  EXPECT_EQ(count, 128U);
  EXPECT_FALSE(names.contains("10.0.0.1:5004 -> 10.0.0.2:7000")) << "the oldest";
  EXPECT_TRUE(names.contains("10.0.0.1:5004 -> 10.0.0.2:7001"));
}

TEST(Streams, AClientHasItsShareOfGuardsAndNoMore) {
  SrtpTrial trial("[srtp]\nmax_keys = 64\n");
  MediaStreams& streams = streams_of(trial);
  come_and_end(streams, medium_of("10.0.0.9", 6000));
  for (unsigned i = 0; i < 1000; ++i) come_and_end(streams, medium_of("10.0.0.2", 7000 + i));
  EXPECT_EQ(trial.metric("srtp_ended_streams"), 9U);
  EXPECT_EQ(trial.metric("srtp_guards_cut_short"), 992U);
  EXPECT_EQ(trial.one(frame_to(7992, 1)).name(), "srtp_ended");
  EXPECT_EQ(trial.one(frame_to(7991, 1)).name(), "passes") << "its own oldest gave way";
  // Of the explicit mode all come addressed to the proxy; a client is where they go.
  for (unsigned i = 0; i < 20; ++i) {
    auto one = medium_of("10.0.0.3", 8000 + i);
    one[0].leaves = medium_of(i < 10 ? "10.9.0.1" : "10.9.0.2", 8000 + i)[0].key;
    come_and_end(streams, one);
  }
  EXPECT_EQ(trial.metric("srtp_ended_streams"), 25U);
}

}  // namespace
}  // namespace sluice::function
