// The anti-replay window of an inbound SA (RFC 4303 section 3.4.3, with ESN appendix A2): which numbers came already.
//
//   const auto number = window.extend(low);       // with ESN: all 64 bits, before the ICV is checked; without: low
//   if (!number || !window.may_be_new(*number))   // refuse before any cryptography is done
//   ...                                           // the ICV is right
//   if (!window.accept(*number))                  // a replay: somebody else was first
//
// Nothing but accept() changes the window, so nobody without the key has a say in it.
//
// Several lanes may authenticate packets of one SA at the same time, and accept() says true once for each number.
// It is RFC 6479's ring of blocks, with the block's own number in each word: [number : 32 | bits : 32]. A word is
// changed by compare-and-exchange, and only to a later block or to one more bit. So there is no bit to be cleared when
// the window moves, no lock that a preempted lane could hold, and a number whose block has gone is refused. The word
// has the low 32 bits of the block's number: two blocks that they do not distinguish are 2^37 packets apart, and one
// that is taken for the other refuses a packet, and accepts none.
//
// Thread-safety: any threads. Cost: extend() and may_be_new() two loads; accept() a compare-and-exchange, accept_run()
// one for each 32 numbers that follow each other. Memory: 8 bytes for each 32 packets of the window and 32 more, up to
// the next power of two; up to 96 packets lie in the object itself.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/prefetch.h"

namespace sluice::ipsec {

class ReplayWindow {
 public:
  // `size`: packets, at most most_replay_window; 0: only extend() means something, and accept() is always true.
  // `highest`: the highest number that came before; all others up to it count as received.
  explicit ReplayWindow(std::uint32_t size = 0, std::uint64_t highest = 0);

  // The number whose low half a packet says (appendix A2.2). Nothing: it would be before the first one, or behind the
  // last. Without a window: the one that is next to the highest.
  std::optional<std::uint64_t> extend(std::uint32_t low) const;

  // False: it is behind the window, was received, or is 0. True: accept() decides.
  bool may_be_new(std::uint64_t number) const;
  // The packet is authentic. False: it is a replay.
  bool accept(std::uint64_t number);
  // The same for packets in the order in which they came; `accepted` is as long.
  void accept_run(std::span<const std::uint64_t> numbers, bool* accepted);

  std::uint64_t highest() const { return highest_.load(std::memory_order_relaxed); }
  std::uint32_t size() const { return size_; }
  // What may_be_new() will read, if it is not in this object.
  void prefetch(std::uint64_t number) const { sluice::prefetch(word_of(number / bits)); }

 private:
  static constexpr std::uint32_t bits = 32;   // of a block
  static constexpr std::uint32_t inside = 4;  // words

  std::atomic<std::uint64_t>* word_of(std::uint64_t block) const {
    return (further_ ? further_.get() : words_.data()) + (block & mask_);
  }
  // Sets those of `wanted`, bits of `block`, that are not set; returns which it has set.
  std::uint32_t set(std::uint64_t block, std::uint32_t wanted);
  void raise(std::uint64_t number);

  std::atomic<std::uint64_t> highest_;
  mutable std::array<std::atomic<std::uint64_t>, inside> words_{};
  std::unique_ptr<std::atomic<std::uint64_t>[]> further_;  // in place of words_, for a larger window
  std::uint16_t size_;
  std::uint16_t mask_ = inside - 1;  // of words
};
static_assert(sizeof(ReplayWindow) == 56);  // with four bytes at the end that another member may have (sa.h)

}  // namespace sluice::ipsec
