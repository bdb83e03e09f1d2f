// The inbound half of the security association database (RFC 4301 section 4.4.2): which SA a packet of ESP or AH is
// of, by its SPI, destination and protocol.
//
// Thread-safety: find() any thread, beside one that changes it; what it finds lives as long as the reader holds the
// view that it has it from (view.h). Cost: find() of a burst two lines for each key, which are prefetched. insert(),
// erase() and replace() 0.1 us.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ipsec/line_table.h"
#include "ipsec/sa.h"
#include "ipsec/slot_pool.h"

namespace sluice::ipsec {

// word[0]: the SPI as it lies in the packet; protocol; family. The others: the destination, of IPv4 four bytes and
// zeros.
struct SadKey {
  std::array<std::uint64_t, 3> word{};
  bool operator==(const SadKey&) const = default;
};

// From raw bytes: `spi` points at four bytes, `destination` at 4 or 16, by `family`.
inline SadKey sad_key(const std::uint8_t* spi, std::uint8_t family, const std::uint8_t* destination,
                      Protocol protocol) {
  SadKey key;
  std::uint32_t number;
  std::memcpy(&number, spi, sizeof number);
  key.word[0] = std::uint64_t{family} << 40 | std::uint64_t{static_cast<std::uint8_t>(protocol)} << 32 | number;
  if (family == 4) {
    std::memcpy(&key.word[1], destination, 4);
  } else {
    std::memcpy(&key.word[1], destination, 16);
  }
  return key;
}

class Sad {
 public:
  // The longest burst that is searched for at a time; longer ones are cut.
  static constexpr std::size_t burst = 32;

  explicit Sad(const SlotPool<Sa>& pool);

  // The SA of each key in `found`, which is as long; null: none. It may be dead.
  void find(std::span<const SadKey> keys, Sa** found) const;

  // Of who changes it, one call at a time. `sa` is inbound, of the pool, complete, and no other has its id.
  void insert(const Sa& sa);
  void erase(const Sa& sa);
  // `by` has the id of `sa`, which is there. In one step: readers find the one or the other.
  void replace(const Sa& sa, const Sa& by);

 private:
  std::uint64_t hash_of(const SadKey& key) const;

  const SlotPool<Sa>& pool_;
  LineTable table_;
  const std::uint64_t seed_;
};

}  // namespace sluice::ipsec
