#include "bench/media_report.h"

#include <gtest/gtest.h>

namespace sluice::cli::bench {
namespace {

TEST(MediaReport, SaysTheBoundBesideWhatWasMeasured) {
  engine::Options options;
  options.device = "cuda:0";
  options.deadline = std::chrono::milliseconds(5);
  options.cycle = std::chrono::microseconds(400);
  options.overlap = 4;
  Outcome outcome;
  outcome.max_us = 2123.4;
  outcome.device_max_us = 1700;
  outcome.overruns = 3;
  // (2 + 4) cycles and the usual time to collect.
  EXPECT_EQ(bound_text(options, outcome),
            "bound 2410 us; slowest frame 2123; a batch has 1600 us on the device; the slowest took 1700; 3 overran");
  options.cycle = std::chrono::milliseconds(2);
  EXPECT_EQ(bound_text(options, outcome), "") << "longer than its deadline: the engine refuses it";
  options.device = "cpu";
  options.cycle = std::chrono::microseconds(400);
  EXPECT_EQ(bound_text(options, outcome), "");
}

}  // namespace
}  // namespace sluice::cli::bench
