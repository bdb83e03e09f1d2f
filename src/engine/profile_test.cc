#include "engine/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "engine/bound.h"

namespace sluice::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using testing::ElementsAre;
using testing::HasSubstr;

Profile sample() {
  Profile profile;
  profile.subject = {"a \"big\" machine, 16 cores", "NVIDIA H200", {"srtp", "route"}, "AEAD_AES_128_GCM", 14, 3, true};
  profile.date = "2026-11-22T23:20:00Z";
  profile.code = "0.7.0";
  profile.packet = 1370;
  profile.slope = 0.0215;
  profile.intercept = -35'000.25;
  profile.capacities = {{microseconds(100), 4, 80'000'000'000}, {microseconds(300), 8, 310'000'000'000}};
  ProfileCell cell{.cycle = microseconds(100), .streams = 4, .packet = 1370, .offered = 80'000'000'000};
  cell.carried = 79'999'000'000;
  cell.batches = 12345;
  cell.batch_bytes = 71'000;
  cell.p50 = microseconds(60);
  cell.p99 = microseconds(80);
  cell.p999 = microseconds(90);
  cell.longest = nanoseconds(299'999);
  cell.schedulable = true;
  cell.round = microseconds(27);
  cell.forwarding = microseconds(33);
  profile.media = {"protect IPv4", "unprotect IPv6"};
  profile.capacities[1].held = std::chrono::seconds(3);
  profile.cells = {cell, cell};
  profile.cells[1].streams = 1;
  profile.cells[1].overruns = 7;
  profile.cells[1].late = 8;
  profile.cells[1].lost = 9;
  profile.cells[1].schedulable = false;
  return profile;
}

TEST(Profile, ComesBackAsItWasWritten) {
  const auto back = Profile::from_text(sample().text(), "p.toml");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->text(), sample().text());
  EXPECT_EQ(back->csv(), sample().csv());
  EXPECT_THAT(back->differences(sample().subject), ElementsAre());
  EXPECT_TRUE(back->subject.stagger);
  EXPECT_DOUBLE_EQ(back->slope, 0.0215);
  EXPECT_EQ(back->cells[1].lost, 9U);
  EXPECT_FALSE(back->cells[1].schedulable);
}

TEST(Profile, WhatIsNoneIsRefusedWithItsPlace) {
  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  const std::string good = sample().text();
  const std::pair<std::string, std::string> cases[] = {
      {"", "p.toml: it is no profile of sluice calibrate"},
      {replaced(good, "version = 1", "version = 2"), "of version 2, and this Sluice reads 1"},
      {replaced(good, "machine", "macine"), "machine: is missing"},
      {replaced(good, "lanes = 14\n", ""), "lanes"},
      {replaced(good, "cycle_ns = 100000", "cycle_ns = -1"), "cycle_ns = -1"},
      {replaced(good, "cycle_ns = 100000", "cycle_ns = \"x\""), "p.toml:"},
      {replaced(good, "schedulable = true", "schedulable = 1"), "schedulable"},
      {"version = ", "p.toml:1"},
  };
  for (const auto& [text, message] : cases) {
    const auto profile = Profile::from_text(text, "p.toml");
    ASSERT_FALSE(profile) << message;
    EXPECT_THAT(profile.error().message, HasSubstr(message));
  }
  EXPECT_FALSE(Profile::from_file("/nonexistent/profile.toml"));
}

TEST(Profile, CapacityIsThatOfACycleNotLonger) {
  const Profile profile = sample();
  EXPECT_EQ(profile.capacity(microseconds(99)), nullptr);
  EXPECT_EQ(profile.capacity(microseconds(100))->rate, 80'000'000'000U);
  EXPECT_EQ(profile.capacity(microseconds(299))->rate, 80'000'000'000U);
  EXPECT_EQ(profile.capacity(microseconds(300))->rate, 310'000'000'000U);
  EXPECT_EQ(profile.capacity(std::chrono::seconds(1))->rate, 310'000'000'000U);
  EXPECT_EQ(profile.inline_batch().count(), 0) << "a GPU's";
}

// A lane that has more to do than it carries is in no bound.
TEST(Profile, AnInlineBatchIsThatOfTheLargestPacketsThatArePromised) {
  const std::uint64_t carried = 80'000'000'000;
  const struct {
    const char* what;
    unsigned packet;
    std::uint64_t offered;
    bool schedulable;
    nanoseconds batch;
  } cases[] = {
      {"a longer one", 1370, carried, true, microseconds(120)},
      {"small packets", 64, carried, true, microseconds(90)},
      {"not schedulable", 1370, carried / 2, false, microseconds(90)},
      {"saturated", 1370, 0, false, microseconds(90)},
      {"more than what held", 1370, carried + 1, true, microseconds(90)},
  };
  for (const auto& one : cases) {
    Profile profile = sample();
    profile.capacities = {{nanoseconds(0), 0, carried}};
    for (ProfileCell& cell : profile.cells) cell.cycle = nanoseconds(0);
    profile.cells[1].p999 = microseconds(120);
    profile.cells[1].packet = one.packet;
    profile.cells[1].offered = one.offered;
    profile.cells[1].schedulable = one.schedulable;
    EXPECT_EQ(profile.inline_batch(), one.batch) << one.what;
    profile.capacities[0].rate = 0;
    EXPECT_EQ(profile.inline_batch().count(), 0) << "nothing is promised";
  }
}

TEST(Profile, SaysWhatCollectingAndForwardingTake) {
  Profile profile = sample();
  profile.cells[1].round = microseconds(20);
  EXPECT_EQ(profile.collect(), 3 * (microseconds(27) + receive_time)) << "the longest round";
  EXPECT_EQ(profile.forwarding(profile.capacities[0]), microseconds(33));
  EXPECT_EQ(profile.forwarding(profile.capacities[1]).count(), 0) << "no cell is of it";
  profile.cells[0].offered += 1;
  EXPECT_EQ(profile.forwarding(profile.capacities[0]).count(), 0) << "beyond it";
}

// Those of before measured less, and are read all the same.
TEST(Profile, OfBeforeSaysLess) {
  std::string text;
  std::istringstream lines(sample().text());
  for (std::string line; std::getline(lines, line);) {
    const auto is = [&line](const char* key) { return line.starts_with(std::string(key) + " = "); };
    if (!is("round_ns") && !is("forwarding_ns") && !is("held_ns") && !is("media")) text += line + '\n';
  }
  const auto profile = Profile::from_text(text, "p.toml");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->collect().count(), 0);
  EXPECT_EQ(profile->capacities[1].held.count(), 0);
  EXPECT_TRUE(profile->media.empty());
  EXPECT_EQ(profile->capacities[1].rate, sample().capacities[1].rate);
}

TEST(Profile, SaysWhatIsDifferent) {
  ProfileSubject now = sample().subject;
  now.device = "cpu";
  now.chain = {"route"};
  now.suite = "";
  now.lanes = 2;
  now.stagger = !now.stagger;
  EXPECT_THAT(sample().differences(now), ElementsAre("the device is cpu, and it was measured with NVIDIA H200",
                                                     "the chain is route, and it was measured with srtp, route",
                                                     "the suite is none, and it was measured with AEAD_AES_128_GCM",
                                                     "the number of lanes is 2, and it was measured with 14",
                                                     "the setting stagger is false, and it was measured with true"));
}

TEST(Profile, FitsALine) {
  const Line line = fit_line({{1000, 3020}, {2000, 5020}, {5000, 11020}});
  EXPECT_NEAR(line.slope, 2, 1e-9);
  EXPECT_NEAR(line.intercept, 1020, 1e-6);
  EXPECT_EQ(fit_line({{5, 7}, {5, 9}}).slope, 0);
  EXPECT_EQ(fit_line({{5, 7}, {5, 9}}).intercept, 8);
  EXPECT_EQ(fit_line({}).intercept, 0);
}

}  // namespace
}  // namespace sluice::engine
