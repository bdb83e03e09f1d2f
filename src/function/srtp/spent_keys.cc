#include "function/srtp/spent_keys.h"

#include <algorithm>
#include <type_traits>

#include "crypto/keyed_hash.h"
#include "media/secret.h"

namespace sluice::function {
namespace {

bool is_looked_at(const MediaStreamSettings& stream) {
  return stream.keyless == Keyless::no && stream.direction == srtp::Direction::protect &&
         stream.origin != MediaOrigin::rtsp;
}

}  // namespace

Expected<SpentKeys> SpentKeys::make(std::size_t most) {
  SpentKeys keys(most);
  if (const auto ok = media::system_random(keys.own_.first(sizeof keys.own_.bytes)); !ok) {
    return tl::unexpected(ok.error());
  }
  return keys;
}

std::uint64_t SpentKeys::hash_of(const MediaKey& ends, const media::sdp::CryptoKey& key) const {
  static_assert(std::has_unique_object_representations_v<MediaKey>);
  const std::span<const std::uint8_t> tuple(reinterpret_cast<const std::uint8_t*>(&ends), sizeof ends);
  return crypto::keyed_hash(own_.bytes, {tuple, key.key.bytes()});
}

std::vector<std::uint64_t> SpentKeys::hashes_of(const MediaStreamSettings& stream) const {
  std::vector<std::uint64_t> hashes;
  if (stream.origin == MediaOrigin::rtsp) return hashes;
  for (const media::sdp::CryptoKey& key : stream.crypto.keys) hashes.push_back(hash_of(stream.key, key));
  return hashes;
}

std::vector<std::uint64_t> SpentKeys::master_hashes_of(const MediaStreamSettings& stream) const {
  std::vector<std::uint64_t> hashes;
  if (stream.origin == MediaOrigin::rtsp) return hashes;
  for (const media::sdp::CryptoKey& key : stream.crypto.keys)
    hashes.push_back(crypto::keyed_hash(own_.bytes, {key.key.bytes()}));
  return hashes;
}

void SpentKeys::spend(const MediaStreamSettings& stream) {
  if (!is_looked_at(stream)) return;
  for (const std::uint64_t hash : stream.key_hashes.empty() ? hashes_of(stream) : stream.key_hashes) {
    if (hash == 0) continue;
    if (const auto known = hashes_.find(hash); known != hashes_.end()) {
      by_age_.splice(by_age_.begin(), by_age_, known->second);
      continue;
    }
    if (by_age_.size() == most_) {
      hashes_.erase(by_age_.back());
      by_age_.pop_back();
    }
    by_age_.push_front(hash);
    hashes_.emplace(hash, by_age_.begin());
  }
}

bool SpentKeys::has(const MediaStreamSettings& stream) const {
  if (hashes_.empty() || !is_looked_at(stream)) return false;
  const std::vector<std::uint64_t> hashes = stream.key_hashes.empty() ? hashes_of(stream) : stream.key_hashes;
  return std::ranges::any_of(hashes, [&](std::uint64_t hash) { return hashes_.contains(hash); });
}

}  // namespace sluice::function
