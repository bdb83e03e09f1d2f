// Which of many sets of addresses hold one: of lists of bad addresses, which rules have by the thousand, each packet
// meets none or one.
//
//   AddressIndex index({{7, &set}, {8, &other}});
//   index.collect(address.bytes.data(), address.family, [&](std::uint32_t number) { ... });
//
// The addresses are cut into ranges within which nothing changes, each with the list of the sets that hold it; ranges
// of equal lists share one. Sets that would need too many entries are not taken (left_out()): who asks has to try those
// himself.
//
// Immutable once made; any thread. Cost of collect(): 5 to 20 ns. Memory: 256 KiB, and some 16 bytes for a range.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "match/rules/address_set.h"

namespace sluice::match {

class AddressIndex {
 public:
  struct Entry {
    std::uint32_t number;  // what is reported of the set
    const AddressSet* addresses;
  };
  static constexpr std::size_t most_listed = std::size_t{1} << 22;  // entries of all lists

  AddressIndex() = default;
  // The widest sets are left out until the others need no more than `most` entries.
  explicit AddressIndex(std::vector<Entry> entries, std::size_t most = most_listed);

  bool is_empty() const { return lists_.size() <= 1; }
  const std::vector<std::uint32_t>& left_out() const { return left_out_; }

  // `address`: 4 or 16 bytes, in network order. Each number once.
  template <typename Found>
  void collect(const std::uint8_t* address, std::uint8_t family, const Found& found) const {
    if (is_empty()) return;
    for (const std::uint32_t number : list_of(address, family)) found(number);
  }

 private:
  struct List {
    std::uint32_t begin = 0, count = 0;
  };
  using Address6 = std::array<std::uint8_t, 16>;

  std::span<const std::uint32_t> list_of(const std::uint8_t* address, std::uint8_t family) const {
    const List& list = lists_[family == 4 ? list_of_v4(address) : list_of_v6(address)];
    return {listed_.data() + list.begin, list.count};
  }
  std::uint32_t list_of_v4(const std::uint8_t* address) const {
    std::uint32_t word = 0;
    std::memcpy(&word, address, sizeof word);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap32(word);
    // The first of the ranges that begin within the address's /16 whose begin is beyond it.
    std::uint32_t low = first_v4_[word >> 16], high = first_v4_[(word >> 16) + 1];
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (begin_v4_[middle] <= word) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return list_v4_[low - 1];
  }
  std::uint32_t list_of_v6(const std::uint8_t* address) const;
  bool build(std::span<const Entry> entries, std::size_t most);

  // Lists of numbers; the first one is empty.
  std::vector<List> lists_;
  std::vector<std::uint32_t> listed_;
  // By ranges, in their order: where each begins and its list. The first ranges begin at the least address.
  std::vector<std::uint32_t> begin_v4_, list_v4_;
  std::vector<std::uint32_t> first_v4_;  // by the upper 16 bits: the first range that begins there or later
  std::vector<Address6> begin_v6_;
  std::vector<std::uint32_t> list_v6_;
  std::vector<std::uint32_t> left_out_;
};

}  // namespace sluice::match
