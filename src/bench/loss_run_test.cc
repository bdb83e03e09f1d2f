// The run of `bench loss` with the SIMT shim's faults in place of a GPU's. What a process does not survive has one of
// its own.
#include "bench/loss_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "../tests/support/own_process.h"

namespace sluice::cli::bench {
namespace {

constexpr const char* child_of = "SLUICE_BENCH_LOSS_CHILD";

class LossRunTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string path = testing::TempDir() + "sluice_loss_" + std::to_string(getpid());
    std::ofstream(path) << "10.0.0.0/8\n20.0.0.0/6\n100.64.0.0/10\n";
    BenchOptions options;
    options.only = "route,srtp";
    options.table = path;
    options.lanes = 1;
    options.batch = 256;
    options.batches = 4;
    options.frames = 4096;
    options.rtp_streams = 20;
    options.deadline_ms = 100;
    auto beds = ChoiceBeds::make(options, 1);
    unlink(path.c_str());
    ASSERT_TRUE(beds) << beds.error().message;
    beds_ = std::move(*beds);
  }
  static void TearDownTestSuite() { beds_.reset(); }

  static ChoiceChain chain(const std::string& name) {
    for (ChoiceChain& one : beds_->chains()) {
      if (one.name == name) return one;
    }
    ADD_FAILURE() << "no chain " << name;
    return {};
  }
  // `offered`: as LossPlan's, where the shim takes tenths of a second for a batch, and all frames are let in.
  static LossFigures lose(const std::string& name, Failure failure, double offered = 0) {
    LossPlan plan;
    plan.offered = offered;
    if (offered > 0) plan.admission = engine::Admit::all;
    plan.failure = failure;
    plan.seconds = 0.3;
    const auto figures = measure_loss(chain(name), plan);
    EXPECT_TRUE(figures) << (figures ? "" : figures.error().message);
    return figures.value_or(LossFigures());
  }
  // Of every way.
  static void expect_nothing_lost(const LossFigures& figures) {
    EXPECT_GT(figures.after.cpu_frames, 0U);
    EXPECT_EQ(figures.after.gpu_frames, 0U);
    EXPECT_EQ(figures.others, 0U) << figures.others_text;
    EXPECT_EQ(figures.out_of_order, 0U);
    EXPECT_EQ(figures.unaccounted, 0);
    EXPECT_EQ(figures.received, figures.forwarded + figures.refused + figures.device_lost);
    EXPECT_EQ(figures.regained.standing_still, 0U);
    EXPECT_GT(figures.regained.rate, 0);
    EXPECT_FALSE(figures.why.empty());
  }
  static void expect_back(const LossFigures& figures) {
    EXPECT_TRUE(figures.is_back) << figures.why_not_back;
    EXPECT_GT(figures.back.gpu_frames, 0U);
    EXPECT_EQ(figures.back.dropped, figures.back.refused);
  }
  static inline std::unique_ptr<ChoiceBeds> beds_;
};

TEST_F(LossRunTest, OfARouterNothingIsLost) {
  const LossFigures figures = lose("route", Failure::lose);
  expect_nothing_lost(figures);
  expect_back(figures);
  EXPECT_FALSE(figures.changes_frames);
  EXPECT_EQ(figures.device_lost, 0U);
  EXPECT_EQ(figures.aside, 0U);
  EXPECT_NEAR(figures.offered, 0.7 * static_cast<double>(figures.saturated.frames) / figures.saturated.seconds, 1);
}

TEST_F(LossRunTest, OfSrtpOnlyWhatTheGpuMayHaveChanged) {
  const LossFigures figures = lose("srtp", Failure::lose, 2000);
  expect_nothing_lost(figures);
  expect_back(figures);
  EXPECT_TRUE(figures.changes_frames);
  EXPECT_LE(figures.device_lost, 4U * 256) << "what batches hold";
}

TEST_F(LossRunTest, CoresAloneAreMeasuredBesideIt) {
  const auto cores = measure_saturated(chain("route"), "cpu", 0.1, 0.05);
  ASSERT_TRUE(cores) << cores.error().message;
  EXPECT_GT(cores->cpu_frames, 0U);
  EXPECT_EQ(cores->gpu_frames, 0U);
  const auto nowhere = measure_loss(chain("route"), {.device = "cpu"});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().message, "there is no GPU to lose");
}

class LossChild : public LossRunTest {
 protected:
  void SetUp() override {
    if (std::getenv(child_of) == nullptr) GTEST_SKIP() << "LossWithTheGpu runs it in a process of its own";
  }
  [[noreturn]] static void end() {
    std::fflush(stdout);
    std::_Exit(HasFailure() ? 1 : 0);
  }
};

TEST_F(LossChild, FaultOfRoute) {
  const LossFigures figures = lose("route", Failure::fault);
  expect_nothing_lost(figures);
  expect_back(figures);
  EXPECT_EQ(figures.device_lost, 0U);
  end();
}
TEST_F(LossChild, EndlessOfRoute) {
  const LossFigures figures = lose("route", Failure::endless);
  expect_nothing_lost(figures);
  EXPECT_EQ(figures.device_lost, 0U);
  EXPECT_GT(figures.rescued, 0U);
  EXPECT_GE(figures.longest_wait_ms, 90) << "the limit of silence is 100 ms at least";
  EXPECT_GE(figures.noticed_ms, 90);
  EXPECT_FALSE(figures.is_back);
  end();
}
TEST_F(LossChild, EndlessOfSrtp) {
  const LossFigures figures = lose("srtp", Failure::endless, 2000);
  expect_nothing_lost(figures);
  EXPECT_EQ(figures.aside, figures.device_lost) << "their buffers are not used again";
  EXPECT_LE(figures.device_lost, 4U * 256) << "what batches hold";
  end();
}

class LossWithTheGpu : public testing::TestWithParam<const char*> {};

TEST_P(LossWithTheGpu, CostsWhatItMust) {
  test::expect_passes_in_own_process("LossChild." + std::string(GetParam()), child_of);
}
INSTANTIATE_TEST_SUITE_P(Ways, LossWithTheGpu, testing::Values("FaultOfRoute", "EndlessOfRoute", "EndlessOfSrtp"),
                         [](const auto& info) { return std::string(info.param); });

std::string missed_by(const LossFigures& figures) {
  testing::internal::CaptureStdout();
  Goals goals("loss", true);
  judge_loss(goals, "x", figures);
  std::string missed;
  std::istringstream lines(testing::internal::GetCapturedStdout());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("GOAL MISSED")) missed += line + "\n";
  }
  return missed;
}

TEST(LossGoals, EachLossIsMissedByItsName) {
  LossFigures figures;
  figures.refused = figures.missed = 1000;
  EXPECT_EQ(missed_by(figures), "") << "admission falls to what is left";
  figures.device_lost = 5;
  EXPECT_THAT(missed_by(figures), testing::HasSubstr("x: lost that can be computed again: 5 frames"));
  figures.changes_frames = true;
  EXPECT_EQ(missed_by(figures), "");
  figures.others = 1;
  EXPECT_THAT(missed_by(figures), testing::HasSubstr("x: dropped, but for overdue and device_lost: 1 frames"));
  figures.others = 0;
  figures.out_of_order = 2;
  EXPECT_THAT(missed_by(figures), testing::HasSubstr("x: out of order: 2 frames"));
  figures.out_of_order = 0;
  figures.unaccounted = -3;
  EXPECT_THAT(missed_by(figures), testing::HasSubstr("x: unaccounted for: 3 frames"));
  figures.unaccounted = 0;
  figures.regained.standing_still = 1;
  EXPECT_THAT(missed_by(figures), testing::HasSubstr("x: standing still afterwards: 1 lanes"));
  figures = {};
  figures.is_back = true;
  figures.before = figures.back = {.seconds = 1, .frames = 100, .gpu_frames = 100};
  EXPECT_EQ(missed_by(figures), "");
  figures.back.gpu_frames = 50;
  figures.back.cpu_frames = 50;
  EXPECT_THAT(missed_by(figures), testing::HasSubstr("x: of the frames behind the reset, computed by the GPU: 50 %"));
  figures.back.frames = 50;
  EXPECT_THAT(missed_by(figures), testing::HasSubstr("x: carried behind the reset, of before: 50 %"));
}

}  // namespace
}  // namespace sluice::cli::bench
