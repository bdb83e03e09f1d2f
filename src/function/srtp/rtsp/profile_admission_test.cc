#include "function/srtp/rtsp/profile_admission.h"

#include <gtest/gtest.h>

#include <limits>

namespace sluice::function::rtsp {
namespace {

using std::chrono::milliseconds;

constexpr engine::StreamCapacity capacity{.rate = 12'450, .bound = milliseconds(1), .largest_packet = 0};
constexpr auto highest = std::numeric_limits<std::uint64_t>::max();

MediumDeadlines of_all(std::chrono::nanoseconds deadline) {
  MediumDeadlines deadlines;
  deadlines.engine = deadline;
  return deadlines;
}

Medium medium_of(std::uint64_t rate, std::string kind, std::optional<std::size_t> server = std::nullopt) {
  Medium medium{rate};
  medium.kind = std::move(kind);
  medium.server = server;
  return medium;
}

// 6,000 and a quarter, and twice a twentieth of that: 8,250.
TEST(ProfileAdmission, AllThatMediaAreHeldToTakesFromTheProfile) {
  engine::StreamAdmission streams(capacity);
  ASSERT_TRUE(streams.add({.deadline = milliseconds(5), .rate = 4'200}).accepted());  // the configuration's
  ProfileAdmission admission(streams, {}, of_all(milliseconds(2)), 1504);
  EXPECT_TRUE(admission.admit({6'000}));
  EXPECT_EQ(streams.state().rate, 12'450U);
  EXPECT_EQ(admission.held_to({6'000}).sum(), 8'250U);
  EXPECT_FALSE(admission.admit({1}));
  EXPECT_FALSE(admission.admit({highest}));
  EXPECT_FALSE(admission.admit({0})) << "its rate is not known";
  EXPECT_EQ(streams.state().refused, 3U);
  EXPECT_EQ(streams.state().shortest_deadline, milliseconds(2));
  admission.ended({6'000});
  EXPECT_EQ(streams.state().rate, 4'200U);
  EXPECT_EQ(streams.state().streams, 1U);
  EXPECT_TRUE(admission.admit({6'000}));
}

TEST(ProfileAdmission, PacketsThatAreLargerThanWasMeasuredAreRefused) {
  for (const std::uint32_t measured : {1503U, 1504U}) {
    engine::StreamAdmission streams({.rate = 12'450, .bound = milliseconds(1), .largest_packet = measured});
    ProfileAdmission admission(streams, {}, of_all(milliseconds(2)), 1504);
    EXPECT_EQ(admission.admit({6'000}), measured == 1504);
    EXPECT_EQ(admission.why().find("packets of 1504 bytes") == 0, measured == 1503);
  }
}

// A twentieth more.
TEST(ProfileAdmission, WhatAnExplicitProxysClientsOpenWaysWithTakesFromTheProfile) {
  engine::StreamAdmission streams(capacity);
  ProfileAdmission admission(streams, {}, of_all(milliseconds(2)), 1504);
  const Medium opens{6'000, true};
  EXPECT_TRUE(admission.admit(opens));
  EXPECT_EQ(streams.state().rate, 8'625U);
  EXPECT_EQ(admission.held_to(opens).sum(), 8'625U);
  EXPECT_FALSE(admission.admit({2'760, true})) << "3,450 and three times 172: 141 too many";
  EXPECT_TRUE(admission.admit({2'760})) << "3,794";
  admission.ended(opens);
  EXPECT_EQ(streams.state().rate, 3'794U);
  admission.ended({2'760});
  EXPECT_EQ(streams.state().streams, 0U);
}

// Of two media of the same rate each gives back what it holds by then.
TEST(ProfileAdmission, MediaThatAreMeasuredGiveBackWhatTheyHold) {
  engine::StreamAdmission streams(capacity);
  function::RtspOptions options;
  options.default_rate = 4'000;
  ProfileAdmission admission(streams, options, of_all(milliseconds(2)), 1504);
  const Medium one{0, false, "rtsp 1"}, other{0, false, "rtsp 2"};
  ASSERT_TRUE(admission.admit(one));
  ASSERT_TRUE(admission.admit(other));
  EXPECT_EQ(streams.state().rate, 2 * 5'500U);
  ASSERT_TRUE(streams.change(streams.share("rtsp 2"), 5'000, 1'000)->accepted());
  ASSERT_TRUE(streams.change(streams.share("rtsp 2"), 250, 50)->accepted());
  EXPECT_EQ(streams.state().rate, 5'500U + 1'300U);
  admission.ended(one);
  EXPECT_EQ(streams.state().rate, 1'300U);
  EXPECT_EQ(streams.share("rtsp 1"), nullptr);
  admission.ended(other);
  EXPECT_EQ(streams.state().rate, 0U);
  EXPECT_EQ(streams.state().streams, 0U);
}

// As police() gives them buckets, of frames of 1,514 bytes: media a second of 750,000 bits, RTCP two frames each way.
TEST(ProfileAdmission, TheBurstsOfAllItsStreamsCount) {
  for (const bool client_opens : {false, true}) {
    engine::StreamAdmission streams({.rate = 10'000'000, .bound = milliseconds(1)});
    ProfileAdmission admission(streams, {}, of_all(milliseconds(2)), 1504);
    const Medium medium{600'000, client_opens};
    ASSERT_TRUE(admission.admit(medium));
    std::vector<function::MediaStreamSettings> media(client_opens ? 4 : 3);
    media[0].carries = function::Carries::rtp;
    police(media, admission.held_to(medium), std::chrono::seconds(1), 1514);
    std::uint64_t all = 0;
    for (const auto& one : media) all += one.rate->burst;
    EXPECT_EQ(streams.state().bursts, all);
    EXPECT_GT(all, 93'750U);
    admission.ended(medium);
    EXPECT_EQ(streams.state().bursts, 0U);
  }
}

// Each by its kind and server; the shortest that is there is theta.
TEST(ProfileAdmission, TheShortestDeadlineFollowsMediaAsTheyComeAndGo) {
  engine::StreamAdmission streams({.rate = 1'000'000, .bound = milliseconds(1), .largest_packet = 0});
  MediumDeadlines deadlines = of_all(milliseconds(9));
  deadlines.all.values = {milliseconds(8), milliseconds(4), milliseconds(6), milliseconds(0)};
  deadlines.servers.resize(2);
  deadlines.servers[1].values = {milliseconds(3), milliseconds(0), milliseconds(2), milliseconds(1)};
  ProfileAdmission admission(streams, {}, deadlines, 1504);
  struct Step {
    bool comes;
    Medium medium;
    std::int64_t theta;  // in milliseconds, afterwards
    bool admitted = true;
  };
  const Medium audio = medium_of(1000, "audio"), video = medium_of(1000, "video"), text = medium_of(1000, "text");
  const Medium others_video = medium_of(1000, "video", 0), its_video = medium_of(1000, "video", 1);
  const Step steps[] = {
      {true, text, 8},
      {true, video, 6},
      {true, others_video, 6},
      {true, audio, 4},
      {true, medium_of(1000, "audio", 1), 3},
      {true, its_video, 2},
      {true, medium_of(1000, "application", 1), 2, false},  // 1 ms is not above the bound
      {false, its_video, 3},
      {false, medium_of(1000, "audio", 1), 4},
      {false, audio, 6},
      {false, video, 6},
      {false, others_video, 8},
      {false, text, 0},
  };
  for (const Step& step : steps) {
    SCOPED_TRACE(step.medium.kind + ' ' + std::to_string(step.theta));
    if (step.comes) {
      EXPECT_EQ(admission.admit(step.medium), step.admitted);
    } else {
      admission.ended(step.medium);
    }
    EXPECT_EQ(streams.state().shortest_deadline, milliseconds(step.theta));
  }
  EXPECT_EQ(streams.state().streams, 0U);
  EXPECT_EQ(streams.state().rate, 0U);
}

// For the log, with its numbers.
TEST(ProfileAdmission, ARefusalSaysWhy) {
  engine::StreamAdmission streams(capacity);
  function::RtspOptions options;
  options.max_rate = 7'000;
  ProfileAdmission admission(streams, options, of_all(milliseconds(2)), 1504);
  EXPECT_FALSE(admission.admit({7'001}));
  EXPECT_EQ(admission.why(), "7001 bit/s beside the 0 that are taken exceed max_rate = 7000");
  EXPECT_TRUE(admission.admit({6'000}));
  EXPECT_EQ(admission.used(), 6'000U);
  options.max_rate = 0;
  ProfileAdmission boundless(streams, options, of_all(milliseconds(2)), 1504);
  EXPECT_FALSE(boundless.admit({9'000}));
  EXPECT_EQ(
      boundless.why(),
      "12.37 kbit/s beside the 8.25 kbit/s that are taken exceed the 12.45 kbit/s that the device carries in time");
}

TEST(ProfileAdmission, MaxRateHoldsBesideIt) {
  engine::StreamAdmission streams(capacity);
  function::RtspOptions options;
  options.max_rate = 3'000;
  options.default_rate = 1'000;
  ProfileAdmission admission(streams, options, of_all(milliseconds(2)), 1504);
  EXPECT_TRUE(admission.admit({0}));
  EXPECT_FALSE(admission.admit({2'001}));
  EXPECT_EQ(streams.state().rate, 1'250U + 2 * 62U);
  EXPECT_EQ(admission.held_to({0}).sum(), 1'374U);
  ASSERT_TRUE(streams.add({.deadline = milliseconds(5), .rate = 9'000}).accepted());
  EXPECT_FALSE(admission.admit({2'000})) << "of the profile";
  ASSERT_TRUE(streams.remove({.deadline = milliseconds(5), .rate = 9'000}));
  EXPECT_TRUE(admission.admit({2'000})) << "what was refused has left nothing in max_rate";
  admission.ended({0});
  admission.ended({2'000});
  EXPECT_EQ(streams.state().streams, 0U);
}

TEST(ProfileAdmission, ADeadlineWithinTheBoundAndAProfileThatOnlyCounts) {
  engine::StreamAdmission streams(capacity);
  EXPECT_FALSE(ProfileAdmission(streams, {}, of_all(milliseconds(1)), 1504).admit({1}));
  engine::StreamAdmission counts(capacity, false);
  ProfileAdmission all(counts, {}, of_all(milliseconds(1)), 1504);
  for (const std::uint64_t rate : {std::uint64_t{0}, highest, std::uint64_t{5}}) {
    EXPECT_TRUE(all.admit({rate}));
    EXPECT_EQ(all.held_to({rate}).sum(), 0U);
  }
  for (const std::uint64_t rate : {std::uint64_t{5}, highest, std::uint64_t{0}}) all.ended({rate});
  EXPECT_EQ(counts.state().rate, 0U);
  EXPECT_EQ(counts.state().streams, 0U);
}

}  // namespace
}  // namespace sluice::function::rtsp
