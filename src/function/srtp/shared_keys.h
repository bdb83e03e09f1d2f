// Which master keys streams that protect have now, so that two with the same one are noticed: where both carry the same
// SSRC, its packets are enciphered under one keystream, a two-time pad (RFC 3711 section 9.1). Which SSRCs come is not
// known before they do, so that it is no mistake.
//
// Of RTSP's streams none is looked at: their keys are drawn, each once. Nor is what carries RTCP alone: it has other
// session keys, and RTP beside it, which is looked at. A key is its master_hashes (spent_keys.h), salt included:
// another salt is another keystream. Thread-safety: none. Cost: a look-up for each master key that comes or goes; some
// 150 B for each that is there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "function/srtp/media_stream.h"

namespace sluice::function {

class SharedKeys {
 public:
  // Of a stream that is in force from now on: one that has one of its keys already, if there is any.
  std::optional<MediaKey> come(const MediaStreamSettings& stream);
  void go(const MediaStreamSettings& stream);
  bool empty() const { return users_.empty(); }

 private:
  std::unordered_map<std::uint64_t, std::unordered_set<MediaKey, MediaKeyHash>> users_;  // by master_hashes
};

// The sentence on one that has come and the other; it shows no key.
std::string shared_key_warning(const MediaStreamSettings& stream, const MediaStreamSettings& other);

// Of streams that are read and not in force: a sentence on each that has a key of one before it, but for the last of
// many, which says how many more there are.
std::vector<std::string> shared_key_notes(std::vector<MediaStreamSettings> streams);

}  // namespace sluice::function
