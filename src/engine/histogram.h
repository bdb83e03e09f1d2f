// A latency histogram with a bounded relative error, after Tene's HDR Histogram: values below 64 are exact, above that
// each power of two has 64 buckets, so a percentile is at most 1.6 % above the true value. Fixed size (about 15 KB), no
// allocation.
//
// Units are the caller's (the engine records time-stamp counter ticks). One writer, many readers. Cost of add(): a
// count of leading zeros and one increment, for a whole group of frames at once.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "engine/counters.h"

namespace sluice::engine {

class Histogram {
 public:
  static constexpr unsigned sub_bits = 6;
  static constexpr unsigned sub_buckets = 1U << sub_bits;
  static constexpr unsigned buckets = (40 - sub_bits + 1) * sub_buckets;  // values up to 2^40

  void add(std::uint64_t value, std::uint64_t count) {
    buckets_[index(value)].add(count);
    sum_.add(value * count);
    if (value > max_.get()) {
      max_.set(value);
    }
  }

  static constexpr unsigned index(std::uint64_t value) {
    if (value < sub_buckets) {
      return static_cast<unsigned>(value);
    }
    const unsigned exponent = static_cast<unsigned>(std::bit_width(value)) - sub_bits - 1;
    const unsigned at = (exponent + 1) * sub_buckets + static_cast<unsigned>((value >> exponent) - sub_buckets);
    return at < buckets ? at : buckets - 1;
  }
  // The largest value that falls into a bucket.
  static constexpr std::uint64_t upper(unsigned at) {
    if (at < sub_buckets) {
      return at;
    }
    const unsigned exponent = at / sub_buckets - 1;
    return ((static_cast<std::uint64_t>(at % sub_buckets + sub_buckets) + 1) << exponent) - 1;
  }

  std::uint64_t count(unsigned at) const { return buckets_[at].get(); }
  std::uint64_t max() const { return max_.get(); }
  std::uint64_t sum() const { return sum_.get(); }

 private:
  std::array<Counter, buckets> buckets_;
  Counter sum_;
  Counter max_;
};

// A sum of histograms at one moment, for the control path.
class HistogramSnapshot {
 public:
  void add(const Histogram& histogram);
  std::uint64_t total() const { return total_; }
  std::uint64_t max() const { return max_; }
  std::uint64_t sum() const { return sum_; }
  // The value that `fraction` (0 to 1) of all recorded values do not exceed; 0 when there are none.
  std::uint64_t percentile(double fraction) const;
  // How many values are at most `value` (to the bucket's precision).
  std::uint64_t at_most(std::uint64_t value) const;
  // What was recorded since `earlier`.
  HistogramSnapshot since(const HistogramSnapshot& earlier) const;

 private:
  std::array<std::uint64_t, Histogram::buckets> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace sluice::engine
