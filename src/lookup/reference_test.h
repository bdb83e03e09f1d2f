// For tests: longest-prefix match by its definition, and the addresses at which tables go wrong.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <unordered_map>
#include <vector>

#include "lookup/fib.h"
#include "lookup/trie.h"
#include "packet/ip_address.h"

namespace sluice::lookup {

// Tries every length, from the longest on, in a hash of prefixes.
class Reference {
 public:
  void add(const packet::IpPrefix& prefix, NextHopId next_hop) { routes_[prefix] = next_hop; }
  bool remove(const packet::IpPrefix& prefix) { return routes_.erase(prefix) != 0; }
  bool has(const packet::IpPrefix& prefix) const { return routes_.contains(prefix); }
  std::size_t size() const { return routes_.size(); }
  NextHopId lookup(const packet::IpAddress& address) const {
    for (int length = static_cast<int>(address.bits()); length >= 0; --length) {
      const auto at = routes_.find(packet::IpPrefix::of(address, static_cast<unsigned>(length)));
      if (at != routes_.end()) {
        return at->second;
      }
    }
    return no_route;
  }

 private:
  struct Hash {
    std::size_t operator()(const packet::IpPrefix& prefix) const {
      std::uint64_t words[2];
      std::memcpy(words, prefix.address.bytes.data(), sizeof words);
      return (words[0] * 0x9e3779b97f4a7c15ULL ^ words[1]) * 0xbf58476d1ce4e5b9ULL + prefix.length;
    }
  };
  std::unordered_map<packet::IpPrefix, NextHopId, Hash> routes_;
};

inline packet::IpAddress last_address(const packet::IpPrefix& prefix) {
  packet::IpAddress address = prefix.address;
  for (unsigned bit = prefix.length; bit < address.bits(); ++bit) {
    address.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80U >> (bit % 8));
  }
  return address;
}

// The address before (step 0xff) or after (step 1), wrapping at the ends.
inline packet::IpAddress neighbour(packet::IpAddress address, bool after) {
  for (unsigned byte = address.bits() / 8; byte-- > 0;) {
    const std::uint8_t was = address.bytes[byte];
    address.bytes[byte] = static_cast<std::uint8_t>(after ? was + 1 : was - 1);
    if (was != (after ? 0xff : 0)) {
      break;
    }
  }
  return address;
}

inline packet::IpAddress random_address(int family, std::mt19937_64& random) {
  const std::uint64_t bits[2] = {random(), random()};
  return packet::IpAddress::from_bytes(family, bits);
}

// The first and last address of the prefix, those beside it, and one inside.
inline void append_edges(const packet::IpPrefix& prefix, std::mt19937_64& random, std::vector<packet::IpAddress>& out) {
  const packet::IpAddress last = last_address(prefix);
  packet::IpAddress inside = random_address(prefix.address.family, random);
  for (unsigned byte = 0; byte < inside.bytes.size(); ++byte) {
    inside.bytes[byte] = static_cast<std::uint8_t>(
        (inside.bytes[byte] & (prefix.address.bytes[byte] ^ last.bytes[byte])) | prefix.address.bytes[byte]);
  }
  out.insert(out.end(), {prefix.address, last, neighbour(prefix.address, false), neighbour(last, true), inside});
}

inline std::vector<NextHopId> lookup_all(const Fib& fib, const std::vector<packet::IpAddress>& addresses) {
  std::vector<NextHopId> out(addresses.size());
  if (!addresses.empty() && addresses.front().family == 4) {
    std::vector<std::uint32_t> keys;
    for (const auto& address : addresses) {
      keys.push_back(address.v4_host_order());
    }
    fib.lookup4(keys.data(), out.data(), static_cast<unsigned>(keys.size()));
  } else if (!addresses.empty()) {
    std::vector<std::uint8_t> keys(addresses.size() * 16);
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      std::memcpy(&keys[i * 16], addresses[i].bytes.data(), 16);
    }
    fib.lookup6(reinterpret_cast<const std::uint8_t(*)[16]>(keys.data()), out.data(),
                static_cast<unsigned>(addresses.size()));
  }
  return out;
}

inline NextHopId lookup_one(const Trie& trie, const packet::IpAddress& address) {
  return address.family == 4 ? trie.lookup4(address.v4_host_order()) : trie.lookup6(address.bytes.data());
}

// Prefixes that overlap a lot: few distinct bits, lengths at and around the strides, and many that touch the last
// address.
inline packet::IpPrefix random_overlapping_prefix(int family, std::mt19937_64& random) {
  packet::IpAddress address = random_address(family, random);
  const unsigned bits = address.bits();
  for (unsigned byte = 0; byte < bits / 8; ++byte) {
    constexpr std::uint8_t common[] = {0x00, 0xff, 0x0a, 0x80, 0xfe};
    if (random() % 8 != 0) {
      address.bytes[byte] = common[random() % (byte < 3 ? 2 : 5)];
    }
  }
  const unsigned near_stride = static_cast<unsigned>(random() % (bits / 8 + 1) * 8 + random() % 3);
  const unsigned length = random() % 2 == 0 ? static_cast<unsigned>(random() % (bits + 1)) : near_stride;
  return packet::IpPrefix::of(address, length);
}

}  // namespace sluice::lookup
