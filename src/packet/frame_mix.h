// Mixes of frame sizes for benches: the same sizes from the same seed on every machine.
//
//   name          sizes, in bytes of the Ethernet frame without FCS
//   "N"           always N ("64", "1408", "1500": any number from 64 to 9216)
//   "heavy-tail"  40 % of 40-79, 23 % of 100-999, 37 % of 1,000-1,459, uniform within each: mean 606, the mean of
//                 the CAIDA trace of the Blink paper (JPDC 2019); its shares are 42, 23 and 35 %, moved by 2 % to meet
//                 that mean
//   "imix"        61.22 % of 60, 23.47 % of 536, 15.31 % of 1,360
//   "rtp"         242, 430, ... 1370 (steps of 188: one to seven MPEG-TS cells behind Ethernet, IPv4, UDP and
//                 RTP), evenly
//   "uniform"     64 to 1,518, evenly
//
// The smallest frame is 64 bytes: smaller sizes of a mix are raised to it, and "64" means 64 bytes without FCS.
//
// Thread-safety: one thread for each FrameMix. Cost: a few ns for each size; no allocation in next().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::packet {

class FrameMix {
 public:
  static constexpr std::uint32_t smallest_frame = 64;
  static constexpr std::uint32_t largest_frame = 9216;

  // An Error names the mixes that there are.
  static Expected<FrameMix> make(std::string_view name, std::uint64_t seed = 1);

  // The size of the next frame.
  std::uint32_t next();

  // Of the mix, not of a sample.
  double mean() const;
  std::uint32_t largest() const;
  const std::string& name() const { return name_; }

 private:
  // A size with probability `share` / 10,000: uniform over first, first + step, ... last.
  struct Part {
    std::uint32_t share;
    std::uint32_t first;
    std::uint32_t last;
    std::uint32_t step;
  };

  FrameMix(std::string name, std::vector<Part> parts, std::uint64_t seed);
  std::uint64_t random();

  std::string name_;
  std::vector<Part> parts_;
  std::uint64_t state_;
};

}  // namespace sluice::packet
