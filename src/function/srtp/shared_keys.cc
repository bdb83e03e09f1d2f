#include "function/srtp/shared_keys.h"

#include <algorithm>

#include "function/srtp/spent_keys.h"

namespace sluice::function {
namespace {

constexpr std::size_t most_notes = 16;

bool is_looked_at(const MediaStreamSettings& stream) {
  return stream.keyless == Keyless::no && stream.direction == srtp::Direction::protect &&
         stream.origin != MediaOrigin::rtsp && stream.carries != Carries::rtcp;
}

std::string named(const MediaStreamSettings& stream) {
  return stream.name + " (" + (stream.place.empty() ? "of the API" : stream.place) + ")";
}

}  // namespace

std::optional<MediaKey> SharedKeys::come(const MediaStreamSettings& stream) {
  std::optional<MediaKey> other;
  if (!is_looked_at(stream)) return other;
  for (const std::uint64_t hash : stream.master_hashes) {
    if (hash == 0) continue;
    auto& users = users_[hash];
    const auto is_another = [&](const MediaKey& user) { return !(user == stream.key); };
    if (const auto at = std::ranges::find_if(users, is_another); at != users.end() && !other) other = *at;
    users.insert(stream.key);
  }
  return other;
}

void SharedKeys::go(const MediaStreamSettings& stream) {
  if (!is_looked_at(stream)) return;
  for (const std::uint64_t hash : stream.master_hashes) {
    const auto at = users_.find(hash);
    if (at == users_.end()) continue;
    at->second.erase(stream.key);
    if (at->second.empty()) users_.erase(at);
  }
}

std::string shared_key_warning(const MediaStreamSettings& stream, const MediaStreamSettings& other) {
  return "the SRTP stream " + named(stream) + " protects with a master key of " + named(other) +
         ": where both carry the same SSRC, its packets are enciphered twice under one keystream, which gives both "
         "away (RFC 3711 section 9.1). Give each a key of its own: head -c " +
         std::to_string(srtp::facts(stream.crypto.suite).key_and_salt_length()) + " /dev/urandom | base64";
}

std::vector<std::string> shared_key_notes(std::vector<MediaStreamSettings> streams) {
  std::vector<std::string> notes;
  const auto hasher = SpentKeys::make();
  if (!hasher) return notes;
  SharedKeys keys;
  std::size_t more = 0;
  for (MediaStreamSettings& stream : streams) {
    stream.master_hashes = hasher->master_hashes_of(stream);
    const auto shares = keys.come(stream);
    if (!shares) continue;
    if (notes.size() == most_notes) {
      ++more;
    } else {
      notes.push_back(shared_key_warning(stream, *std::ranges::find(streams, *shares, &MediaStreamSettings::key)));
    }
  }
  if (more != 0) {
    notes.push_back(std::to_string(more) + (more == 1 ? " more SRTP stream protects" : " more SRTP streams protect") +
                    " with a master key of another");
  }
  return notes;
}

}  // namespace sluice::function
