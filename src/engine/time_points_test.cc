#include "engine/time_points.h"

#include <gtest/gtest.h>

#include <map>

namespace sluice::engine {
namespace {

constexpr std::uint64_t begin = 5'000, cycle = 100;

// What is raised at that time, by lane.
std::map<std::size_t, std::uint64_t> passed(TimePoints& points, std::uint64_t now) {
  std::map<std::size_t, std::uint64_t> of;
  points.pass(now, [&](std::size_t lane, std::uint64_t count) { of[lane] = count; });
  return of;
}
using Raised = std::map<std::size_t, std::uint64_t>;

TEST(TimePoints, AreOfAllLanesAtOnce) {
  TimePoints points(begin, cycle, 3, false);
  EXPECT_EQ(points.next(), begin + cycle);
  EXPECT_EQ(passed(points, begin + cycle - 1), (Raised{}));
  EXPECT_EQ(passed(points, begin + cycle), (Raised{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(passed(points, begin + cycle), (Raised{}));
  EXPECT_EQ(points.next(), begin + 2 * cycle);
}

TEST(TimePoints, StaggeredAreOfOneLaneAfterTheOther) {
  TimePoints points(begin, cycle, 3, true);
  for (std::uint64_t k = 1; k <= 4; ++k) {
    for (std::size_t lane = 0; lane < 3; ++lane) {
      const std::uint64_t point = begin + k * cycle + lane * cycle / 3;
      EXPECT_EQ(points.next(), point);
      EXPECT_EQ(passed(points, point), (Raised{{lane, 1}}));
    }
  }
}

// Whoever comes late notifies each lane of as many as it has missed, and the next are on the grid again.
TEST(TimePoints, AfterAStallAreOnTheSameGrid) {
  TimePoints points(begin, cycle, 2, true);
  EXPECT_EQ(passed(points, begin + 4 * cycle + 30), (Raised{{0, 4}, {1, 3}}));
  EXPECT_EQ(points.next(), begin + 4 * cycle + 50);
  EXPECT_EQ(passed(points, begin + 4 * cycle + 50), (Raised{{1, 1}}));
  EXPECT_EQ(points.next(), begin + 5 * cycle);
}

}  // namespace
}  // namespace sluice::engine
