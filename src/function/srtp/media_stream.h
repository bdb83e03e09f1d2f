// The streams of [[srtp.stream]]: one for each 5-tuple, in one direction, with the channels that protect or unprotect
// what it carries; and the table in which a frame's 5-tuple finds it.
//
// A stream's state is one lane's: the first that brings a frame of it (claim()). RSS and the lanes' own spreading keep
// a 5-tuple on one lane; a frame that comes by another is refused, because two lanes cannot share an index.
// Threads: streams and tables are made and destroyed by the control thread or the one that reloads, one at a time;
// find() any thread; claim() lanes; channels the lane that has claimed it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "crypto/key_table.h"
#include "function/srtp/media_frame.h"
#include "media/sdp/crypto_attribute.h"
#include "media/srtp/channel.h"
#include "packet/ip_address.h"

namespace sluice::function {

enum class Carries : std::uint8_t { rtp, rtcp, both };

struct MediaStreamSettings {
  std::string name;  // "10.0.0.1:5004 -> 10.0.0.2:6000", for messages
  MediaKey key{};
  srtp::Direction direction = srtp::Direction::protect;
  Carries carries = Carries::both;
  media::sdp::CryptoAttribute crypto;
  std::uint32_t max_ssrcs = 16;
  bool passes_others = false;  // what is neither RTP nor RTCP (STUN, DTLS)
  struct Rollover {
    std::uint32_t ssrc, counter;
    bool operator==(const Rollover&) const = default;
  };
  std::optional<Rollover> rollover;  // of RTP

  // In all, keys included: a stream that stays the same keeps its state.
  bool same(const MediaStreamSettings& other) const;
};
MediaKey media_key(const packet::IpAddress& source, std::uint16_t source_port, const packet::IpAddress& destination,
                   std::uint16_t destination_port);

class MediaStream {
 public:
  static Expected<std::shared_ptr<MediaStream>> make(MediaStreamSettings settings, crypto::KeyTable& keys);

  const MediaStreamSettings& settings() const { return settings_; }
  bool protects() const { return settings_.direction == srtp::Direction::protect; }
  // For a packet that begins so; null: it is neither RTP nor RTCP, as far as the stream carries them.
  srtp::Channel* channel_for(std::span<const std::uint8_t> packet, bool& rtcp);

  // A device with a copy of the keys has this stream's if it has as many KeyTable::installs(). Of a stream whose keys
  // are derived anew on the way it never has them all.
  std::uint64_t installs() const { return installs_; }

  // Whether the stream is this lane's; the first who asks gets it.
  bool claim(std::uint32_t lane) {
    const std::uint32_t owner = owner_.load(std::memory_order_relaxed);
    return owner == lane || (owner == nobody && claim_first(lane));
  }

 private:
  static constexpr std::uint32_t nobody = 0xffffffff;
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  struct Leg {
    srtp::StreamPool pool;
    std::optional<srtp::Channel> channel;
  };
  explicit MediaStream(MediaStreamSettings settings) : settings_(std::move(settings)) {}
  Expected<std::unique_ptr<Leg>> make_leg(srtp::Protocol protocol, crypto::KeyTable& keys) const;
  bool claim_first(std::uint32_t lane);

  MediaStreamSettings settings_;
  std::unique_ptr<Leg> rtp_, rtcp_;
  std::uint64_t installs_ = 0;
  std::atomic<std::uint32_t> owner_{nobody};
};

class MediaStreamTable {
 public:
  // 5-tuples are unique. Those of `before` that stay the same are taken over, null: there are none.
  static Expected<std::unique_ptr<MediaStreamTable>> make(const std::vector<MediaStreamSettings>& streams,
                                                          const MediaStreamTable* before, crypto::KeyTable& keys);

  MediaStream* find(const MediaKey& key) const;
  // Whether a UDP frame that is not plain may be a part of a stream's: by its 5-tuple or, without ports, its addresses.
  bool may_concern(const MediaKey& key) const;
  std::size_t size() const { return streams_.size(); }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    MediaStream* stream = nullptr;
  };
  void fill();

  std::vector<std::shared_ptr<MediaStream>> streams_;
  std::vector<Slot> slots_;                    // open addressing, at most half full
  std::vector<std::uint64_t> address_hashes_;  // of the streams' keys without ports, sorted
};

}  // namespace sluice::function
