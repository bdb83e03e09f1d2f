#include "cli/bench/match_verify.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace sluice::cli::bench {

Expected<std::unique_ptr<match::CpuMatcher>> matcher_of(const match::KeySet& keys) {
  std::vector<match::Pattern> patterns;
  for (const match::Key& key : keys.keys()) {
    patterns.push_back({std::string(key.bytes.begin(), key.bytes.begin() + key.length), true});
  }
  return match::CpuMatcher::create(patterns);
}

Expected<std::uint64_t> verify_keys(const match::CpuMatcher& reference, const match::KeySet& keys,
                                    const MatchFrames& frames, const std::function<bool(std::uint32_t)>& read) {
  match::CpuMatcher::Scratch scratch(reference);
  std::vector<std::uint32_t> in(keys.keys().size() + 1);
  std::uint64_t found = 0;
  for (std::uint32_t i = 0; i < frames.count(); ++i) {
    const std::size_t count = read(i) ? reference.match(scratch, frames.payload(i), 0, in.data(), in.size()) : 0;
    const auto told = static_cast<std::uint32_t>(std::min<std::size_t>(count, match::max_hits));
    const std::set<std::uint32_t> expected(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count));
    const std::set<std::uint32_t> got(frames.keys(i), frames.keys(i) + told);
    if (frames.found(i) != std::min<std::size_t>(count, match::max_hits + 1) || got.size() != told ||
        !std::includes(expected.begin(), expected.end(), got.begin(), got.end())) {
      return make_error(
          fmt::format("NOT VERIFIED: frame {}: the GPU found {} keys, Hyperscan {}", i, frames.found(i), count));
    }
    found += count;
  }
  return found;
}

}  // namespace sluice::cli::bench
