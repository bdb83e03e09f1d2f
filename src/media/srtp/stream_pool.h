// The state of each SSRC: all of a lane's streams in one piece of memory of fixed size, allocated at once.
//
// Memory: 24 B and the window for each stream: 40 B with a window of 128 packets, 4 MB for 100,000 streams. RTP and
// RTCP of a source are a stream each. Keys are not here: the streams of a channel share them. Thread-safety: one
// lane's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/prefetch.h"

namespace sluice::srtp {

inline constexpr std::uint32_t no_stream_slot = 0xffffffff;

struct Stream {
  std::uint64_t
      highest;  // authenticated (unprotect) or prepared (protect); before the first: its rollover counter << 16
  std::uint32_t ssrc;
  std::uint32_t next;       // of the channel, or of the free list
  std::uint32_t in_flight;  // prepared, and neither finished nor marked
  bool fresh;               // nothing yet: `highest` and the window say nothing but the rollover counter
};

class StreamPool {
 public:
  // `window`: a power of two from 64 to 16,384 packets; an error for anything else.
  static Expected<StreamPool> make(std::uint32_t capacity, std::uint32_t window);

  // no_stream_slot if all are taken.
  std::uint32_t take(std::uint32_t ssrc, std::uint32_t roc);
  void give_back(std::uint32_t slot);

  Stream& operator[](std::uint32_t slot) { return streams_[slot]; }
  const Stream& operator[](std::uint32_t slot) const { return streams_[slot]; }
  std::span<std::uint64_t> window(std::uint32_t slot) {
    return {windows_.get() + std::size_t{slot} * window_words_, window_words_};
  }
  void prefetch(std::uint32_t slot) const {
    sluice::prefetch(streams_.get() + slot);
    sluice::prefetch(windows_.get() + std::size_t{slot} * window_words_);
  }
  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t used() const { return used_; }

 private:
  StreamPool() = default;
  std::unique_ptr<Stream[]> streams_;
  std::unique_ptr<std::uint64_t[]> windows_;
  std::uint32_t capacity_ = 0;
  std::uint32_t window_words_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t free_ = no_stream_slot;
};

}  // namespace sluice::srtp
