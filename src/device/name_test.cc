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

TEST(GpuName, SeveralAreNamedOnceEach) {
  EXPECT_EQ(gpu_indices("cuda:0"), std::vector({0}));
  EXPECT_EQ(gpu_indices("cuda:1,cuda:0"), (std::vector{1, 0})) << "in their order";
  EXPECT_EQ(gpu_indices("cuda:0,cuda:1,cuda:12"), (std::vector{0, 1, 12}));
  for (const char* name :
       {"", ",", "cpu", "auto", "cuda", "cuda:", "cuda:-1", "cuda:0,", ",cuda:0", "cuda:0,,cuda:1", "cuda:0,cuda:0",
        "cuda:0,cpu", "cuda:0, cuda:1", "cuda:0,1", "cuda:0;cuda:1", "cuda:0,cuda:1,cuda:00"}) {
    EXPECT_FALSE(gpu_indices(name)) << name;
  }
}

}  // namespace
}  // namespace sluice::device
