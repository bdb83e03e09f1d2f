#include "bench/regained.h"

#include <algorithm>

namespace sluice::cli::bench {
namespace {

class LaneSamples {
 public:
  LaneSamples(const std::vector<SentSample>& samples, std::size_t lane) : samples_(samples), lane_(lane) {}

  double rate(std::size_t from, std::size_t to) const {
    const double seconds = samples_[to].at - samples_[from].at;
    return seconds <= 0 ? 0 : static_cast<double>(sent(to) - sent(from)) / seconds;
  }
  // The first sample, behind a pause that counts, from which the lane carries so much for as long as counts; the last
  // one: none.
  std::size_t steady_at(double least) const {
    const Pause pause = longest_pause();
    std::size_t to = 0;
    for (std::size_t from = pause.seconds >= steady_seconds ? pause.end : 0; from < samples_.size(); ++from) {
      while (to < samples_.size() && samples_[to].at - samples_[from].at < steady_seconds) ++to;
      if (to == samples_.size()) break;
      if (rate(from, to) >= least) return from;
    }
    return samples_.size() - 1;
  }
  struct Pause {
    double seconds = 0;
    std::size_t end = 0;  // the sample in which the lane had sent something, or the last one
  };
  Pause longest_pause() const {
    Pause longest;
    std::size_t moved = 0;
    for (std::size_t i = 1; i < samples_.size(); ++i) {
      const double seconds = samples_[i].at - samples_[moved].at;
      if (seconds > longest.seconds) longest = {seconds, i};
      if (sent(i) != sent(moved)) moved = i;
    }
    return longest;
  }

 private:
  std::uint64_t sent(std::size_t i) const { return samples_[i].sent[lane_]; }
  const std::vector<SentSample>& samples_;
  const std::size_t lane_;
};

}  // namespace

Regained regained(const std::vector<SentSample>& samples, double settled_s) {
  Regained result;
  if (samples.size() < 2) return result;
  const std::size_t last = samples.size() - 1;
  const double end = (settled_s + samples.back().at) / 2;
  const auto is_late = [&](const SentSample& sample) { return sample.at >= end; };
  const auto half = static_cast<std::size_t>(std::ranges::find_if(samples, is_late) - samples.begin());
  for (std::size_t l = 0; l < samples.front().sent.size(); ++l) {
    const LaneSamples lane(samples, l);
    const double rate = lane.rate(std::min(half, last - 1), last);
    if (rate == 0) {
      ++result.standing_still;
      continue;
    }
    result.rate += rate;
    result.after_s = std::max(result.after_s, samples[lane.steady_at(steady_share * rate)].at);
    result.pause_s = std::max(result.pause_s, lane.longest_pause().seconds);
  }
  return result;
}

}  // namespace sluice::cli::bench
