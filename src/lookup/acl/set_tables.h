// The named sets of a list as tables that answer for a key which tags it has (tag_plan.h): both addresses and both
// ports are looked up, each once, whatever the number of sets.
//
// Tables never change; a set that does makes others, which are exchanged (base/published.h). Rules stay as they are.
//
// Thread-safety: build() on the control thread; all else any thread. Memory: 8 bytes for each end of an IPv4 entry or
// of ports, 32 of IPv6. Cost: a build sorts, 10,000 entries some ms; tags() one binary search for each of the four, of
// families and ports that no set has nothing; of 10,000 entries 10 to 30 ns (docs/acl.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "lookup/acl/acl_rule.h"
#include "lookup/acl/named_set.h"
#include "lookup/acl/tag_plan.h"

namespace sluice::lookup::acl {

class SetTables {
 public:
  // Of those sets that the plan uses.
  static SetTables build(std::span<const NamedSet> sets, const TagPlan& plan);

  std::uint16_t tags(const Key4& key) const {
    return addresses4_.empty()
               ? of_ports(key)
               : merged(addresses4_.at(read32(key.source)), addresses4_.at(read32(key.destination))) | of_ports(key);
  }
  std::uint16_t tags(const Key6& key) const {
    return addresses6_.empty()
               ? of_ports(key)
               : merged(addresses6_.at(read128(key.source)), addresses6_.at(read128(key.destination))) | of_ports(key);
  }

 private:
  // What holds from one number to the next: the bits as a source in the lower half, as a destination in the upper.
  template <typename Value>
  struct Segments {
    std::vector<Value> starts;  // ascending, the first one 0; none: no set has any
    std::vector<std::uint32_t> bits;
    bool empty() const { return starts.empty(); }
    std::uint32_t at(Value value) const {
      // The last start that is not above the value, without a branch that nobody can predict.
      const Value* first = starts.data();
      for (std::size_t count = starts.size(); count > 1;) {
        const std::size_t half = count / 2;
        first += first[half] <= value ? half : 0;
        count -= half;
      }
      return bits[static_cast<std::size_t>(first - starts.data())];
    }
  };
  template <typename Value>
  static Segments<Value> segments(std::span<const NamedSet> sets, std::span<const std::uint32_t> bits_of_set,
                                  int family, Number most);

  static std::uint16_t merged(std::uint32_t source, std::uint32_t destination) {
    return static_cast<std::uint16_t>((source & 0xffff) | destination >> 16);
  }
  template <typename Key>
  std::uint16_t of_ports(const Key& key) const {
    return ports_.empty() ? std::uint16_t{0}
                          : merged(ports_.at(read16(key.source_port)), ports_.at(read16(key.destination_port)));
  }
  static std::uint16_t read16(const std::uint8_t* bytes) {
    return static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]);
  }
  static std::uint32_t read32(const std::uint8_t* bytes) {
    std::uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    return __builtin_bswap32(word);
  }
  static Number read128(const std::uint8_t* bytes) {
    std::uint64_t words[2];
    std::memcpy(words, bytes, sizeof words);
    return Number{__builtin_bswap64(words[0])} << 64 | __builtin_bswap64(words[1]);
  }

  Segments<std::uint32_t> addresses4_;
  Segments<Number> addresses6_;
  Segments<std::uint16_t> ports_;
};

}  // namespace sluice::lookup::acl
