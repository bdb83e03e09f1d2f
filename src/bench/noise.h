// How long this machine keeps a busy thread from running: a floor under every deadline that software on it can promise.
// A hypervisor that takes a core away for a millisecond makes a millisecond's deadline miss, whatever the gateway does.
#pragma once

#include <cstdint>

namespace sluice::cli::bench {

struct Noise {
  double worst_us = 0;            // longest gap between two readings of the clock on one core
  std::uint64_t over_100_us = 0;  // gaps longer than that, all cores together
  double stall_share = 0;         // of the cores' time, gaps over 10 us together
  // Who took the cores. Gaps that neither explains were interrupts, or a hypervisor that does not report steal.
  std::uint64_t preemptions = 0;  // by this machine's own kernel, for another thread
  double stolen_ms = 0;           // that the hypervisor says it took, all cores of the machine together
};

// Keeps `cores` cores (from the highest down, as lanes are placed) busy for that long.
Noise measure_noise(unsigned cores, double seconds);

}  // namespace sluice::cli::bench
