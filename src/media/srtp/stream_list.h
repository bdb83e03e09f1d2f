// The streams of a channel by their SSRCs, with the rules of their indexes (RFC 3711 sections 3.2.3, 3.3): which is
// next, which has been seen, which is taken. The streams themselves are a StreamPool's; the one found last comes first.
// Thread-safety: one lane's, but for size().
#pragma once

#include <atomic>
#include <cstdint>

#include "media/srtp/index.h"
#include "media/srtp/status.h"
#include "media/srtp/stream_pool.h"
#include "media/srtp/suite.h"

namespace sluice::srtp {

inline constexpr std::uint32_t max_in_flight = 1U << 14;

class StreamList {
 public:
  // `pool` must outlive it.
  StreamList(StreamPool& pool, std::uint32_t max_streams) : pool_(&pool), max_streams_(max_streams) {}
  StreamList(StreamList&& other) noexcept;
  StreamList& operator=(StreamList&& other) noexcept;
  ~StreamList() { clear(); }

  // Slots in the pool; no_stream_slot if there is none, or no capacity for one. find_or_add(): with rollover counter 0.
  std::uint32_t find(std::uint32_t ssrc);
  std::uint32_t find_or_add(std::uint32_t ssrc);
  std::uint32_t add(std::uint32_t ssrc, std::uint32_t roc);
  // The one that add() has given last goes back, as if it had never been there.
  void take_back(std::uint32_t slot);
  std::uint32_t size() const { return size_.load(std::memory_order_relaxed); }
  // All go back to the pool.
  void clear();

  const Stream& operator[](std::uint32_t slot) const { return (*pool_)[slot]; }

  // RTP's index by its sequence number, or the next of SRTCP. key_expired: there is none behind the last.
  Status next_index(std::uint32_t slot, Protocol protocol, std::uint16_t sequence, std::uint64_t& index) const;
  // Of an index by next_index() of RTP: whether it would belong before the first there is, whose rollover counter was
  // 0.
  bool is_before_first(std::uint32_t slot, std::uint64_t index) const;
  // The highest marked one; `none`: there is none yet, or `slot` is no_stream_slot.
  std::uint64_t highest(std::uint32_t slot, std::uint64_t none) const;
  // Whether a packet of this index may be prepared: replayed, too_old, too_many_in_flight.
  Status check(std::uint32_t slot, std::uint64_t index) const;
  void enter_flight(std::uint32_t slot) { ++(*pool_)[slot].in_flight; }
  void leave_flight(std::uint32_t slot) { --(*pool_)[slot].in_flight; }
  // Marks an index that check() has let through.
  void mark(std::uint32_t slot, std::uint64_t index);
  // Marks it unless it has been seen: replayed, too_old.
  Status take(std::uint32_t slot, std::uint64_t index);

  void prefetch_first() const {
    if (first_ != no_stream_slot) pool_->prefetch(first_);
  }
  void prefetch(std::uint32_t slot) const { pool_->prefetch(slot); }

 private:
  std::uint32_t find_further(std::uint32_t ssrc);
  Status check_seen(std::uint32_t slot, std::uint64_t index) const;

  StreamPool* pool_;
  std::uint32_t first_ = no_stream_slot;
  std::atomic<std::uint32_t> size_{0};
  std::uint32_t max_streams_;
};

inline std::uint32_t StreamList::find(std::uint32_t ssrc) {
  if (first_ == no_stream_slot || (*pool_)[first_].ssrc == ssrc) {
    return first_;
  }
  return find_further(ssrc);
}

inline std::uint32_t StreamList::find_or_add(std::uint32_t ssrc) {
  const std::uint32_t slot = find(ssrc);
  return slot != no_stream_slot ? slot : add(ssrc, 0);
}

inline Status StreamList::next_index(std::uint32_t slot, Protocol protocol, std::uint16_t sequence,
                                     std::uint64_t& index) const {
  const Stream& stream = (*pool_)[slot];
  if (protocol == Protocol::rtcp) {
    index = stream.fresh ? 0 : stream.highest + 1;
    return index > max_rtcp_index ? Status::key_expired : Status::ok;
  }
  index = stream.fresh ? stream.highest | sequence : guess_index(stream.highest, sequence);
  return index > max_rtp_index ? Status::key_expired : Status::ok;
}

inline bool StreamList::is_before_first(std::uint32_t slot, std::uint64_t index) const {
  const Stream& stream = (*pool_)[slot];
  return !stream.fresh && index > stream.highest + 0x8000;  // guess_index() has found nothing below 0
}

inline std::uint64_t StreamList::highest(std::uint32_t slot, std::uint64_t none) const {
  return slot == no_stream_slot || (*pool_)[slot].fresh ? none : (*pool_)[slot].highest;
}

inline Status StreamList::check_seen(std::uint32_t slot, std::uint64_t index) const {
  const Stream& stream = (*pool_)[slot];
  return stream.fresh ? Status::ok : check_window(pool_->window(slot), stream.highest, index);
}

inline Status StreamList::check(std::uint32_t slot, std::uint64_t index) const {
  const Status status = check_seen(slot, index);
  if (status == Status::ok && (*pool_)[slot].in_flight >= max_in_flight) {
    return Status::too_many_in_flight;
  }
  return status;
}

inline void StreamList::mark(std::uint32_t slot, std::uint64_t index) {
  Stream& stream = (*pool_)[slot];
  if (stream.fresh) {
    stream.fresh = false;
    stream.highest = index;
  }
  mark_window(pool_->window(slot), stream.highest, index);
}

inline Status StreamList::take(std::uint32_t slot, std::uint64_t index) {
  const Status status = check_seen(slot, index);
  if (status == Status::ok) {
    mark(slot, index);
  }
  return status;
}

}  // namespace sluice::srtp
