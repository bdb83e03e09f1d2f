// Profiles of made-up measurements: what calibrate gives is what check takes, or it says why not.
#include "cli/calibrate/acceptance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/calibrate/calibration.h"
#include "control/config.h"
#include "control/stream_demands.h"

namespace sluice::cli {
namespace {

using engine::Profile;
using engine::ProfileCell;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using testing::HasSubstr;

std::string text_of(const std::string& engine, const std::string& more = "") {
  return "[engine]\nchain = [\"srtp\", \"bridge\"]\npoll = \"busy\"\n" + engine +
         "\n[[port]]\nname = \"a\"\ndevice = \"replay\"\n[[port]]\nname = \"b\"\ndevice = \"replay\"\n" + more;
}

// A core of which a batch takes 100 us below 10 Gbit/s and 5 ms beyond; of a GPU every batch takes 10 us, and a round
// what is said.
class MadeUp : public Bench {
 public:
  MadeUp(bool on_gpu, nanoseconds round) : on_gpu_(on_gpu), round_(round) {}
  using Bench::measure;
  Expected<ProfileCell> measure(std::uint64_t rate, std::chrono::duration<double>) override {
    const bool beyond = rate == 0 || rate > 10'000'000'000;
    ProfileCell cell;
    cell.carried = rate == 0 ? 20'000'000'000 : rate;
    cell.batches = 1000;
    cell.batch_bytes = 1000;
    cell.p50 = cell.p99 = cell.p999 = cell.longest = on_gpu_  ? microseconds(10)
                                                     : beyond ? microseconds(5000)
                                                              : microseconds(100);
    cell.round = round_;
    cell.schedulable = !beyond;
    return cell;
  }

 private:
  bool on_gpu_;
  nanoseconds round_;
};

struct Measured {
  Profile profile;
  unsigned opened = 0;
  std::string refused;
};

Measured measure(const std::string& text, const std::string& device, const std::vector<nanoseconds>& cycles,
                 nanoseconds round) {
  Measured all;
  control::Config config = control::Config::from_text(text, "g.toml", false);
  EXPECT_TRUE(config.ok()) << config.mistakes();
  all.profile.subject = control::profile_subject(config, device);
  all.profile.date = "2026-11-24T20:00:00Z";
  all.profile.code = "test";
  CalibrationPlan plan{.cycles = cycles, .streams = {device == "cpu" ? 0U : 1U}, .packets = {1514}};
  const auto open = [&](nanoseconds, unsigned, unsigned) -> Expected<std::unique_ptr<Bench>> {
    ++all.opened;
    return std::make_unique<MadeUp>(device != "cpu", round);
  };
  const auto accepts = [&](const Profile& profile) -> Expected<void> {
    const auto accepted = accept_profile(text, "g.toml", "", profile);
    return accepted ? Expected<void>() : tl::unexpected(accepted.error());
  };
  const auto done = calibrate(
      plan, open, [](const std::string&, unsigned, unsigned) {}, all.profile, accepts);
  if (!done) all.refused = done.error().message;
  return all;
}

TEST(Acceptance, WhatASaturatedCoreTakesIsInNoBound) {
  const std::string text = text_of("device = \"cpu\"\ndeadline = \"1ms\"");
  const Measured measured = measure(text, "cpu", {nanoseconds(0)}, microseconds(5));
  EXPECT_EQ(measured.refused, "");
  ASSERT_FALSE(measured.profile.capacities.empty());
  EXPECT_GT(measured.profile.capacities[0].rate, 9'000'000'000U);
  EXPECT_EQ(measured.profile.inline_batch(), microseconds(100));
  control::Config config = control::Config::from_text(text, "g.toml");
  config.use_profile(measured.profile);
  EXPECT_TRUE(config.ok()) << config.mistakes();
}

// The 100 us of a batch are more than such a deadline; nothing is written.
TEST(Acceptance, ABoundThatCannotBeKeptIsSaidWithItsPlace) {
  const Measured measured =
      measure(text_of("device = \"cpu\"\ndeadline = \"90us\""), "cpu", {nanoseconds(0)}, microseconds(5));
  EXPECT_THAT(measured.refused, HasSubstr("g.toml:5: [engine] deadline = \"90us\": the bound of this configuration on "
                                          "the CPU, 100us of a batch"));
}

TEST(Acceptance, OfAGpuIsByWhatCollectingTakes) {
  const struct {
    std::string engine;
    std::vector<nanoseconds> cycles;
    nanoseconds round;
    const char* refused;
    unsigned opened;
  } cases[] = {
      {"deadline = \"1ms\"", {microseconds(100)}, microseconds(10), "", 3},
      {"deadline = \"1ms\"\ncycle = \"200us\"", {microseconds(200)}, microseconds(100), "", 3},
      // Known after the first measurement.
      {"deadline = \"700us\"\ncycle = \"200us\"",
       {microseconds(200)},
       microseconds(50),
       "cycle = \"200us\": the bound of this configuration, (2 + overlap)*cycle + 153us = 753us, exceeds",
       1},
      {"deadline = \"1ms\"\ncycle = \"200us\"",
       {microseconds(300)},
       microseconds(10),
       "no cycle was measured that is as short as this one, 200us: run sluice calibrate with --cycles 200us",
       1},
  };
  for (const auto& one : cases) {
    const Measured measured = measure(text_of("device = \"cuda:0\"\n" + one.engine), "X", one.cycles, one.round);
    EXPECT_THAT(measured.refused, HasSubstr(one.refused)) << one.engine;
    EXPECT_EQ(measured.refused.empty(), *one.refused == '\0') << measured.refused;
    EXPECT_EQ(measured.opened, one.opened) << one.engine;
  }
}

// It is the configuration that has too many, and the profile is right.
TEST(Acceptance, StreamsThatDoNotFitAreSaid) {
  const std::string stream =
      "[[srtp.stream]]\naction = \"protect\"\nsource = \"10.0.0.1\"\nsource_port = 5000\ndestination = "
      "\"10.0.0.2\"\ndestination_port = 6000\nrate = 30000000000\ncrypto = \"1 AES_CM_128_HMAC_SHA1_80 "
      "inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz\"\n";
  const std::string text = text_of("device = \"cpu\"\ndeadline = \"1ms\"", stream);
  const Measured measured = measure(text, "cpu", {nanoseconds(0)}, microseconds(5));
  EXPECT_EQ(measured.refused, "");
  const auto accepted = accept_profile(text, "g.toml", "", measured.profile);
  ASSERT_TRUE(accepted) << accepted.error().message;
  EXPECT_THAT(*accepted, HasSubstr("[[srtp.stream]] rate = 30000000000"));
}

}  // namespace
}  // namespace sluice::cli
