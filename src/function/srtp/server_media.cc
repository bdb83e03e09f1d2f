#include "function/srtp/server_media.h"

#include <algorithm>
#include <cstring>

namespace sluice::function {
namespace {

template <typename T>
T load(const std::uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// 16 bytes, of which the first `length` bits are set.
std::array<std::uint8_t, 16> mask_of(unsigned length) {
  std::array<std::uint8_t, 16> mask{};
  for (unsigned bit = 0; bit < length; ++bit) mask[bit / 8] |= static_cast<std::uint8_t>(0x80 >> bit % 8);
  return mask;
}

}  // namespace

ServerPrefixes::ServerPrefixes(const std::vector<packet::IpPrefix>& prefixes) {
  for (const packet::IpPrefix& prefix : prefixes) {
    const auto mask = mask_of(prefix.length);
    const std::uint8_t* const value = prefix.address.bytes.data();
    if (prefix.address.family == 4) {
      four_.push_back({load<std::uint32_t>(mask.data()), load<std::uint32_t>(value)});
    } else {
      six_.push_back({{load<std::uint64_t>(mask.data()), load<std::uint64_t>(mask.data() + 8)},
                      {load<std::uint64_t>(value), load<std::uint64_t>(value + 8)}});
    }
  }
}

bool ServerPrefixes::contains(int family, const std::uint8_t* address) const {
  if (family == 4) {
    const auto word = load<std::uint32_t>(address);
    return std::ranges::any_of(four_, [&](const Four& one) { return (word & one.mask) == one.value; });
  }
  const auto high = load<std::uint64_t>(address), low = load<std::uint64_t>(address + 8);
  return std::ranges::any_of(six_, [&](const Six& one) {
    return (high & one.mask[0]) == one.value[0] && (low & one.mask[1]) == one.value[1];
  });
}

ServerMedia::ServerMedia(const RtspOptions& options) {
  if (!options.drops_unprotected) return;
  std::vector<packet::IpPrefix> all = options.servers;
  for (const packet::IpPrefix& one : options.upstream_prefixes()) {
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
  servers_ = ServerPrefixes(all);
  own_ = options.listen;
}

bool ServerMedia::goes_to_a_host(const MediaKey& key) const {
  const bool multicast = key.family == 4 ? key.destination[0] >> 4 == 0xe : key.destination[0] == 0xff;
  const auto to = packet::IpAddress::from_bytes(static_cast<int>(key.family), key.destination);
  return !multicast && std::ranges::find(own_, to) == own_.end();
}

}  // namespace sluice::function
