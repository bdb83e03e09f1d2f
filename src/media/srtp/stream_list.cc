#include "media/srtp/stream_list.h"

#include <memory>
#include <utility>

namespace sluice::srtp {

StreamList::StreamList(StreamList&& other) noexcept
    : pool_(other.pool_),
      first_(std::exchange(other.first_, no_stream_slot)),
      size_(other.size_.exchange(0, std::memory_order_relaxed)),
      max_streams_(other.max_streams_) {}

StreamList& StreamList::operator=(StreamList&& other) noexcept {
  if (this != &other) {
    std::destroy_at(this);
    std::construct_at(this, std::move(other));
  }
  return *this;
}

void StreamList::clear() {
  while (first_ != no_stream_slot) {
    const std::uint32_t slot = std::exchange(first_, (*pool_)[first_].next);
    pool_->give_back(slot);
  }
  size_.store(0, std::memory_order_relaxed);
}

void StreamList::take_back(std::uint32_t slot) {
  first_ = (*pool_)[slot].next;
  pool_->give_back(slot);
  size_.store(size() - 1, std::memory_order_relaxed);
}

// What is found comes to the front of the list.
std::uint32_t StreamList::find_further(std::uint32_t ssrc) {
  StreamPool& pool = *pool_;
  for (std::uint32_t before = first_; pool[before].next != no_stream_slot; before = pool[before].next) {
    const std::uint32_t slot = pool[before].next;
    if (pool[slot].ssrc == ssrc) {
      pool[before].next = pool[slot].next;
      pool[slot].next = first_;
      first_ = slot;
      return slot;
    }
  }
  return no_stream_slot;
}

std::uint32_t StreamList::add(std::uint32_t ssrc, std::uint32_t roc) {
  if (size() == max_streams_) {
    return no_stream_slot;
  }
  const std::uint32_t slot = pool_->take(ssrc, roc);
  if (slot != no_stream_slot) {
    (*pool_)[slot].next = first_;
    first_ = slot;
    size_.store(size() + 1, std::memory_order_relaxed);
  }
  return slot;
}

}  // namespace sluice::srtp
