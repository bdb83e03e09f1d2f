// For micro-benches: one EAL for the whole program, with the vector width that the gateway's has (port/eal.cc).
#pragma once

#include <rte_eal.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace sluice::lookup {

// The first call starts it; the program ends where it does not start.
inline void start_bench_eal() {
  static const bool started = [] {
    std::vector<const char*> eal = {
        "bench",          "--no-huge",   "-m",          "2048",  "--no-pci",
        "--no-telemetry", "--no-shconf", "--log-level", "error", "--force-max-simd-bitwidth=512"};
    if (const char* folder = std::getenv("SLUICE_PMD_DIR")) {
      eal.insert(eal.end(), {"-d", folder});
    }
    return rte_eal_init(static_cast<int>(eal.size()), const_cast<char**>(eal.data())) >= 0;
  }();
  if (!started) {
    std::fprintf(stderr, "lookup_bench: DPDK's EAL did not start\n");
    std::exit(1);
  }
}

}  // namespace sluice::lookup
