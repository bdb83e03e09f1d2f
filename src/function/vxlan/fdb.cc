#include "function/vxlan/fdb.h"

#include <algorithm>
#include <bit>

#include "packet/headers.h"

namespace sluice::function {
namespace {

constexpr unsigned remote_shift = 48;

constexpr std::uint64_t entry_of(std::uint64_t mac, RemoteId remote) {
  return std::uint64_t{remote} << remote_shift | mac;
}

}  // namespace

Fdb::Fdb(std::uint32_t most) : most_(most) {
  const std::uint32_t buckets = std::bit_ceil(std::max(2 * most / ways, 1U));
  mask_ = buckets - 1;
  buckets_ = std::make_unique<Bucket[]>(buckets);
  seen_ = std::make_unique<std::atomic<std::uint32_t>[]>(std::size_t{buckets} * ways);
}

std::uint32_t Fdb::bucket_of(std::uint64_t mac) const {
  return static_cast<std::uint32_t>(mac * 0x9e3779b97f4a7c15U >> 32) & mask_;
}

Fdb::Learned Fdb::learn(std::uint64_t mac, RemoteId remote, std::uint32_t now) {
  const std::uint32_t at = bucket_of(mac);
  Bucket& bucket = buckets_[at];
  const std::uint64_t wanted = entry_of(mac, remote);
  for (std::uint32_t way = 0; way < ways; ++way) {
    std::uint64_t entry = bucket.entry[way].load(std::memory_order_relaxed);
    if (entry == 0 || (entry & packet::mac_word_mask) != mac) continue;
    auto& seen = seen_[at * ways + way];
    if (seen.load(std::memory_order_relaxed) != now) seen.store(now, std::memory_order_relaxed);
    if (entry == wanted) return Learned::known;
    // Another lane may have moved or forgotten it meanwhile: that one is right, too.
    bucket.entry[way].compare_exchange_strong(entry, wanted, std::memory_order_relaxed);
    return Learned::moved;
  }
  if (count_.load(std::memory_order_relaxed) >= most_) return Learned::full;
  for (std::uint32_t way = 0; way < ways; ++way) {
    std::uint64_t entry = bucket.entry[way].load(std::memory_order_relaxed);
    if (entry != 0) continue;
    // Before the entry is there, or age() could take a time of the place's last one for its own.
    seen_[at * ways + way].store(now, std::memory_order_relaxed);
    if (bucket.entry[way].compare_exchange_strong(entry, wanted, std::memory_order_release)) {
      count_.fetch_add(1, std::memory_order_relaxed);
      return Learned::added;
    }
    if ((entry & packet::mac_word_mask) == mac) return Learned::known;
  }
  return Learned::full;
}

RemoteId Fdb::find(std::uint64_t mac) const {
  const Bucket& bucket = buckets_[bucket_of(mac)];
  for (const auto& place : bucket.entry) {
    const std::uint64_t entry = place.load(std::memory_order_relaxed);
    if (entry != 0 && (entry & packet::mac_word_mask) == mac) return static_cast<RemoteId>(entry >> remote_shift);
  }
  return no_remote;
}

void Fdb::remove(std::uint32_t bucket, std::uint32_t way, std::uint64_t entry) {
  if (buckets_[bucket].entry[way].compare_exchange_strong(entry, 0, std::memory_order_relaxed)) {
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Fdb::age(std::uint32_t oldest) {
  for (std::uint32_t b = 0; b <= mask_; ++b) {
    for (std::uint32_t way = 0; way < ways; ++way) {
      const std::uint64_t entry = buckets_[b].entry[way].load(std::memory_order_acquire);
      if (entry != 0 && seen_[b * ways + way].load(std::memory_order_relaxed) < oldest) remove(b, way, entry);
    }
  }
}

void Fdb::forget(const std::function<bool(RemoteId)>& is_gone) {
  for (std::uint32_t b = 0; b <= mask_; ++b) {
    for (std::uint32_t way = 0; way < ways; ++way) {
      const std::uint64_t entry = buckets_[b].entry[way].load(std::memory_order_relaxed);
      if (entry != 0 && is_gone(static_cast<RemoteId>(entry >> remote_shift))) remove(b, way, entry);
    }
  }
}

}  // namespace sluice::function
