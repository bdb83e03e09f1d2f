// The run of `bench changes` on the SIMT shim.
#include "bench/changes_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>

namespace sluice::cli::bench {
namespace {

class ChangesRunTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string path = testing::TempDir() + "sluice_changes_" + std::to_string(getpid());
    const std::string acl = path + "_acl";
    std::ofstream(path) << "10.0.0.0/8\n20.0.0.0/6\n100.64.0.0/10\n";
    std::ofstream rules(acl);
    for (int r = 0; r < 16; ++r) {
      rules << "@10." << r << ".0.0/16\t20.0.0.0/6\t0 : 65535\t0 : 65535\t0x11/0xFF\t0x0000/0x0000\n";
    }
    rules.close();
    BenchOptions options;
    options.only = "acl + route,srtp,ipsec out";
    options.table = path;
    options.acl = acl;
    options.patterns = "16";
    options.lanes = 1;
    options.batch = 64;
    options.batches = 4;
    options.frames = 4096;
    options.rtp_streams = 20;
    options.deadline_ms = 100;
    options.admission = "all";
    auto beds = ChoiceBeds::make(options, 1);
    ASSERT_TRUE(beds) << beds.error().message;
    beds_ = std::move(*beds);
    paths_ = {path, acl};
  }
  static void TearDownTestSuite() {
    beds_.reset();
    for (const std::string& path : paths_) unlink(path.c_str());
  }

  static ChoiceChain chain(const std::string& name) {
    for (ChoiceChain& one : beds_->chains()) {
      if (one.name == name) return one;
    }
    ADD_FAILURE() << "no chain " << name;
    return {};
  }
  // `offered`: where the shim takes tenths of a second for a batch.
  static ChangesFigures change(const std::string& name, double offered) {
    ChangesPlan plan;
    plan.device = "cuda:0";
    plan.offered = offered;
    plan.seconds = 0.9;
    plan.rounds = 2;
    plan.settling = plan.settling_saturated = 0.05;
    const auto figures = measure_changes(chain(name), plan);
    EXPECT_TRUE(figures) << (figures ? "" : figures.error().message);
    return figures.value_or(ChangesFigures());
  }
  static void expect_nothing_lost(const ChangesFigures& figures) {
    for (const ChangedWindows* const kind : {&figures.without, &figures.with}) {
      EXPECT_EQ(kind->dropped(), 0U) << kind->dropped_text();
      EXPECT_EQ(kind->overdue, 0U);
      EXPECT_EQ(kind->windows.of.size(), 2U);
      EXPECT_GT(kind->windows.sum(&Outcome::frames), 0U);
      EXPECT_GT(kind->windows.sum(&Outcome::gpu_frames), 0U);
    }
    EXPECT_EQ(figures.unaccounted, 0);
    EXPECT_GE(figures.change_ms.size(), 2U) << "one in each window at least";
    EXPECT_GE(figures.window_seconds, 0.1);
  }
  static inline std::unique_ptr<ChoiceBeds> beds_;
  static inline std::vector<std::string> paths_;
};

TEST_F(ChangesRunTest, OfAnAclWhoseRulesAreSwappedNothingIsLost) {
  expect_nothing_lost(change("acl + route", 5000));
}

TEST_F(ChangesRunTest, OfStreamsThatAreRekeyedNothingIsLost) {
  expect_nothing_lost(change("srtp", 500));
}

TEST_F(ChangesRunTest, CoresAloneAreChangedToo) {
  for (const char* const name : {"acl + route", "srtp", "ipsec out"}) {
    SCOPED_TRACE(name);
    ChangesPlan plan;
    plan.device = "cpu";
    plan.load = 0.2;
    plan.seconds = 0.15;
    plan.rounds = 1;
    plan.settling = plan.settling_saturated = 0.02;
    const auto figures = measure_changes(chain(name), plan);
    ASSERT_TRUE(figures) << figures.error().message;
    EXPECT_NEAR(figures->offered, 0.2 * static_cast<double>(figures->saturated.frames) / figures->saturated.seconds, 1);
    EXPECT_GT(figures->with.windows.sum(&Outcome::frames), 0U);
    EXPECT_EQ(figures->with.windows.sum(&Outcome::gpu_frames), 0U);
    EXPECT_EQ(figures->with.dropped(), 0U) << figures->with.dropped_text();
    EXPECT_FALSE(figures->change_ms.empty());
  }
}

TEST(ChoiceBeds, AWrongNameBesideARightOneIsNotLeftOut) {
  EXPECT_EQ(ChoiceBeds::names("srtp,acl + route"), (std::vector<std::string>{"acl + route", "srtp"}));
  EXPECT_EQ(ChoiceBeds::names("").size(), 7U);
  EXPECT_TRUE(ChoiceBeds::names("route,bogus").empty());
  EXPECT_TRUE(ChoiceBeds::names("bogus").empty());
}

TEST(ChangesWindows, AWindowHoldsAChangeWhole) {
  EXPECT_EQ(window_for(0.001, 0.6), 0.6);
  EXPECT_NEAR(window_for(2, 0.6), 3.05, 1e-9);
}

TEST(ChangesWindows, DropsAreCountedByTheirNamesAndOverdueApart) {
  ChangedWindows kind;
  EXPECT_EQ(kind.dropped(), 0U);
  EXPECT_EQ(kind.dropped_text(), "none");
  std::vector<std::uint64_t> before(packet::max_reasons), after = before;
  before[engine::overdue] = 3;
  after[engine::overdue] = 5;
  kind.count(before, after);
  EXPECT_EQ(kind.overdue, 2U);
  EXPECT_EQ(kind.dropped_text(), "none");
  before = after;
  after[engine::device_lost] = 7;
  kind.count(before, after);
  after[engine::device_lost] = 8;
  before[engine::device_lost] = 7;
  kind.count(before, after);
  EXPECT_EQ(kind.overdue, 2U);
  EXPECT_EQ(kind.dropped(), 8U);
  EXPECT_EQ(kind.dropped_text(), "8 device_lost");
}

std::string missed_by(const ChangesFigures& figures) {
  testing::internal::CaptureStdout();
  Goals goals("changes", true);
  judge_changes(goals, "x", figures);
  std::string missed;
  std::istringstream lines(testing::internal::GetCapturedStdout());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("GOAL MISSED")) missed += line + "\n";
  }
  return missed;
}

TEST(ChangesGoals, EachLossIsMissedByItsName) {
  ChangesFigures figures;
  figures.without.windows.of = figures.with.windows.of =
      std::vector<Outcome>(9, Outcome{.seconds = 1, .frames = 100, .p99_us = 50});
  figures.without.overdue = figures.with.overdue = 100;
  EXPECT_EQ(missed_by(figures), "") << "what is overdue is judged by its ranks";
  figures.with.drops = {0, 4};
  EXPECT_THAT(missed_by(figures), testing::HasSubstr("x: dropped with changes, but as overdue: 4 frames"));
  figures.with.drops.clear();
  figures.without.drops = {5};
  EXPECT_THAT(missed_by(figures), testing::HasSubstr("x: dropped without changes, but as overdue: 5 frames"));
  figures.without.drops.clear();
  figures.unaccounted = -2;
  EXPECT_THAT(missed_by(figures), testing::HasSubstr("x: unaccounted for: 2 frames"));
  figures.unaccounted = 0;
  for (Outcome& one : figures.with.windows.of) one.offered_missed = 1;
  EXPECT_THAT(missed_by(figures), testing::HasSubstr("x: frames lost, windows with changes ranked over the others"));
}

}  // namespace
}  // namespace sluice::cli::bench
