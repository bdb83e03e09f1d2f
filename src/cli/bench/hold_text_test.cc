#include "cli/bench/hold_text.h"

#include <gtest/gtest.h>

namespace sluice::cli::bench {
namespace {

Outcome window(std::uint64_t late, std::uint64_t lost, std::uint64_t refused, double away_us, double device_us) {
  Outcome one;
  one.seconds = 0.1;
  one.frames = 1000;
  one.deadline_misses = late;
  one.offered_missed = lost;
  one.refused = refused;
  one.away_us = away_us;
  one.device_p50_us = device_us;
  return one;
}

TEST(HoldText, TroubledOnesAreToldFromCleanOnesByWhatHappenedInThem) {
  EXPECT_EQ(
      hold_text({window(0, 0, 0, 10, 100), window(0, 0, 0, 30, 200), window(5, 1, 0, 400, 300),
                 window(0, 0, 3, 200, 500), window(0, 3, 0, 0, 700)}),
      "2 of 5 windows of 0.1 s clean; in these threads were away for 20 us and a batch took 150 us on the device; "
      "in the others threads were away for 200 us and a batch took 500 us on the device; "
      "half of all frames late or not let in are those of 1 windows");
}

TEST(HoldText, OfOneKindNothingIsSaidOfTheOther) {
  EXPECT_EQ(
      hold_text({window(0, 0, 0, 10, 100)}),
      "1 of 1 windows of 0.1 s clean; in these threads were away for 10 us and a batch took 100 us on the device");
  EXPECT_EQ(hold_text({window(1, 0, 0, 10, 100), window(0, 2, 0, 20, 300), window(0, 0, 2, 30, 200)}),
            "0 of 3 windows of 0.1 s clean; in the others threads were away for 20 us and a batch took 200 us on the "
            "device; half of all frames late or not let in are those of 2 windows");
}

}  // namespace
}  // namespace sluice::cli::bench
