// What waits and what is kept of a side of a TCP stream, for the sources of Reassembler (tcp_stream.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "flow/tcp_stream.h"
#include "flow/tcp_track.h"

namespace sluice::flow {

// A segment that waits, or what was new of one: its bytes are a block of the pool.
struct Held {
  std::uint32_t sequence;
  std::uint32_t length : 23;
  std::uint32_t fresh : 1;  // of the segment that is being taken
  std::uint32_t mark : 8;   // of the sink: StreamSink::waits()
  char* bytes;
  std::uint32_t end() const { return sequence + length; }
  std::string_view view() const { return {bytes, length}; }
};

// What waits in a direction, by sequence, without overlaps: a block of the pool that begins with this, and has capacity
// for so many segments behind it. Cost: a binary search, and what lies on one side of a place is moved, 16 bytes each;
// at the end, where most come, nothing.
struct HeldList {
  explicit HeldList(std::size_t block_size)
      : capacity(static_cast<std::uint32_t>((block_size - sizeof(HeldList)) / sizeof(Held))) {}
  static std::size_t size_for(std::uint32_t segments) { return sizeof(HeldList) + segments * sizeof(Held); }

  Held& operator[](std::size_t at) { return entries()[at]; }
  const Held& operator[](std::size_t at) const { return entries()[at]; }
  const Held& first() const { return (*this)[0]; }
  const Held& last() const { return (*this)[count - 1]; }
  bool is_full() const { return count == capacity; }

  // The first one that ends behind the sequence; `count`: none does.
  std::size_t find(std::uint32_t sequence) const {
    if (!sequence_after(last().end(), sequence)) return count;
    std::size_t from = 0, to = count - 1;
    while (from < to) {
      const std::size_t middle = (from + to) / 2;
      if (sequence_after((*this)[middle].end(), sequence)) {
        to = middle;
      } else {
        from = middle + 1;
      }
    }
    return from;
  }
  // There is capacity.
  void insert(std::size_t at, const Held& held) {
    if (begin != 0 && (at <= count / 2 || begin + count == capacity)) {
      --begin;
      std::memmove(entries(), entries() + 1, at * sizeof(Held));
    } else {
      std::memmove(entries() + at + 1, entries() + at, (count - at) * sizeof(Held));
    }
    ++count;
    (*this)[at] = held;
  }
  void remove(std::size_t at) {
    --count;
    if (at == 0) {
      ++begin;
    } else {
      std::memmove(entries() + at, entries() + at + 1, (count - at) * sizeof(Held));
    }
  }

  HeldList* next = nullptr;  // of those that are thrown away
  std::uint32_t begin = 0, count = 0;
  const std::uint32_t capacity;

 private:
  Held* entries() { return reinterpret_cast<Held*>(this + 1) + begin; }
  const Held* entries() const { return reinterpret_cast<const Held*>(this + 1) + begin; }
};
static_assert(sizeof(HeldList) % alignof(Held) == 0 && sizeof(Held) == 16);

inline std::uint32_t later(std::uint32_t a, std::uint32_t b) {
  return sequence_after(a, b) ? a : b;
}

// Bytes that the receiver may not have yet, of those that are kept.
inline std::uint32_t unacknowledged(const StreamSide& side) {
  return sequence_after(side.next, side.acked) ? std::min(side.next - side.acked, side.history_size) : 0;
}

}  // namespace sluice::flow
