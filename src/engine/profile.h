// What `sluice calibrate` has measured of a machine, a device and a chain (section 7.3 of Zhang, Hu and Hua), as a
// file: TOML, with a version, written once and read by the gateway ([profile] in its configuration; docs/real-time.md).
//
// Rates are bits of whole frames per second as they come in, of all lanes and ports together. T_S is the time from
// sealing a batch to handing it back; on a CPU core, where there is no cycle, that of an inline batch: from the first
// frame's collecting until the last one's forwarding.
//
// Thread-safety: none. Cost: control path.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/options.h"

namespace sluice::engine {

// A configuration at a rate.
struct ProfileCell {
  std::chrono::nanoseconds cycle{0};                             // I; 0: there is none
  unsigned streams = 0;                                          // CUDA streams; 0: there are none
  unsigned packet = 0;                                           // bytes of each frame
  std::uint64_t offered = 0, carried = 0;                        // offered 0: as much as the lanes take
  std::uint64_t batches = 0, batch_bytes = 0;                    // batch_bytes: of the median one
  std::chrono::nanoseconds p50{0}, p99{0}, p999{0}, longest{0};  // of T_S
  // Of all but one in a thousand, on the thread of the most lanes: what collecting a burst of each takes, and
  // forwarding a batch of each. 0: not measured.
  std::chrono::nanoseconds round{0}, forwarding{0};
  std::uint64_t overruns = 0, late = 0, lost = 0;  // T_S above overlap·I; frames late by the engine's doing; not taken
  // It carried what was offered, nothing was lost or late, no T_S above overlap·I, and forwarding was in time
  // (bound.h).
  bool schedulable = false;
};

// B_I.
struct ProfileCapacity {
  std::chrono::nanoseconds cycle{0};
  unsigned streams = 0;              // with which it was reached
  std::uint64_t rate = 0;            // 0: no rate that was tried was schedulable, or none held
  std::chrono::nanoseconds held{0};  // how long it was schedulable, or none was, in one measurement; 0: not said
};

// What a profile is of. Metrics of one say nothing about another.
struct ProfileSubject {
  std::string machine;  // "AMD EPYC 9555, 16 cores"
  std::string device;   // the GPU's name; "cpu"
  std::vector<std::string> chain;
  std::string suite;  // of its streams, in alphabetical order with commas between; empty: none
  unsigned lanes = 0;
  unsigned overlap = 0;  // 0: no cycle
  bool stagger = false;
};

struct Profile {
  static constexpr std::int64_t version = 1;

  ProfileSubject subject;
  std::vector<std::string> media;  // what traffic was of, in alphabetical order: "protect IPv4"; empty: not said
  std::string date;                // "2026-11-22T23:20:00Z"
  std::string code;                // Sluice's version
  unsigned packet = 0;             // omega: of the capacities
  double slope = 0;                // ns per byte of a batch
  double intercept = 0;            // ns per batch
  std::vector<ProfileCapacity> capacities;
  std::vector<ProfileCell> cells;

  // An Error with the place of the first mistake: no such file, another version, not a profile.
  static Expected<Profile> from_file(const std::string& path);
  static Expected<Profile> from_text(const std::string& text, const std::string& name);
  std::string text() const;
  // A row for each cell, below a header.
  std::string csv() const;

  // B_I for a running cycle: that of the longest one that was measured and is not longer, since a longer cycle carries
  // more. Null: none is that short.
  const ProfileCapacity* capacity(std::chrono::nanoseconds cycle) const;
  // φ at B_I: of the cell that comes nearest to it from below; 0: not measured.
  std::chrono::nanoseconds forwarding(const ProfileCapacity& capacity) const;
  // µ, by the longest round of all cells; 0: the profile does not say, as those of before it was measured.
  std::chrono::nanoseconds collect() const;
  // Of a CPU core: an inline batch's time with the largest packets, of all but one in a thousand; the longest of the
  // cells that are schedulable at B or below, for nothing is promised beyond it. 0: the profile is of a GPU, or none
  // is.
  std::chrono::nanoseconds inline_batch() const;
  // What is not as it was measured, a phrase each ("the device is X, and it was measured on Y").
  std::vector<std::string> differences(const ProfileSubject& now) const;
};

// Least squares of y = intercept + slope·x. Fewer than two x that differ: the mean and no slope.
struct Line {
  double slope = 0, intercept = 0;
};
Line fit_line(const std::vector<std::pair<double, double>>& points);

}  // namespace sluice::engine
