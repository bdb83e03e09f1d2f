#include "match/automaton/gram_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sluice::match {
namespace {

constexpr unsigned least_filter_bits = 15, most_filter_bits = 20;

std::uint64_t packed(const Key& key) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < key.length; ++i) {
    value |= std::uint64_t{key.bytes[i]} << 8 * (Key::max_length - key.length + i);
  }
  return value;
}

std::uint32_t last_four(const Key& key) {
  return static_cast<std::uint32_t>(packed(key) >> 32);
}
std::uint32_t last_two(const Key& key) {
  return last_four(key) >> 16;
}

// Sorts `ids` into buckets: appends their entries, and fills begin[0 .. buckets].
template <typename Bucket>
void fill(const KeySet& keys, std::vector<std::uint32_t> ids, std::uint32_t buckets, std::uint32_t* begin,
          std::vector<GramEntry>& entries, Bucket&& bucket_of) {
  std::stable_sort(ids.begin(), ids.end(), [&](std::uint32_t a, std::uint32_t b) {
    return bucket_of(keys.keys()[a]) < bucket_of(keys.keys()[b]);
  });
  std::size_t at = 0;
  for (std::uint32_t b = 0; b < buckets; ++b) {
    begin[b] = static_cast<std::uint32_t>(entries.size());
    for (; at < ids.size() && bucket_of(keys.keys()[ids[at]]) == b; ++at) {
      const Key& key = keys.keys()[ids[at]];
      entries.push_back({packed(key), ids[at] * 16 + key.length, key.classes});
    }
  }
  begin[buckets] = static_cast<std::uint32_t>(entries.size());
}

}  // namespace

GramTable::GramTable(const KeySet& keys) {
  std::vector<std::uint32_t> grams, shorts;
  for (std::uint32_t k = 0; k < keys.keys().size(); ++k) {
    (keys.keys()[k].length >= Key::gram ? grams : shorts).push_back(k);
  }
  filter_bits_ = std::clamp<unsigned>(std::bit_width(64 * std::max<std::size_t>(grams.size(), 1) - 1),
                                      least_filter_bits, most_filter_bits);
  bucket_bits_ = std::clamp<unsigned>(std::bit_width(2 * std::max<std::size_t>(grams.size(), 1)), 6, filter_bits_);
  const std::uint32_t buckets = 1u << bucket_bits_, short_buckets = 1u << short_bucket_bits;
  short_at_ = (std::size_t{1} << filter_bits_) / 32;
  bucket_at_ = short_at_ + std::size_t{max_classes} * short_words;
  short_bucket_at_ = bucket_at_ + buckets + 1;
  entry_at_ = (short_bucket_at_ + short_buckets + 1 + 3) / 4 * 4;
  words_.resize(entry_at_);
  for (const std::uint32_t k : grams) {
    const std::uint32_t bit = gram_hash(last_four(keys.keys()[k])) >> (32 - filter_bits_);
    words_[bit / 32] |= 1u << bit % 32;
  }
  for (const std::uint32_t k : shorts) {
    const std::uint32_t two = last_two(keys.keys()[k]);
    short_classes_ |= keys.keys()[k].classes;
    for (unsigned c = 0; c < max_classes; ++c) {
      if ((keys.keys()[k].classes >> c & 1) != 0) words_[short_at_ + c * short_words + two / 32] |= 1u << two % 32;
    }
  }
  std::vector<GramEntry> entries;
  fill(keys, grams, buckets, &words_[bucket_at_], entries,
       [&](const Key& key) { return gram_hash(last_four(key)) >> (32 - bucket_bits_); });
  fill(keys, shorts, short_buckets, &words_[short_bucket_at_], entries,
       [](const Key& key) { return short_hash(last_two(key)); });
  words_.resize(entry_at_ + entries.size() * sizeof(GramEntry) / sizeof(std::uint32_t));
  if (!entries.empty()) std::memcpy(&words_[entry_at_], entries.data(), entries.size() * sizeof(GramEntry));
}

GramView GramTable::view(const void* base) const {
  const auto* const words = static_cast<const std::uint32_t*>(base);
  return {words,
          words + short_at_,
          words + bucket_at_,
          words + short_bucket_at_,
          reinterpret_cast<const GramEntry*>(words + entry_at_),
          32 - filter_bits_,
          32 - bucket_bits_,
          short_classes_};
}

}  // namespace sluice::match
