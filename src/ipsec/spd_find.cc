#include <algorithm>
#include <array>
#include <limits>

#include "base/prefetch.h"
#include "ipsec/spd.h"

namespace sluice::ipsec {

// Keys of one family that are searched for together.
struct Spd::Search {
  std::array<const PacketKey*, burst> key;
  std::array<const PolicyEntry*, burst> best{};
  // Those that the next tuple may have a better one for; their hashes in this one, and whom the table names.
  std::array<std::uint8_t, burst> open;
  std::array<std::uint64_t, burst> hash;
  std::array<std::uint32_t, burst> probable;
};

const PolicyEntry* Spd::match(const Tuples::Tuple& tuple, const PacketKey& key, std::uint64_t hash,
                              std::uint32_t probable) const {
  const auto is = [&](std::uint32_t index) {
    const PolicyEntry& entry = *pool_.at(index);
    std::uint64_t differs = entry.tuple ^ tuple.number;
    for (std::size_t i = 0; i < 2; ++i) differs |= (key.word[i] & tuple.mask.word[i]) ^ entry.value[i];
    if (differs != 0 || key.family() == 4) return differs == 0;
    for (std::size_t i = 0; i < 3; ++i) differs |= (key.word[i + 2] & tuple.mask.word[i + 2]) ^ entry.more_value[i];
    return differs == 0;
  };
  std::uint32_t index = probable;
  if (index == LineTable::unsure || (index != LineTable::none && !is(index))) index = table_.find(hash, is);
  return index == LineTable::none ? nullptr : pool_.at(index);
}

void Spd::search_large(const std::vector<Tuples::Tuple>& tuples, Search& search, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) search.open[i] = static_cast<std::uint8_t>(i);
  std::size_t open = count;
  for (const Tuples::Tuple& tuple : tuples) {
    std::size_t still = 0;
    for (std::size_t at = 0; at < open; ++at) {
      const std::uint8_t i = search.open[at];
      const PolicyEntry* const best = search.best[i];
      if (best != nullptr && best->rank < tuple.lowest) continue;
      search.open[still] = i;
      search.hash[still] = masked_hash(*search.key[i], tuple.mask, tuple.seed);
      table_.prefetch(search.hash[still++]);
    }
    open = still;
    if (open == 0) return;
    for (std::size_t at = 0; at < open; ++at) {
      search.probable[at] = table_.probable(search.hash[at]);
      if (search.probable[at] < LineTable::unsure) prefetch(pool_.at(search.probable[at]));
    }
    for (std::size_t at = 0; at < open; ++at) {
      const std::uint8_t i = search.open[at];
      const PolicyEntry* const policy = match(tuple, *search.key[i], search.hash[at], search.probable[at]);
      if (policy == nullptr) continue;
      if (search.best[i] == nullptr || policy->is_before(*search.best[i])) search.best[i] = policy;
    }
  }
}

template <std::size_t words>
void Spd::find_family(const Tuples::Family<words>& family, std::uint64_t serial, std::span<const PacketKey> keys,
                      const PolicyEntry** found, PolicyCache* cache) const {
  Search search;
  std::array<std::uint8_t, burst> row;
  std::array<PolicyCache::Entry*, burst> place;
  const bool asks = cache != nullptr && family.is_long;
  std::size_t count = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if ((keys[i].family() == 4) != (words == 2)) continue;
    row[count] = static_cast<std::uint8_t>(i);
    if (asks) {
      place[count] = &cache->at(masked_hash(keys[i], family.every, seed_));
      prefetch(place[count]);
    }
    ++count;
  }
  if (asks) {
    std::size_t missed = 0;
    for (std::size_t at = 0; at < count; ++at) {
      const PacketKey& key = keys[row[at]];
      const PolicyCache::Entry& entry = *place[at];
      std::uint64_t differs = entry.serial ^ serial;
      for (std::size_t i = 0; i < words; ++i) differs |= (key.word[i] & family.every.word[i]) ^ entry.key.word[i];
      if (differs == 0) {
        found[row[at]] = entry.policy;
      } else {
        row[missed] = row[at];
        place[missed++] = place[at];
      }
    }
    count = missed;
  }
  for (std::size_t at = 0; at < count; ++at) search.key[at] = &keys[row[at]];
  search_large(family.large, search, count);
  for (std::size_t at = 0; at < count; ++at) {
    const PolicyEntry* best = search.best[at];
    const std::uint64_t rank = best == nullptr ? std::numeric_limits<std::uint64_t>::max() : best->rank;
    const PolicyEntry* const packed = family.packed.find(*search.key[at], rank);
    if (packed != nullptr && (best == nullptr || packed->is_before(*best))) best = packed;
    found[row[at]] = best;
    if (!asks) continue;
    for (std::size_t i = 0; i < words; ++i) place[at]->key.word[i] = search.key[at]->word[i] & family.every.word[i];
    place[at]->serial = serial;
    place[at]->policy = best;
  }
}

void Spd::find(const Tuples& tuples, std::span<const PacketKey> keys, const PolicyEntry** found,
               PolicyCache* cache) const {
  for (std::size_t done = 0; done < keys.size(); done += burst) {
    const auto some = keys.subspan(done, std::min(burst, keys.size() - done));
    std::size_t of_ipv4 = 0;
    for (const PacketKey& key : some) of_ipv4 += key.family() == 4 ? 1 : 0;
    if (of_ipv4 != 0) find_family(tuples.lists->ipv4, tuples.serial, some, found + done, cache);
    if (of_ipv4 != some.size()) find_family(tuples.lists->ipv6, tuples.serial, some, found + done, cache);
  }
}

}  // namespace sluice::ipsec
