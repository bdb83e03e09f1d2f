// Frames with payloads to be inspected, in pinned memory, as a NIC's DMA would leave them: one every 2,048 bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "device/gpu.h"
#include "match/automaton/match_batch.h"
#include "match/automaton/pattern.h"

namespace sluice::cli::bench {

enum class PayloadKind {
  ordinary,  // half of them text as of web pages and requests, half random bytes; one in a hundred holds a pattern
  text,      // all of them as of web pages and requests
  random,
  attack,  // pieces of the patterns, one after the other: many keys in each frame
  given,   // pieces of what is given, from any byte on; behind its end it begins anew
};

class MatchFrames {
 public:
  static constexpr std::uint32_t pitch = 2048;
  static constexpr std::uint16_t header_bytes = 54;  // Ethernet, IPv4, TCP

  // `count` frames of the mix in `memory`, which the GPU addresses. The frames live as long as that and the GPU.
  static Expected<MatchFrames> make(device::Gpu& gpu, void* memory, std::uint32_t count, const std::string& mix,
                                    PayloadKind kind, std::span<const match::Pattern> patterns,
                                    std::string_view given = {});

  std::uint32_t count() const { return static_cast<std::uint32_t>(length_.size()); }
  // Frames [first, first + count).
  match::MatchBatch batch(std::uint32_t first, std::uint32_t count) const;
  std::uint64_t bytes(std::uint32_t first, std::uint32_t count) const { return sum_[first + count] - sum_[first]; }
  std::string_view payload(std::uint32_t i) const {
    return {memory_ + std::size_t{i} * pitch + header_bytes, length_[i] - std::size_t{header_bytes}};
  }
  std::string_view frame(std::uint32_t i) const { return {memory_ + std::size_t{i} * pitch, length_[i]}; }
  // What the last batches that held frame i left there.
  std::uint32_t found(std::uint32_t i) const { return all_.found[i]; }
  const std::uint32_t* keys(std::uint32_t i) const { return all_.key + std::size_t{i} * match::max_hits; }
  void forget_results();

 private:
  const char* memory_ = nullptr;
  match::MatchBatch all_;
  std::vector<std::uint16_t> length_;
  std::vector<std::uint64_t> sum_;
};

}  // namespace sluice::cli::bench
