#include "bench/match_verify.h"

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

bool is_reported(std::span<const std::uint32_t> expected, std::uint32_t found, const std::uint32_t* reported) {
  const std::size_t count = std::min<std::size_t>(expected.size(), match::max_hits);
  const std::set<std::uint32_t> all(expected.begin(), expected.end()), got(reported, reported + count);
  return found == std::min<std::size_t>(expected.size(), match::max_hits + 1) && got.size() == count &&
         std::includes(all.begin(), all.end(), got.begin(), got.end());
}

Expected<std::uint64_t> verify_keys(const match::CpuMatcher& reference, const match::KeySet& keys,
                                    const MatchFrames& frames, const std::function<bool(std::uint32_t)>& read) {
  match::CpuMatcher::Scratch scratch(reference);
  std::vector<std::uint32_t> in(keys.keys().size() + 1);
  std::uint64_t found = 0;
  for (std::uint32_t i = 0; i < frames.count(); ++i) {
    const std::size_t count = read(i) ? reference.match(scratch, frames.payload(i), 0, in.data(), in.size()) : 0;
    if (!is_reported({in.data(), count}, frames.found(i), frames.keys(i))) {
      return make_error(
          fmt::format("NOT VERIFIED: frame {}: the GPU found {} keys, Hyperscan {}", i, frames.found(i), count));
    }
    found += count;
  }
  return found;
}

Expected<std::uint64_t> verify_every_key(const match::CpuMatcher& reference, const match::KeySet& keys,
                                         const MatchFrames& frames, match::GpuMatcher& matcher,
                                         device::GpuStream& stream) {
  return verify_every_key(reference, keys, frames, 8192, [&](const match::MatchBatch& batch) {
    return matcher.every_key(batch, keys.keys().size(), stream);
  });
}

Expected<std::uint64_t> verify_every_key(const match::CpuMatcher& reference, const match::KeySet& keys,
                                         const MatchFrames& frames, std::uint32_t at_once,
                                         const EveryKeyOf& every_key) {
  match::CpuMatcher::Scratch scratch(reference);
  const std::size_t count = keys.keys().size(), words = match::GpuMatcher::key_words(count);
  std::vector<std::uint32_t> in(count + 1), expected(words);
  std::uint64_t found = 0;
  for (std::uint32_t first = 0; first < frames.count(); first += at_once) {
    const std::uint32_t many = std::min(at_once, frames.count() - first);
    const auto marked = every_key(frames.batch(first, many));
    if (!marked) {
      return tl::unexpected(marked.error());
    }
    for (std::uint32_t i = 0; i < many; ++i) {
      const std::size_t there = reference.match(scratch, frames.payload(first + i), 0, in.data(), in.size());
      std::fill(expected.begin(), expected.end(), 0U);
      for (std::size_t k = 0; k < there; ++k) {
        expected[in[k] / 32] |= 1U << in[k] % 32;
      }
      if (!std::equal(expected.begin(), expected.end(), marked->begin() + static_cast<std::ptrdiff_t>(i * words))) {
        return make_error(fmt::format("NOT VERIFIED: frame {}: the GPU does not mark the {} keys that Hyperscan finds",
                                      first + i, there));
      }
      found += there;
    }
  }
  return found;
}

double share_of_many(const MatchFrames& frames) {
  std::uint32_t many = 0;
  for (std::uint32_t i = 0; i < frames.count(); ++i) {
    many += frames.found(i) > match::max_hits ? 1 : 0;
  }
  return static_cast<double>(many) / frames.count();
}

}  // namespace sluice::cli::bench
