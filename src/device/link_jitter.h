// How steadily the link works when it is not full: batches of frames at a constant rate, each timed from when it was
// due until the GPU had done it. What the link itself adds must be distinguished from what the machine does to the
// thread that measures, so the thread watches itself. A gap between two looks at the clock, or a driver's call, of over
// 50 us is a hold-up, and a batch that was due during one, or shortly after, says nothing about the link.
//
//     auto jitter = measure_jitter(*gpu, {.way = LinkJitterOptions::both_ways, .gbytes = 38, .memory = ..., .bytes =
//     ...});
//
// A deadline can be held by nobody on this machine that is shorter than `longest_us`; `longest_link_us` is the link's
// part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "device/gpu.h"

namespace sluice::device {

struct LinkJitterOptions {
  enum Way { both_ways, up, reads };  // copy engine up and then down, copy engine up, a kernel's direct reads
  Way way = both_ways;
  double gbytes = 10;  // GB/s, each way
  double seconds = 2;
  // Registered with the GPU, 128-byte aligned; at least 1 MiB. What is in it stays.
  void* memory = nullptr;
  std::size_t bytes = 0;
  unsigned frames = 1024;  // of 1,408 bytes, every 2,048, in a batch; fewer when the memory is smaller
};

struct LinkJitter {
  double gbytes = 0;  // reached
  std::uint64_t batches = 0;
  double p50_us = 0, p999_us = 0, longest_us = 0;
  double longest_link_us = 0;  // of the batches that no hold-up delayed
  std::uint64_t holdups = 0;
  double longest_holdup_us = 0;
};

// Runs on all streams of the GPU, alone, on the calling thread, which does not sleep.
Expected<LinkJitter> measure_jitter(Gpu& gpu, const LinkJitterOptions& options);

// One line.
std::string jitter_text(const LinkJitterOptions& options, const LinkJitter& jitter);

}  // namespace sluice::device
