#include "media/srtp/stream_pool.h"

#include <algorithm>
#include <bit>
#include <string>

namespace sluice::srtp {
namespace {

constexpr std::uint32_t smallest_window = 64;
constexpr std::uint32_t largest_window = 16384;

}  // namespace

Expected<StreamPool> StreamPool::make(std::uint32_t capacity, std::uint32_t window) {
  if (window < smallest_window || window > largest_window || !std::has_single_bit(window)) {
    return make_error("a replay window of " + std::to_string(window) + " packets: must be a power of two from " +
                      std::to_string(smallest_window) + " to " + std::to_string(largest_window));
  }
  StreamPool pool;
  pool.capacity_ = capacity;
  pool.window_words_ = window / 64;
  pool.streams_ = std::make_unique<Stream[]>(capacity);
  pool.windows_ = std::make_unique<std::uint64_t[]>(std::size_t{capacity} * pool.window_words_);
  for (std::uint32_t slot = capacity; slot-- > 0;) {
    pool.streams_[slot].next = pool.free_;
    pool.free_ = slot;
  }
  return pool;
}

std::uint32_t StreamPool::take(std::uint32_t ssrc, std::uint32_t roc) {
  const std::uint32_t slot = free_;
  if (slot == no_stream_slot) {
    return slot;
  }
  free_ = streams_[slot].next;
  ++used_;
  streams_[slot] = {
      .highest = std::uint64_t{roc} << 16, .ssrc = ssrc, .next = no_stream_slot, .in_flight = 0, .fresh = true};
  const auto words = window(slot);
  std::fill(words.begin(), words.end(), 0);
  return slot;
}

void StreamPool::give_back(std::uint32_t slot) {
  streams_[slot].next = free_;
  free_ = slot;
  --used_;
}

}  // namespace sluice::srtp
