#include "ipsec/sad.h"

#include <algorithm>

#include "base/prefetch.h"
#include "base/random_seed.h"
#include "packet/flow_hash.h"

namespace sluice::ipsec {
namespace {

// Who finds an inbound SA asks its window next, and who has sent the packet.
constexpr std::size_t hot_bytes = 192;

SadKey key_of(const Sa& sa) {
  std::array<std::uint8_t, 4> spi;
  std::memcpy(spi.data(), &sa.spi, spi.size());
  return sad_key(spi.data(), sa.family, sa.destination.data(), sa.protocol);
}

}  // namespace

Sad::Sad(const SlotPool<Sa>& pool) : pool_(pool), table_(pool.capacity()), seed_(random_seed()) {}

std::uint64_t Sad::hash_of(const SadKey& key) const {
  using packet::detail::multiply_fold;
  const std::uint64_t hash = multiply_fold(key.word[0] ^ seed_, key.word[1] ^ 0x9e3779b97f4a7c15U) ^ key.word[2];
  return multiply_fold(hash ^ seed_, 0xa0761d6478bd642fU);
}

void Sad::find(std::span<const SadKey> keys, Sa** found) const {
  std::array<std::uint64_t, burst> hash;
  std::array<std::uint32_t, burst> probable;
  for (std::size_t done = 0; done < keys.size(); done += burst) {
    const std::size_t count = std::min(burst, keys.size() - done);
    for (std::size_t i = 0; i < count; ++i) {
      hash[i] = hash_of(keys[done + i]);
      table_.prefetch(hash[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      probable[i] = table_.probable(hash[i]);
      if (probable[i] < LineTable::unsure) prefetch(pool_.at(probable[i]), hot_bytes);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const SadKey& key = keys[done + i];
      const auto is = [&](std::uint32_t index) { return key_of(*pool_.at(index)) == key; };
      std::uint32_t index = probable[i];
      if (index == LineTable::unsure || (index != LineTable::none && !is(index))) index = table_.find(hash[i], is);
      found[done + i] = index == LineTable::none ? nullptr : pool_.at(index);
    }
  }
}

void Sad::insert(const Sa& sa) {
  table_.insert(hash_of(key_of(sa)), sa.index);
}

void Sad::erase(const Sa& sa) {
  table_.erase(hash_of(key_of(sa)), sa.index);
}

void Sad::replace(const Sa& sa, const Sa& by) {
  table_.replace(hash_of(key_of(sa)), sa.index, by.index);
}

}  // namespace sluice::ipsec
