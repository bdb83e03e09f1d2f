#include <algorithm>
#include <array>

#include "base/prefetch.h"
#include "ipsec/spd.h"

namespace sluice::ipsec {

// Keys of one family that are searched for together.
struct Spd::Search {
  std::array<const PacketKey*, burst> key;
  std::array<const PolicyEntry*, burst> best{};
  // Those that the next tuple may have a better one for, and their hashes in this one.
  std::array<std::uint8_t, burst> open;
  std::array<std::uint64_t, burst> hash;
};

const PolicyEntry* Spd::match(const Tuples::Tuple& tuple, const PacketKey& key, std::uint64_t hash) const {
  const std::uint32_t index = table_.find(hash, [&](std::uint32_t candidate) {
    const PolicyEntry& entry = *pool_.at(candidate);
    std::uint64_t differs = entry.tuple ^ tuple.number;
    for (std::size_t i = 0; i < 2; ++i) differs |= (key.word[i] & tuple.mask.word[i]) ^ entry.value[i];
    if (differs != 0 || key.family() == 4) return differs == 0;
    for (std::size_t i = 0; i < 3; ++i) differs |= (key.word[i + 2] & tuple.mask.word[i + 2]) ^ entry.more_value[i];
    return differs == 0;
  });
  return index == LineTable::none ? nullptr : pool_.at(index);
}

void Spd::search(const std::vector<Tuples::Tuple>& tuples, Search& search, std::size_t count) const {
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
      const std::uint32_t index = table_.probable(search.hash[at]);
      if (index != LineTable::none) prefetch(pool_.at(index));
    }
    for (std::size_t at = 0; at < open; ++at) {
      const std::uint8_t i = search.open[at];
      const PolicyEntry* const policy = match(tuple, *search.key[i], search.hash[at]);
      if (policy == nullptr) continue;
      if (search.best[i] == nullptr || policy->is_before(*search.best[i])) search.best[i] = policy;
    }
  }
}

void Spd::find_burst(const Tuples& tuples, std::span<const PacketKey> keys, const PolicyEntry** found,
                     PolicyCache* cache) const {
  const Tuples::Lists& lists = *tuples.lists;
  for (const bool ipv4 : {true, false}) {
    const std::vector<Tuples::Tuple>& list = ipv4 ? lists.ipv4 : lists.ipv6;
    const PacketKey& every = ipv4 ? lists.mask4 : lists.mask6;
    PolicyCache* const asked = list.size() < tuples_to_cache ? nullptr : cache;
    Search one;
    std::array<std::uint8_t, burst> row;
    std::array<PolicyCache::Entry*, burst> place;
    std::size_t count = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if ((keys[i].family() == 4) != ipv4) continue;
      found[i] = nullptr;
      row[count] = static_cast<std::uint8_t>(i);
      if (asked != nullptr) {
        place[count] = &asked->at(masked_hash(keys[i], every, seed_));
        prefetch(place[count]);
      }
      ++count;
    }
    std::size_t missed = count;
    if (asked != nullptr) {
      missed = 0;
      for (std::size_t at = 0; at < count; ++at) {
        const PacketKey& key = keys[row[at]];
        const PolicyCache::Entry& entry = *place[at];
        std::uint64_t differs = entry.serial ^ tuples.serial;
        for (std::size_t i = 0; i < 5; ++i) differs |= (key.word[i] & every.word[i]) ^ entry.key.word[i];
        if (differs == 0) {
          found[row[at]] = entry.policy;
        } else {
          row[missed] = row[at];
          place[missed++] = place[at];
        }
      }
    }
    for (std::size_t at = 0; at < missed; ++at) one.key[at] = &keys[row[at]];
    search(list, one, missed);
    for (std::size_t at = 0; at < missed; ++at) {
      found[row[at]] = one.best[at];
      if (asked == nullptr) continue;
      for (std::size_t i = 0; i < 5; ++i) place[at]->key.word[i] = one.key[at]->word[i] & every.word[i];
      place[at]->serial = tuples.serial;
      place[at]->policy = one.best[at];
    }
  }
}

void Spd::find(const Tuples& tuples, std::span<const PacketKey> keys, const PolicyEntry** found,
               PolicyCache* cache) const {
  for (std::size_t done = 0; done < keys.size(); done += burst) {
    find_burst(tuples, keys.subspan(done, std::min(burst, keys.size() - done)), found + done, cache);
  }
}

}  // namespace sluice::ipsec
