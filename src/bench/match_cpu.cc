#include "bench/match_cpu.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <vector>

#include "base/machine.h"
#include "bench/every_core.h"
#include "bench/rounds.h"

namespace sluice::cli::bench {

Expected<Outcome> scan_on_all_cores(const match::CpuMatcher& matcher, const MatchFrames& frames, double seconds) {
  const auto share = static_cast<std::uint32_t>(frames.count() / allowed_cores().size());
  std::atomic<std::uint64_t> failed{0};
  const auto scan = [&](std::size_t core, const std::atomic<bool>& stop) {
    match::CpuMatcher::Scratch scratch(matcher);
    const auto first = static_cast<std::uint32_t>(core) * share;
    std::array<std::uint32_t, match::max_hits> found;
    CoreShare done;
    while (!stop.load(std::memory_order_relaxed)) {
      for (std::uint32_t i = first; i < first + share && !stop.load(std::memory_order_relaxed); ++i) {
        matcher.match(scratch, frames.payload(i), 0, found.data(), found.size());
        ++done.frames;
        done.bytes += frames.frame(i).size();
      }
    }
    failed += scratch.failed();
    return done;
  };
  on_every_core(seconds / 2, scan);  // until caches, and the cores' clock, are as they will be
  std::vector<Outcome> outcomes;
  while (outcomes.size() < repetitions) outcomes.push_back(on_every_core(seconds, scan));
  if (failed != 0) return make_error(fmt::format("Hyperscan has failed in {} searches", failed.load()));
  return middle_of(outcomes);
}

}  // namespace sluice::cli::bench
