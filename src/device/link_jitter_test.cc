// The jitter probe keeps the rate, leaves the frames as they were, and says what it cannot do.
#include "device/link_jitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "../tests/support/gpu.h"

namespace sluice::device {
namespace {

class LinkJitterTest : public testing::TestWithParam<LinkJitterOptions::Way> {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    auto gpu = Gpu::open(0, 2);
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_ = std::move(*gpu);
  }
  std::unique_ptr<Gpu> gpu_;
};

TEST_P(LinkJitterTest, TimesEveryBatchAndChangesNothing) {
  constexpr std::size_t bytes = 1 << 20;
  auto memory = gpu_->allocate_host(bytes);
  ASSERT_TRUE(memory);
  auto* const words = static_cast<std::uint32_t*>(*memory);
  std::iota(words, words + bytes / 4, 0x12345678u);
  const std::vector<std::uint32_t> before(words, words + bytes / 4);
  const LinkJitterOptions options{
      .way = GetParam(), .gbytes = 0.01, .seconds = 0.2, .memory = *memory, .bytes = bytes, .frames = 16};
  const auto jitter = measure_jitter(*gpu_, options);
  ASSERT_TRUE(jitter) << jitter.error().message;
  // 10 MB/s in batches of 22.5 KB for 0.2 s; fewer on a machine that is too busy to keep up.
  EXPECT_LE(jitter->batches, 89u);
  EXPECT_GE(jitter->batches, 1u);
  EXPECT_GT(jitter->p50_us, 0);
  EXPECT_LE(jitter->p50_us, jitter->p999_us);
  EXPECT_LE(jitter->p999_us, jitter->longest_us);
  EXPECT_LE(jitter->longest_link_us, jitter->longest_us);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), words)) << "frames came back changed";
  EXPECT_THAT(jitter_text(options, *jitter), testing::HasSubstr("hold-up"));
}

TEST_P(LinkJitterTest, RefusesWhatItCannotMeasure) {
  EXPECT_FALSE(measure_jitter(*gpu_, {.way = GetParam(), .gbytes = 1, .seconds = 0.1}));
}

INSTANTIATE_TEST_SUITE_P(ways, LinkJitterTest,
                         testing::Values(LinkJitterOptions::both_ways, LinkJitterOptions::up,
                                         LinkJitterOptions::reads));

}  // namespace
}  // namespace sluice::device
