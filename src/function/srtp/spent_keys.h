// Which keys streams that protect have had and left, so that one that comes back to its key is noticed: its indexes
// begin anew, and a source that goes on is enciphered twice under one keystream, a two-time pad (RFC 3711 section 9.1).
//
// Kept is no key but 64 bits of a keyed hash of it and the 5-tuple, under a key of this object's own that nobody else
// has; of so many the ones that were left last. Streams whose keys the RTSP proxy has drawn are not looked at: each is
// drawn once. Thread-safety: none. Cost: a microsecond for each master key that comes or goes; 80 B for each that is
// remembered.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "crypto/secret.h"
#include "function/srtp/media_stream.h"

namespace sluice::function {

class SpentKeys {
 public:
  static constexpr std::size_t usual_most = 65'536;
  // Without random bytes of the system's for its own key: an Error.
  static Expected<SpentKeys> make(std::size_t most = usual_most);
  SpentKeys(SpentKeys&&) = default;
  SpentKeys& operator=(SpentKeys&&) = default;

  // For MediaStreamSettings::key_hashes: of each key of the stream, under its 5-tuple; of RTSP's streams none. One is 0
  // where OpenSSL has refused, and is like no other.
  std::vector<std::uint64_t> hashes_of(const MediaStreamSettings& stream) const;
  // For MediaStreamSettings::master_hashes: likewise, under no 5-tuple.
  std::vector<std::uint64_t> master_hashes_of(const MediaStreamSettings& stream) const;
  // Of a stream that leaves: from now on its keys are spent. Here and below: by its key_hashes, or where these are not
  // there by its keys.
  void spend(const MediaStreamSettings& stream);
  // Whether a stream that comes has one of these.
  bool has(const MediaStreamSettings& stream) const;
  std::size_t size() const { return by_age_.size(); }

 private:
  explicit SpentKeys(std::size_t most) : most_(most) {}
  std::uint64_t hash_of(const MediaKey& ends, const media::sdp::CryptoKey& key) const;

  std::size_t most_;
  crypto::Secret<32> own_;
  std::list<std::uint64_t> by_age_;  // the one that was left last in front
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> hashes_;
};

}  // namespace sluice::function
