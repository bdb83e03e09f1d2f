// The ceilings of this machine's link between host memory and a GPU: what every bench relates its figures to, measured
// in the same run (`sluice bench link`).
//
//     auto ceilings = probe_link(*gpu, {.quick = true});
//     std::cout << link_table(gpu->info(), *ceilings);
//
// Each rate moves known data and checks it afterwards; a mismatch is an Error, never a figure. Rates are in GB/s (10^9
// bytes per second), payload only. Runs alone on the GPU, on streams of its own.
//
// Takes about 6 s (quick: about 1 s) on an H200 with 16 cores. Memory: `bytes` of pinned host memory and as much on the
// device.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/gpu.h"

namespace sluice::device {

struct LinkProbeOptions {
  bool quick = false;  // only up, down, both, direct reads of 608 and 1,408 B in order, launch latency
  // Host memory to use, registered with the GPU (hugepages of the caller, say), 64-byte aligned; null: pinned by the
  // probe.
  void* memory = nullptr;
  std::size_t bytes = 256u << 20;  // at least 1 MiB
  double seconds_each = 0.1;       // of each rate, at least three passes over the memory
};

struct BothWays {
  double up = 0, down = 0, both = 0;  // both: each way, while both run
};

struct LinkCeilings {
  BothWays large;  // copy engine, large chunks
  struct Chunk {
    std::size_t bytes;
    double both;
  };
  std::vector<Chunk> chunks;  // copy engine, both ways at once, one copy after another of this size
  struct Rows {
    unsigned bytes;
    unsigned count;  // rows in a copy
    BothWays rate;
  };
  std::vector<Rows> rows;  // copy engine, 2-D: rows of this size every 2,048 bytes
  struct Reads {
    unsigned bytes;
    double in_order, runs_of_32, shuffled;  // 0: not measured
  };
  std::vector<Reads> reads;  // a kernel reads frames in host memory, every 2,048 bytes
  struct Writes {
    unsigned bytes;
    double in_order;
  };
  std::vector<Writes> writes;                      // a kernel writes them
  double launch_median_us = 0, launch_p99_us = 0;  // empty kernel, launch and synchronise
  double flag_median_us = 0, flag_p99_us = 0;  // running kernel, flag in host memory, there and back; 0: not measured
  struct HostCopy {
    unsigned threads;
    double rate;  // bytes copied, not read plus written
  };
  std::vector<HostCopy> host_copies;
};

Expected<LinkCeilings> probe_link(Gpu& gpu, const LinkProbeOptions& options = {});

// A table for people, a line each, with the unit.
std::string link_table(const GpuInfo& gpu, const LinkCeilings& ceilings);

}  // namespace sluice::device
