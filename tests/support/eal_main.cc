// main() of every unit-test program: one EAL without hugepages, PCI or root, then GoogleTest. In a bundle
// SLUICE_PMD_DIR says where DPDK's drivers are.
#include <gtest/gtest.h>
#include <rte_eal.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

// Unit tests take the SIMT shim for a GPU (device/simt/runtime.cc).
extern "C" {
extern const bool sluice_simt_is_a_device;
const bool sluice_simt_is_a_device = true;
}

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) {
    return RUN_ALL_TESTS();
  }
  std::vector<const char*> eal = {"sluice-test",    "--no-huge",      "-m",          "1024",        "--no-pci",
                                  "--iova-mode=va", "--no-telemetry", "--no-shconf", "--log-level", "error"};
  if (const char* folder = std::getenv("SLUICE_PMD_DIR")) {
    eal.insert(eal.end(), {"-d", folder});
  }
  if (rte_eal_init(static_cast<int>(eal.size()), const_cast<char**>(eal.data())) < 0) {
    std::fprintf(stderr, "eal_main: DPDK's EAL did not start\n");
    return 2;
  }
  const int result = RUN_ALL_TESTS();
  rte_eal_cleanup();
  return result;
}
