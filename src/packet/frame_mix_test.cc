#include "packet/frame_mix.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace sluice::packet {
namespace {

constexpr int samples = 400000;

std::vector<std::uint32_t> draw(const char* name, std::uint64_t seed, int count) {
  FrameMix mix = FrameMix::make(name, seed).value();
  std::vector<std::uint32_t> sizes(static_cast<std::size_t>(count));
  for (auto& size : sizes) {
    size = mix.next();
  }
  return sizes;
}

TEST(FrameMix, MeansAndLargest) {
  const struct {
    const char* name;
    double mean;
    std::uint32_t largest;
  } cases[] = {
      {"64", 64, 64},
      {"1408", 1408, 1408},
      {"1500", 1500, 1500},
      {"heavy-tail", 606, 1459},
      {"imix", 0.6122 * 64 + 0.2347 * 536 + 0.1531 * 1360, 1360},
      {"rtp", (242 + 1370) / 2.0, 1370},
      {"uniform", (64 + 1518) / 2.0, 1518},
  };
  for (const auto& c : cases) {
    const FrameMix mix = FrameMix::make(c.name).value();
    EXPECT_NEAR(mix.mean(), c.mean, 0.05) << c.name;
    EXPECT_EQ(mix.largest(), c.largest) << c.name;
    EXPECT_EQ(mix.name(), c.name);
    double sum = 0;
    for (const std::uint32_t size : draw(c.name, 3, samples)) {
      EXPECT_GE(size, FrameMix::smallest_frame);
      EXPECT_LE(size, c.largest);
      sum += size;
    }
    // The standard deviation of a size is at most 600: that of the sample's mean 1.
    EXPECT_NEAR(sum / samples, c.mean, 5) << c.name;
  }
}

TEST(FrameMix, HeavyTailHasItsThreeParts) {
  double small = 0, middle = 0, large = 0;
  for (const std::uint32_t size : draw("heavy-tail", 4, samples)) {
    ++(size < 80 ? small : size < 1000 ? middle : large);
    ASSERT_TRUE(size < 80 || size >= 100) << size;
  }
  EXPECT_NEAR(small / samples, 0.40, 0.01);
  EXPECT_NEAR(middle / samples, 0.23, 0.01);
  EXPECT_NEAR(large / samples, 0.37, 0.01);
}

TEST(FrameMix, DiscreteMixesHaveTheirSharesAndNoOtherSizes) {
  const std::map<std::uint32_t, double> imix = {{64, 0.6122}, {536, 0.2347}, {1360, 0.1531}};
  const std::map<std::uint32_t, double> rtp = {{242, 1 / 7.}, {430, 1 / 7.},  {618, 1 / 7.}, {806, 1 / 7.},
                                               {994, 1 / 7.}, {1182, 1 / 7.}, {1370, 1 / 7.}};
  for (const auto& [name, shares] : {std::pair{"imix", imix}, std::pair{"rtp", rtp}}) {
    std::map<std::uint32_t, double> seen;
    for (const std::uint32_t size : draw(name, 5, samples)) {
      seen[size] += 1.0 / samples;
    }
    EXPECT_EQ(seen.size(), shares.size()) << name;
    for (const auto& [size, share] : shares) {
      EXPECT_NEAR(seen[size], share, 0.005) << name << " " << size;
    }
  }
}

TEST(FrameMix, TheSeedDecides) {
  EXPECT_EQ(draw("heavy-tail", 1, 1000), draw("heavy-tail", 1, 1000));
  EXPECT_NE(draw("heavy-tail", 1, 1000), draw("heavy-tail", 2, 1000));
}

TEST(FrameMix, RefusesWhatItDoesNotKnow) {
  for (const char* name : {"", "63", "9217", "64 ", "-64", "0x40", "IMIX", "heavy", "99999999999"}) {
    const auto mix = FrameMix::make(name);
    ASSERT_FALSE(mix) << name;
    EXPECT_EQ(mix.error().message,
              "'" + std::string(name) +
                  "' is not a frame mix: it must be heavy-tail, imix, rtp, uniform or a size from 64 to 9216");
  }
}

}  // namespace
}  // namespace sluice::packet
