// The parts of traffic that a rule's payload checks look at, as they are for one packet, message or piece of a stream.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "match/rules/buffer.h"

namespace sluice::match {

inline constexpr std::size_t buffer_count = static_cast<std::size_t>(Buffer::icmpv6_header) + 1;

class BufferSet {
 public:
  constexpr BufferSet() = default;
  constexpr explicit BufferSet(std::uint64_t bits) : bits_(bits) {}
  constexpr BufferSet(std::initializer_list<Buffer> buffers) {
    for (const Buffer buffer : buffers) add(buffer);
  }

  constexpr void add(Buffer buffer) { bits_ |= bit(buffer); }
  constexpr std::uint64_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr BufferSet operator&(BufferSet other) const { return BufferSet(bits_ & other.bits_); }
  constexpr BufferSet without(BufferSet other) const { return BufferSet(bits_ & ~other.bits_); }
  // In their order.
  template <typename Use>
  void for_each(Use use) const {
    for (std::uint64_t left = bits_; left != 0; left &= left - 1) use(static_cast<Buffer>(std::countr_zero(left)));
  }
  constexpr bool has(Buffer buffer) const { return (bits_ & bit(buffer)) != 0; }

 private:
  static constexpr std::uint64_t bit(Buffer buffer) { return std::uint64_t{1} << static_cast<unsigned>(buffer); }
  std::uint64_t bits_ = 0;
};

// Those of HTTP's messages that grow.
inline constexpr BufferSet http_bodies{Buffer::http_request_body, Buffer::http_response_body, Buffer::file_data};

// Views of bytes that live elsewhere. A buffer that is absent (this is no HTTP message, say) differs from an empty one:
// no check of an absent buffer holds, negated ones neither.
class Buffers {
 public:
  // Not defaulted: most are not there, and a packet's inspection would begin with clearing all of them.
  Buffers() {}  // NOLINT(modernize-use-equals-default, cppcoreguidelines-pro-type-member-init)
  void set(Buffer buffer, std::string_view bytes) {
    view_[static_cast<std::size_t>(buffer)] = {bytes.data(), bytes.size()};
    there_ |= bit(buffer);
  }
  void clear(Buffer buffer) { there_ &= ~bit(buffer); }
  std::optional<std::string_view> operator[](Buffer buffer) const {
    if ((there_ & bit(buffer)) == 0) return std::nullopt;
    const View& view = view_[static_cast<std::size_t>(buffer)];
    return std::string_view(view.data, view.size);
  }

 private:
  struct View {
    const char* data;
    std::size_t size;
  };
  static std::uint64_t bit(Buffer buffer) { return std::uint64_t{1} << static_cast<unsigned>(buffer); }
  static_assert(buffer_count <= 64);

  std::uint64_t there_ = 0;
  std::array<View, buffer_count> view_;
};

}  // namespace sluice::match
