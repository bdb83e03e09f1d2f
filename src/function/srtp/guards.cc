#include "function/srtp/guards.h"

#include <cstring>

namespace sluice::function {

// The clear side's media go to the client.
Guards::Client Guards::client_of(const MediaKey& stream) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, stream.destination, sizeof bits);
  return {stream.family, bits};
}

std::optional<MediaKey> Guards::add(const MediaKey& key, const MediaKey& stream, Time now) {
  const Guard guard{0, now, next_++, client_of(stream)};
  std::set<std::uint64_t>& own = clients_[guard.client];
  std::optional<MediaKey> too_many;
  if (own.size() >= share_) too_many = by_age_.at(*own.begin());
  own.insert(guard.number);
  by_age_.emplace(guard.number, key);
  guards_.emplace(key, guard);
  return too_many;
}

void Guards::erase(const MediaKey& key) {
  const auto at = guards_.find(key);
  if (at == guards_.end()) return;
  const auto client = clients_.find(at->second.client);
  client->second.erase(at->second.number);
  if (client->second.empty()) clients_.erase(client);
  by_age_.erase(at->second.number);
  guards_.erase(at);
}

}  // namespace sluice::function
