#include "match/automaton/key_scan.h"

#include <algorithm>

namespace sluice::match {
namespace {

// The keys of a bucket whose bytes are the last ones of `value`, of which `available` are there.
void compare(const GramView& table, const std::uint32_t* bucket, std::uint64_t value, std::size_t available,
             unsigned klass, std::vector<std::uint32_t>& keys) {
  for (std::uint32_t at = bucket[0]; at < bucket[1]; ++at) {
    const GramEntry& entry = table.entry[at];
    const unsigned length = entry.id_size % 16;
    const bool same = (value ^ entry.bytes) >> (64 - 8 * length) == 0;
    if (same && length <= available && (entry.classes >> klass & 1) != 0) keys.push_back(entry.id_size / 16);
  }
}

}  // namespace

void scan_keys(const GramView& table, std::string_view bytes, std::size_t from, unsigned klass,
               std::vector<std::uint32_t>& keys) {
  const bool has_short = (table.short_classes >> klass & 1) != 0;
  std::uint64_t value = 0;  // the last eight bytes, the last one highest
  for (std::size_t e = from < Key::max_length ? 0 : from - Key::max_length; e < bytes.size(); ++e) {
    value = value >> 8 | std::uint64_t{fold(static_cast<std::uint8_t>(bytes[e]))} << 56;
    if (e < from) continue;
    const std::size_t available = e + 1;
    if (available >= Key::gram) {
      const std::uint32_t hash = GramTable::gram_hash(static_cast<std::uint32_t>(value >> 32));
      const std::uint32_t bit = hash >> table.filter_shift;
      if ((table.filter[bit / 32] >> bit % 32 & 1) != 0) {
        compare(table, table.bucket + (hash >> table.bucket_shift), value, available, klass, keys);
      }
    }
    if (has_short && available >= 2) {
      const auto two = static_cast<std::uint32_t>(value >> 48);
      if ((table.short_ends[klass * GramTable::short_words + two / 32] >> two % 32 & 1) != 0) {
        compare(table, table.short_bucket + GramTable::short_hash(two), value, available, klass, keys);
      }
    }
  }
}

}  // namespace sluice::match
