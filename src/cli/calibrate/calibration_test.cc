#include "cli/calibrate/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sluice::cli {
namespace {

using engine::Profile;
using engine::ProfileCell;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A device of which a batch takes 20 us and 20 ps for each byte, in one of its streams, and that carries 400 Gbit/s
// with four streams or more.
struct Model {
  double intercept = 20'000, slope = 0.02;
  double most = 400e9;
  unsigned noisy = 0;     // of so many measurements one is good
  double lasting = 1e12;  // above it a measurement of a second or more sees what makes it bad
  unsigned measured = 0, opened = 0, held = 0;
};

class ModelBench : public Bench {
 public:
  ModelBench(Model& model, nanoseconds cycle, unsigned streams, unsigned packet)
      : model_(model), cycle_(cycle), streams_(streams), packet_(packet) {}
  Expected<ProfileCell> measure(std::uint64_t rate, std::chrono::duration<double> length) override {
    const double most = model_.most * std::min(streams_, 4U) / 4;
    const double carried = rate == 0 ? most : std::min(static_cast<double>(rate), most);
    const double bytes = std::max<double>(packet_, carried / 8e9 * static_cast<double>(cycle_.count()));
    ProfileCell cell;
    cell.carried = static_cast<std::uint64_t>(std::llround(carried));
    cell.batches = 1000;
    cell.batch_bytes = static_cast<std::uint64_t>(bytes);
    cell.p50 = cell.p99 = cell.p999 = nanoseconds(std::llround(model_.intercept + model_.slope * bytes));
    const bool holds = length.count() >= 1;
    model_.held += holds ? 1 : 0;
    const bool noise =
        holds ? static_cast<double>(rate) > model_.lasting : model_.noisy != 0 && ++model_.measured % model_.noisy != 0;
    cell.longest = cell.p50 + (noise ? cycle_ : nanoseconds(0));
    cell.schedulable = rate != 0 && static_cast<double>(rate) <= most && cell.longest <= cycle_;
    return cell;
  }

 private:
  Model& model_;
  nanoseconds cycle_;
  unsigned streams_, packet_;
};

Expected<Profile> profile_of(Model& model, const CalibrationPlan& plan) {
  Profile profile;
  profile.subject.overlap = 1;
  const auto open = [&](nanoseconds cycle, unsigned streams, unsigned packet) -> Expected<std::unique_ptr<Bench>> {
    ++model.opened;
    return std::make_unique<ModelBench>(model, cycle, streams, packet);
  };
  unsigned last = 0;
  const auto progress = [&last](const std::string& what, unsigned done, unsigned total) {
    EXPECT_FALSE(what.empty());
    EXPECT_GE(done, last);
    EXPECT_LE(done, total);
    last = done;
  };
  if (auto ok = calibrate(plan, open, progress, profile); !ok) return tl::unexpected(ok.error());
  return profile;
}

const CalibrationPlan plan{
    .cycles = {microseconds(10), microseconds(22), microseconds(100)}, .streams = {1, 2, 4, 8}, .packets = {1370, 242}};

// What is found has to hold for longer, in one try: else it is lowered, by a sixteenth, an eighth, a quarter and
// halves.
TEST(Calibration, WhatIsFoundIsLoweredUntilItHolds) {
  const struct {
    double lasting, share;  // of what was found
    unsigned holds;         // of three cycles, the first of which carries nothing
  } cases[] = {
      {1e12, 1, 2}, {305e9, 15 / 16.0, 3}, {290e9, 15 / 16.0 * 7 / 8, 4}, {230e9, 15 / 16.0 * 7 / 8 * 3 / 4, 5}};
  Model short_tries;
  CalibrationPlan without = plan;
  without.hold = {};
  const auto found = profile_of(short_tries, without);
  ASSERT_TRUE(found);
  EXPECT_EQ(short_tries.held, 0U);
  EXPECT_EQ(found->capacities[2].held.count(), 0);
  for (const auto& one : cases) {
    Model model{.noisy = 3, .lasting = one.lasting};
    const auto profile = profile_of(model, plan);
    ASSERT_TRUE(profile) << profile.error().message;
    EXPECT_NEAR(static_cast<double>(profile->capacities[2].rate),
                static_cast<double>(found->capacities[2].rate) * one.share, 16)
        << one.lasting;
    EXPECT_EQ(model.held, one.holds) << one.lasting;
    EXPECT_EQ(profile->capacities[2].held, std::chrono::seconds(3));
    EXPECT_THAT(calibration_table(*profile, false), HasSubstr("with 4 streams, held for 3"));
  }
  Model never{.lasting = 0};
  const auto none = profile_of(never, plan);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->capacities[2].rate, 0U);
  EXPECT_EQ(none->capacities[2].held, std::chrono::seconds(3));
  EXPECT_EQ(never.held, 2 * 6U);
}

// Short tries are good at every rate.
TEST(Calibration, WhatDoesNotHoldIsNotMarked) {
  Model wide{.intercept = 100, .slope = 0.001};
  const auto holds = profile_of(wide, plan);
  ASSERT_TRUE(holds);
  EXPECT_THAT(calibration_table(*holds, false), HasSubstr(" *\n"));
  EXPECT_EQ(nothing_carried_text(*holds), "");
  wide.lasting = 0;
  const auto none = profile_of(wide, plan);
  ASSERT_TRUE(none);
  const std::string table = calibration_table(*none, true);
  EXPECT_THAT(table, HasSubstr("B_I of 100 us      none held for 3.00 s\n"));
  EXPECT_THAT(table, Not(HasSubstr("no rate that was tried")));
  EXPECT_THAT(table, Not(HasSubstr(" *")));
  EXPECT_THAT(table, Not(HasSubstr("\033[")));
  EXPECT_THAT(nothing_carried_text(*none), HasSubstr("Try a longer [engine] deadline or longer --cycles"));
  // Of one cycle alone.
  Profile some = *none;
  some.capacities.front().rate = 1;
  EXPECT_THAT(calibration_table(some, false), HasSubstr(" *\n"));
  EXPECT_EQ(nothing_carried_text(some), "");
}

// T_S = 20 us + 20 ps/B · R·I/8 <= I: at 22 us that is R = 36 Gbit/s, at 100 us 320.
TEST(Calibration, FindsWhatTheDeviceCarries) {
  Model model;
  const auto profile = profile_of(model, plan);
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->capacities.size(), 3U);
  EXPECT_EQ(profile->capacities[0].rate, 0U) << "a batch takes longer than the cycle, however small it is";
  const double step = 0.25 * 400e9 / 64;
  EXPECT_NEAR(static_cast<double>(profile->capacities[1].rate), 2e3 / 22e3 / 0.02 * 8e9, step);
  EXPECT_LE(static_cast<double>(profile->capacities[1].rate), 2e3 / 22e3 / 0.02 * 8e9);
  EXPECT_NEAR(static_cast<double>(profile->capacities[2].rate), 320e9, step);
  EXPECT_EQ(profile->capacities[2].streams, 4U) << "eight carry no more";
  EXPECT_EQ(profile->packet, 1370U);
  EXPECT_NEAR(profile->slope, model.slope, 1e-3);
  EXPECT_NEAR(profile->intercept, model.intercept, 300);
  bool other_size = false;
  for (const ProfileCell& cell : profile->cells) other_size |= cell.packet == 242;
  EXPECT_TRUE(other_size);
}

TEST(Calibration, OneGoodTryOfThreeIsEnoughToFind) {
  for (const unsigned noisy : {3U, 50U}) {
    Model model{.noisy = noisy};
    const auto profile = profile_of(model, plan);
    ASSERT_TRUE(profile);
    EXPECT_EQ(profile->capacities[2].rate > 300e9, noisy == 3) << noisy;
  }
}

TEST(Calibration, NothingCarriedIsAnError) {
  Model model{.most = 0};
  const auto profile = profile_of(model, plan);
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().message, HasSubstr("nothing was carried"));
}

// A cell that is schedulable, and one above it that is not.
TEST(Calibration, WhatBoundsEachRateIsSaid) {
  Profile profile;
  profile.packet = 1370;
  profile.subject.overlap = 4;
  profile.capacities = {{microseconds(400), 4, 68'000'000'000, std::chrono::seconds(5)}};
  ProfileCell good{.cycle = microseconds(400), .streams = 4, .packet = 1370, .offered = 68'000'000'000};
  good.schedulable = true;
  ProfileCell next = good;
  next.schedulable = false;
  next.offered = next.carried = 72'500'000'000;
  next.forwarding = microseconds(140);
  ProfileCell further = next;
  further.offered = 100'000'000'000;
  further.lost = 7;
  const auto said = [&] {
    profile.cells = {good, further, next};
    return calibration_table(profile, false);
  };
  EXPECT_THAT(said(),
              HasSubstr("Gbit/s with 4 streams, held for 5.00 s\n                   at 72.500 Gbit/s: forwarding a "
                        "batch 140 us, 3 of which have to fit a cycle where a lane has no core of "
                        "forwarder_cores\n"));
  profile.subject.chain = {"srtp", "bridge"};
  EXPECT_THAT(said(), HasSubstr("3 of which have to fit a cycle\n")) << "srtp has no forwarders";
  EXPECT_THAT(said(), Not(HasSubstr("lost;")));
  next.late = 4358;
  next.longest = microseconds(1601);
  EXPECT_THAT(said(), HasSubstr("at 72.500 Gbit/s: 4358 frames late; T_S up to 1.60 ms; forwarding"));
  next = good;
  next.schedulable = false;
  next.offered = 72'500'000'000;
  next.carried = 70'000'000'000;
  EXPECT_THAT(said(), HasSubstr("at 72.500 Gbit/s: only 70.000 Gbit/s carried\n"));
  profile.cells = {good};
  EXPECT_THAT(calibration_table(profile, false), Not(HasSubstr(" at 72")));
}

// What was held was tried before, and is no other cell.
TEST(Calibration, TheTableIsOfTheHighestRateAtWhichACellIsSchedulable) {
  Profile profile;
  profile.packet = 1370;
  profile.subject.overlap = 1;
  const auto add = [&](unsigned cycle, std::uint64_t gbit, bool good) {
    ProfileCell cell{.cycle = microseconds(cycle), .streams = 4, .packet = 1370, .offered = gbit * 1'000'000'000};
    cell.schedulable = good;
    profile.cells.push_back(cell);
  };
  const auto rate = [&] { return calibration_table(profile, false).substr(0, 36); };
  for (const unsigned cycle : {100U, 200U}) add(cycle, 300, false);
  add(100, 100, false);
  add(200, 100, false);
  EXPECT_THAT(rate(), HasSubstr("at 300.000")) << "none is";
  profile.cells[2].schedulable = profile.cells[3].schedulable = true;
  EXPECT_THAT(rate(), HasSubstr("at 100.000"));
  add(100, 200, false);
  add(200, 200, true);
  add(100, 100, true);  // held
  EXPECT_THAT(rate(), HasSubstr("at 200.000"));
}

TEST(Calibration, UsualPacketsAreThoseThatThereCanBe) {
  using Packets = std::vector<unsigned>;
  EXPECT_EQ(usual_packets(1514), (Packets{1514, 757, 128}));
  EXPECT_EQ(usual_packets(256), (Packets{256, 128}));
  EXPECT_EQ(usual_packets(200), (Packets{200, 128, 100}));
  EXPECT_EQ(usual_packets(128), (Packets{128, 64}));
  EXPECT_EQ(usual_packets(82), (Packets{82})) << "of the smallest MTU";
}

TEST(Calibration, TableMarksWhatIsSchedulable) {
  Model model;
  const auto profile = profile_of(model, plan);
  ASSERT_TRUE(profile);
  const std::string plain = calibration_table(*profile, false), bold = calibration_table(*profile, true);
  EXPECT_THAT(plain, HasSubstr("T_S, the longest, at 300.000 Gbit/s of 1370 B")) << "at 400 nothing is schedulable";
  EXPECT_THAT(plain, HasSubstr("B_I of 10.0 us     no rate"));
  EXPECT_THAT(plain, Not(HasSubstr("\033[")));
  EXPECT_THAT(plain, HasSubstr("no T_S above 1 cycles, and forwarded in time"));
  EXPECT_THAT(bold, HasSubstr("\033[1m           95.0 us *\033[0m"));
  EXPECT_THAT(bold, HasSubstr("           70.0 us  ")) << "with two streams it is not";
  Model wide{.intercept = 100, .slope = 0.001}, narrow{.intercept = 1e6};
  const auto of = [](Model& other) {
    const auto measured = profile_of(other, plan);
    return measured ? calibration_table(*measured, true) : measured.error().message;
  };
  EXPECT_THAT(of(wide), AllOf(HasSubstr("at 400.000 Gbit/s"), HasSubstr(" *\033[0m")));
  EXPECT_THAT(of(narrow), AllOf(HasSubstr("at 400.000 Gbit/s"), Not(HasSubstr(" *\033[0m")))) << "nothing is";
}

}  // namespace
}  // namespace sluice::cli
