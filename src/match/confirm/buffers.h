// The parts of traffic that a rule's payload checks look at, as they are for one packet, message or piece of a stream.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "match/rules/buffer.h"

namespace sluice::match {

inline constexpr std::size_t buffer_count = static_cast<std::size_t>(Buffer::icmpv6_header) + 1;

// Views of bytes that live elsewhere. A buffer that is absent (this is no HTTP message, say) differs from an empty one:
// no check of an absent buffer holds, negated ones neither.
class Buffers {
 public:
  void set(Buffer buffer, std::string_view bytes) { bytes_[static_cast<std::size_t>(buffer)] = bytes; }
  void clear(Buffer buffer) { bytes_[static_cast<std::size_t>(buffer)].reset(); }
  const std::optional<std::string_view>& operator[](Buffer buffer) const {
    return bytes_[static_cast<std::size_t>(buffer)];
  }

 private:
  std::array<std::optional<std::string_view>, buffer_count> bytes_;
};

}  // namespace sluice::match
