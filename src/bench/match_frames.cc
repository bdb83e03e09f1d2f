#include "bench/match_frames.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "packet/frame_mix.h"
#include "port/replay_words.h"

namespace sluice::cli::bench {
namespace {

using Random = std::mt19937_64;

void fill_random(char* at, std::size_t size, Random& random) {
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(at + i, &word, std::min<std::size_t>(8, size - i));
  }
}

void fill_text(char* at, std::size_t size, Random& random) {
  for (std::size_t i = 0; i < size;) {
    const std::string_view word = port::web_words[random() % std::size(port::web_words)];
    const std::size_t length = std::min(word.size(), size - i);
    std::memcpy(at + i, word.data(), length);
    i += length;
  }
}

void fill_patterns(char* at, std::size_t size, std::span<const match::Pattern> patterns, Random& random) {
  for (std::size_t i = 0; i < size;) {
    const std::string& bytes = patterns[random() % patterns.size()].bytes;
    const std::size_t length = std::min(bytes.size(), size - i);
    std::copy_n(bytes.data(), length, at + i);
    i += length;
  }
}

void fill_pieces(char* at, std::size_t size, std::string_view given, Random& random) {
  std::size_t from = random() % given.size();
  for (std::size_t i = 0; i < size; from = 0) {
    const std::size_t length = std::min(given.size() - from, size - i);
    std::copy_n(given.data() + from, length, at + i);
    i += length;
  }
}

// What payloads are made of.
struct Source {
  PayloadKind kind;
  std::span<const match::Pattern> patterns;
  std::string_view given;
};

void fill(char* at, std::size_t size, const Source& of, Random& random) {
  switch (of.kind) {
    case PayloadKind::attack:
      return fill_patterns(at, size, of.patterns, random);
    case PayloadKind::given:
      return fill_pieces(at, size, of.given, random);
    case PayloadKind::text:
      return fill_text(at, size, random);
    case PayloadKind::random:
      return fill_random(at, size, random);
    case PayloadKind::ordinary:
      break;
  }
  random() % 2 == 0 ? fill_text(at, size, random) : fill_random(at, size, random);
  if (random() % 100 == 0) {
    const std::string& bytes = of.patterns[random() % of.patterns.size()].bytes;
    if (bytes.size() <= size) {
      std::copy_n(bytes.data(), bytes.size(), at + random() % (size - bytes.size() + 1));
    }
  }
}

}  // namespace

Expected<MatchFrames> MatchFrames::make(device::Gpu& gpu, void* memory, std::uint32_t count, const std::string& mix,
                                        PayloadKind kind, std::span<const match::Pattern> patterns,
                                        std::string_view given) {
  auto sizes = packet::FrameMix::make(mix);
  if (!sizes) {
    return tl::unexpected(sizes.error());
  }
  MatchFrames frames;
  const std::size_t per_frame = sizeof(std::uint64_t) + sizeof(match::Span) + 4 + 4 + 4 * match::max_hits;
  auto arrays = gpu.allocate_host(std::size_t{count} * per_frame);
  if (!arrays) {
    return tl::unexpected(arrays.error());
  }
  auto* const address = static_cast<std::uint64_t*>(*arrays);
  auto* const found = reinterpret_cast<std::uint32_t*>(address + count);
  auto* const key = found + count;
  auto* const span = reinterpret_cast<match::Span*>(key + std::size_t{count} * match::max_hits);
  auto* const klass = reinterpret_cast<std::uint8_t*>(span + count);
  auto* const base = static_cast<char*>(memory);
  Random random(7);
  frames.memory_ = base;
  frames.sum_.push_back(0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t size = std::clamp<std::uint32_t>(sizes->next(), header_bytes, pitch - 128);
    char* const frame = base + std::size_t{i} * pitch;
    std::memset(frame, 0, header_bytes);
    fill(frame + header_bytes, size - header_bytes, {kind, patterns, given}, random);
    address[i] = reinterpret_cast<std::uint64_t>(frame);
    span[i] = {header_bytes, static_cast<std::uint16_t>(size)};
    klass[i] = 0;
    frames.length_.push_back(static_cast<std::uint16_t>(size));
    frames.sum_.push_back(frames.sum_.back() + size);
  }
  frames.all_ = {address, span, klass, found, key, count};
  return frames;
}

match::MatchBatch MatchFrames::batch(std::uint32_t first, std::uint32_t count) const {
  return {all_.frame + first,
          all_.span + first,
          all_.klass + first,
          all_.found + first,
          all_.key + std::size_t{first} * match::max_hits,
          count,
          bytes(first, count) - std::uint64_t{count} * header_bytes};
}

void MatchFrames::forget_results() {
  std::fill_n(all_.found, all_.count, ~0U);
  std::fill_n(all_.key, std::size_t{all_.count} * match::max_hits, ~0U);
}

}  // namespace sluice::cli::bench
