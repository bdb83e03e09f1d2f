// Which remote a station is behind: the forwarding table of one tunnel, learned from what comes out of it (RFC 7348
// section 4.1). Lanes learn and look up at the same time, without locks: an entry is one word, so that a reader sees an
// address with its own remote or none.
//
// Buckets of eight entries, twice as many places as `most` entries need. A station whose bucket is full, or that would
// be one more than `most`, is not learned, which is counted: its frames are flooded.
//
// Thread-safety: learn() and find() any thread; age() and forget() one at a time. No call allocates but the
// constructor. Cost: a hash and one line of memory. Memory: 12 bytes for each place.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace sluice::function {

using RemoteId = std::uint16_t;
inline constexpr RemoteId no_remote = 0xffff;

class Fdb {
 public:
  enum class Learned : std::uint8_t { known, added, moved, full };

  explicit Fdb(std::uint32_t most);

  // `mac`: as packet::mac_word(). `now`: seconds; it never goes back.
  Learned learn(std::uint64_t mac, RemoteId remote, std::uint32_t now);
  RemoteId find(std::uint64_t mac) const;  // no_remote: not known
  // Forgets what was learned last before `oldest`.
  void age(std::uint32_t oldest);
  void forget(const std::function<bool(RemoteId)>& is_gone);
  std::uint32_t size() const { return count_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t ways = 8;
  struct alignas(64) Bucket {
    std::atomic<std::uint64_t> entry[ways]{};  // remote << 48 | mac; 0: free
  };
  std::uint32_t bucket_of(std::uint64_t mac) const;
  void remove(std::uint32_t bucket, std::uint32_t way, std::uint64_t entry);

  const std::uint32_t most_;
  std::uint32_t mask_ = 0;
  std::unique_ptr<Bucket[]> buckets_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> seen_;  // seconds, by place
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace sluice::function
