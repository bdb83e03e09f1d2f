// DPDK's own forwarder as the yardstick: dpdk-testpmd in MAC mode between two net_null ports on one core, in a process
// of its own, in the same run as the bench.
#pragma once

#include <string>

namespace sluice::cli::bench {

struct Testpmd {
  double mpps = 0;  // frames forwarded per second by the one core, both ports together
  bool hugepages = false;
  std::string why;  // when mpps is 0
};

// Looks for dpdk-testpmd beside this program and in PATH.
Testpmd run_testpmd_mac(double seconds);

}  // namespace sluice::cli::bench
