// Frames to be matched, and what was found: a structure of arrays in memory that the device addresses.
#pragma once

#include <cstdint>

namespace sluice::match {

// Keys that are reported of one frame. A frame with more has all of its keys looked for by the caller.
inline constexpr std::uint32_t max_hits = 8;

// The payload of a frame: bytes [begin, end) of it. begin >= end: there is none, and nothing is read.
struct Span {
  std::uint16_t begin;
  std::uint16_t end;
};

struct MatchBatch {
  const std::uint64_t* frame = nullptr;  // address of the frame's first byte
  const Span* span = nullptr;
  const std::uint8_t* klass = nullptr;  // below max_classes
  std::uint32_t* found = nullptr;       // out: how many keys, each counted once; max_hits + 1: more than max_hits
  std::uint32_t* key = nullptr;         // out: max_hits a frame; the first found[i] of them are written
  std::uint32_t count = 0;              // frames
  // These decide how the work is spread, not what comes out.
  std::uint64_t bytes = 0;  // of all payloads
  bool on_device = false;   // the frames lie in device memory
};

}  // namespace sluice::match
