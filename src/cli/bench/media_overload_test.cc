#include "cli/bench/media_overload.h"

#include <gtest/gtest.h>

#include <chrono>

namespace sluice::cli::bench {
namespace {

using std::chrono::microseconds;

const engine::StreamDemand demand{1370, microseconds(1000), 10'000'000};

TEST(MediaOverload, as_many_streams_are_admitted_as_fit) {
  engine::StreamAdmission admission({605'000'000, microseconds(900), 1370});
  EXPECT_EQ(admitted_of(admission, 100, demand), 60U);
  EXPECT_EQ(admission.state().refused, 40U);
  EXPECT_EQ(admission.state().rate, 600'000'000U);
}

TEST(MediaOverload, none_is_admitted_whose_deadline_is_not_above_the_bound) {
  engine::StreamAdmission admission({605'000'000, microseconds(1000), 1370});
  EXPECT_EQ(admitted_of(admission, 100, demand), 0U);
}

}  // namespace
}  // namespace sluice::cli::bench
