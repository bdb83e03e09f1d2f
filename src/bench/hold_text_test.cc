#include "bench/hold_text.h"

#include <gtest/gtest.h>

namespace sluice::cli::bench {
namespace {

Outcome window(std::uint64_t late, std::uint64_t lost, std::uint64_t refused, double stall_us, double device_us,
               double core_us = 0, unsigned lanes_late = 0) {
  Outcome one;
  one.seconds = 0.1;
  one.frames = 1000;
  one.deadline_misses = late;
  one.offered_missed = lost;
  one.refused = refused;
  one.stall_us = stall_us;
  one.device_p50_us = device_us;
  one.collecting_us = core_us / 4;
  one.forwarding_us = core_us - one.collecting_us;
  one.lanes_late = lanes_late;
  return one;
}

TEST(HoldText, TroubledOnesAreDistinguishedFromCleanOnesByWhatHappenedInThem) {
  EXPECT_EQ(
      hold_text({window(0, 0, 0, 10, 100, 200), window(0, 0, 0, 30, 200, 300), window(5, 1, 0, 400, 300, 800, 3),
                 window(0, 0, 3, 200, 500, 400), window(0, 3, 0, 0, 700, 300)}),
      "2 of 5 windows of 0.1 s clean; in these threads were stalled for 20 us, a frame took 250 ns of a lane's core, "
      "and "
      "a "
      "batch 150 us on the device; in the others threads were stalled for 200 us, a frame took 500 ns of a lane's "
      "core, "
      "and a batch 500 us on the device, and 1.0 lanes were late; half of all frames late or not let in are those of 1 "
      "windows");
}

TEST(HoldText, OfOneKindNothingIsSaidOfTheOther) {
  EXPECT_EQ(hold_text({window(0, 0, 0, 10, 100)}),
            "1 of 1 windows of 0.1 s clean; in these threads were stalled for 10 us, a frame took 0 ns of a lane's "
            "core, and a "
            "batch 100 us on the device");
  EXPECT_EQ(
      hold_text({window(1, 0, 0, 10, 100), window(0, 2, 0, 20, 300), window(0, 0, 2, 30, 200)}),
      "0 of 3 windows of 0.1 s clean; in the others threads were stalled for 20 us, a frame took 0 ns of a lane's "
      "core, and a batch 200 us on the device, and 0.0 lanes were late; half of all frames late or not let in "
      "are those of 2 windows");
}

}  // namespace
}  // namespace sluice::cli::bench
