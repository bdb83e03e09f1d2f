#include "device/name.h"

#include <gtest/gtest.h>

namespace sluice::device {
namespace {

TEST(GpuName, IsReadAsItIsWritten) {
  EXPECT_EQ(gpu_name(3), "cuda:3");
  EXPECT_EQ(gpu_index("cuda:0"), 0);
  EXPECT_EQ(gpu_index(gpu_name(15)), 15);
  for (const char* bad : {"", "cpu", "auto", "cuda", "cuda:", "cuda:-1", "cuda:1x", "cuda: 1", "CUDA:1", "xcuda:1"}) {
    EXPECT_FALSE(gpu_index(bad)) << bad;
  }
}

}  // namespace
}  // namespace sluice::device
