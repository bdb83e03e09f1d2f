#include "engine/histogram.h"

#include <algorithm>
#include <cmath>

namespace sluice::engine {

void HistogramSnapshot::add(const Histogram& histogram) {
  for (unsigned i = 0; i < Histogram::buckets; ++i) {
    const std::uint64_t n = histogram.count(i);
    counts_[i] += n;
    total_ += n;
  }
  sum_ += histogram.sum();
  max_ = std::max(max_, histogram.max());
}

std::uint64_t HistogramSnapshot::percentile(double fraction) const {
  if (total_ == 0) {
    return 0;
  }
  const auto wanted =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(total_))));
  std::uint64_t seen = 0;
  for (unsigned i = 0; i < Histogram::buckets; ++i) {
    seen += counts_[i];
    if (seen >= wanted) {
      return std::min(Histogram::upper(i), max_);
    }
  }
  return max_;
}

std::uint64_t HistogramSnapshot::at_most(std::uint64_t value) const {
  std::uint64_t seen = 0;
  for (unsigned i = 0; i <= Histogram::index(value); ++i) {
    seen += counts_[i];
  }
  return seen;
}

HistogramSnapshot HistogramSnapshot::since(const HistogramSnapshot& earlier) const {
  HistogramSnapshot result = *this;
  result.total_ = 0;
  result.sum_ -= earlier.sum_;
  result.max_ = 0;
  for (unsigned i = 0; i < Histogram::buckets; ++i) {
    result.counts_[i] -= earlier.counts_[i];
    result.total_ += result.counts_[i];
    if (result.counts_[i] != 0) {
      result.max_ = std::min(Histogram::upper(i), max_);
    }
  }
  return result;
}

}  // namespace sluice::engine
