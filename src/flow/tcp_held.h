// What waits and what is kept of a side of a TCP stream, for the sources of Reassembler (tcp_stream.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "flow/tcp_stream.h"
#include "flow/tcp_track.h"

namespace sluice::flow {

// A segment that waits: this header and its bytes in one block.
struct Held {
  Held* next;
  std::uint32_t sequence;
  std::uint32_t length : 24;
  std::uint32_t mark : 8;  // of the sink: StreamSink::waits()
  std::uint32_t end() const { return sequence + length; }
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  std::string_view view() { return {bytes(), length}; }
};

// In place of the first segment of a list that is thrown away, until its blocks are given back.
struct ThrownAway {
  Held* rest;
  ThrownAway* next;
};
static_assert(sizeof(ThrownAway) <= sizeof(Held));

inline std::uint32_t later(std::uint32_t a, std::uint32_t b) {
  return sequence_after(a, b) ? a : b;
}

// Bytes that the receiver may not have yet, of those that are kept.
inline std::uint32_t unacknowledged(const StreamSide& side) {
  return sequence_after(side.next, side.acked) ? std::min(side.next - side.acked, side.history_size) : 0;
}

}  // namespace sluice::flow
