// The probe measures and checks everything it says: on the shim with little memory, and on a real GPU.
#include "device/link_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "../tests/support/gpu.h"

namespace sluice::device {
namespace {

class LinkProbe : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    auto gpu = Gpu::open(0, 1);
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_ = std::move(*gpu);
  }
  std::unique_ptr<Gpu> gpu_;
};

TEST_F(LinkProbe, MeasuresEverything) {
  const auto ceilings = probe_link(*gpu_, {.bytes = 1 << 20, .seconds_each = 0.001});
  ASSERT_TRUE(ceilings) << ceilings.error().message;
  EXPECT_GT(ceilings->large.up, 0);
  EXPECT_GT(ceilings->large.down, 0);
  EXPECT_GT(ceilings->large.both, 0);
  EXPECT_EQ(ceilings->chunks.size(), 5u);
  ASSERT_EQ(ceilings->rows.size(), 9u);
  EXPECT_GT(ceilings->rows[0].rate.both, 0);
  ASSERT_EQ(ceilings->reads.size(), 5u);
  EXPECT_GT(ceilings->reads[0].shuffled, 0);
  EXPECT_EQ(ceilings->writes.size(), 5u);
  EXPECT_GE(ceilings->launch_p99_us, ceilings->launch_median_us);
  EXPECT_GE(ceilings->host_copies.size(), 1u);
  const std::string table = link_table(gpu_->info(), *ceilings);
  EXPECT_THAT(table, testing::AllOf(testing::HasSubstr(gpu_->info().name), testing::HasSubstr("chunks of  256 KiB"),
                                    testing::HasSubstr("frames of  1408 B")));
}

TEST_F(LinkProbe, QuickMeasuresTheEssentialsInTheCallersMemory) {
  auto memory = gpu_->allocate_host(1 << 20);
  ASSERT_TRUE(memory);
  const auto ceilings = probe_link(*gpu_, {.quick = true, .memory = *memory, .bytes = 1 << 20, .seconds_each = 0.001});
  ASSERT_TRUE(ceilings) << ceilings.error().message;
  EXPECT_GT(ceilings->large.both, 0);
  ASSERT_EQ(ceilings->reads.size(), 2u);
  EXPECT_EQ(ceilings->reads[1].bytes, 1408u);
  EXPECT_GT(ceilings->reads[1].in_order, 0);
  EXPECT_EQ(ceilings->reads[1].shuffled, 0) << "not measured";
  EXPECT_TRUE(ceilings->chunks.empty());
}

TEST_F(LinkProbe, TooLittleMemoryIsAnError) {
  const auto ceilings = probe_link(*gpu_, {.bytes = 4096});
  ASSERT_FALSE(ceilings);
  EXPECT_THAT(ceilings.error().message, testing::HasSubstr("1 MiB"));
}

}  // namespace
}  // namespace sluice::device
