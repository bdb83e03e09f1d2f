// A stream: a 5-tuple in one direction, with the channels that protect or unprotect what it carries; and the table in
// which a frame's 5-tuple finds it, as lanes see it. Who writes that table: streams.h.
//
// A stream's state is one lane's (claim()): to unprotect, the first that brings an authentic frame of it, so that
// nobody without the key has a say in it; else the first that brings any. RSS and the lanes' own spreading keep a
// 5-tuple on one lane; a frame that comes by another is refused, because two lanes cannot share an index. A stream
// without a key has no such state and is no lane's. With `ingress` what comes by another port is refused before that;
// where a change of it takes the stream from its lane's port, the state waits until no lane uses it, and is then the
// first one's that brings a frame by the new port (disown()).
//
// Of a master key the stream keeps what session keys were made of it (crypto/key_table.h), and to compare it with
// others a keyed hash (spent_keys.h): `settings().crypto` has none once the stream is made.
//
// Threads: streams are made and destroyed by any, without a lock; find() and may_concern() any thread, beside the one
// that writes, which is who may call police(), give(), measured() and rate(); claim(), conforms(), came(), note() and
// rare() lanes; channels and what left by them the lane that has claimed it; what was counted anybody may read.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/prefetch.h"
#include "crypto/key_table.h"
#include "function/policer.h"
#include "function/srtp/measured_rate.h"
#include "function/srtp/media_frame.h"
#include "function/srtp/stream_tally.h"
#include "media/sdp/crypto_attribute.h"
#include "media/srtp/channel.h"
#include "packet/ip_address.h"

namespace sluice::function {

enum class Carries : std::uint8_t { rtp, rtcp, both };

// Who has put a stream into the table, and may take it away.
enum class MediaOrigin : std::uint8_t { configuration, api, rtsp };

// What becomes of packets where there is no key for them.
enum class Keyless : std::uint8_t {
  no,           // there is one
  passes,       // there is none to protect or to authenticate: all passes and is counted
  passes_rtcp,  // RTCP that is due in clear passes and is counted; the rest is srtp_not_media
  drops_rtcp,   // the same RTCP is srtp_clear_rtcp
  ended,        // a stream was here: what still comes of it is srtp_ended
};

struct MediaStreamSettings {
  std::string name;   // "10.0.0.1:5004 -> 10.0.0.2:6000", for messages
  std::string place;  // "srtp.toml:40", of its section, for messages; empty: it is not of the file
  MediaKey key{};
  std::optional<MediaKey> leaves;  // the ends that its packets leave with, of key's family; absent: as they came
  srtp::Direction direction = srtp::Direction::protect;
  Carries carries = Carries::both;
  media::sdp::CryptoAttribute crypto;
  std::vector<std::uint64_t> key_hashes;     // of crypto.keys and `key` (spent_keys.h); empty: not made yet, or RTSP's
  std::vector<std::uint64_t> master_hashes;  // of crypto.keys alone, likewise
  std::uint32_t max_ssrcs = 16;
  bool passes_others = false;  // what is neither RTP nor RTCP (STUN, DTLS)
  struct Rollover {
    std::uint32_t ssrc, counter;
    bool operator==(const Rollover&) const = default;
  };
  std::optional<Rollover> rollover;  // of RTP
  MediaOrigin origin = MediaOrigin::configuration;
  Keyless keyless = Keyless::no;
  using Rate = StreamRate;
  std::optional<Rate> rate;                // absent: anything
  std::optional<MeasureSettings> measure;  // goes with a rate; absent: that is the stream's as long as it is there
  std::chrono::nanoseconds deadline{0};    // where streams are admitted; 0: the engine's
  std::optional<std::uint16_t> ingress;    // the gateway's port that its packets come in by; absent: any

  using Limits = std::tuple<std::optional<Rate>, std::optional<MeasureSettings>, std::chrono::nanoseconds,
                            std::optional<std::uint16_t>, bool, std::string>;
  Limits limits() const { return {rate, measure, deadline, ingress, passes_others, place}; }
  // In all but these, keys included: a stream that stays the same keeps its state. Both have their key_hashes.
  bool same(const MediaStreamSettings& other) const;
  // In place of a stream that is not the same: whether indexes that begin anew would go over what was done under a key.
  // To protect, if there is any that was there; to unprotect, where they would be others than the sender's, if none is
  // new.
  bool would_begin_anew_under_its_key(const MediaStreamSettings& before) const;
  // Bytes of the largest frame as it is in clear, where frames of `largest_frame` bytes fit: what is protected has to
  // fit with its tag and MKI, and what is unprotected has them.
  std::uint32_t largest_in_clear(std::uint32_t largest_frame) const;
};
MediaKey media_key(const packet::IpAddress& source, std::uint16_t source_port, const packet::IpAddress& destination,
                   std::uint16_t destination_port);

// RTP or RTCP of a stream: its channel, and what has left by it, in the line in which the channel ends.
struct alignas(64) MediaLeg {
  explicit MediaLeg(srtp::StreamPool of_leg) : pool(std::move(of_leg)) {}
  srtp::StreamPool pool;
  std::optional<srtp::Channel> channel;
  LeftTally left;
};
static_assert(sizeof(MediaLeg) == 128);

class alignas(64) MediaStream {
 public:
  static Expected<std::shared_ptr<MediaStream>> make(MediaStreamSettings settings, crypto::KeyTable& keys);

  // Some time before it is used, one after the other: its own lines, and what they lead to.
  void prefetch() const { sluice::prefetch(this, hot_bytes); }
  void prefetch_channels() const {
    if (rtp_ != nullptr) sluice::prefetch(rtp_.get(), sizeof(MediaLeg));
  }
  void prefetch_state(std::uint32_t lane) const {
    if (rtp_ != nullptr && is_of(lane)) rtp_->channel->prefetch_state();
  }

  const MediaStreamSettings& settings() const { return settings_; }
  bool protects() const { return protects_; }
  // settings().leaves; null: as they came.
  const MediaKey* leaves() const { return rewrites_ ? &*settings_.leaves : nullptr; }
  // For a packet that begins so; null: it is neither RTP nor RTCP, as far as the stream carries them, or has no key.
  MediaLeg* leg_for(std::span<const std::uint8_t> packet, bool& rtcp);

  // A device with a copy of the keys has this stream's if it has as many KeyTable::installs(). Of a stream whose keys
  // are derived anew on the way it never has them all.
  std::uint64_t installs() const { return installs_; }
  // Whether a frame of so many bytes is within the stream's rate. The moment is asked for only of one that has a rate.
  template <typename Moment>
  bool conforms(std::uint32_t bytes, Moment&& now) {
    Bucket* const bucket = bucket_.load(std::memory_order_acquire);
    return bucket == nullptr || bucket->take(bytes, now());
  }
  // From now on, with a full bucket where it is another rate than before, or measured otherwise. While lanes run: what
  // it returns, unless it is null, lanes may still ask, and it must be there until none can.
  [[nodiscard]] std::shared_ptr<const void> police(std::optional<MediaStreamSettings::Rate> rate,
                                                   std::shared_ptr<MeasuredRate> measured = nullptr);
  // Of one that is measured: v is this from now on. While lanes run.
  void give(std::uint64_t bits);
  // Null: it is not measured.
  const std::shared_ptr<MeasuredRate>& measured() const { return measured_; }
  const std::optional<MediaStreamSettings::Rate>& rate() const { return rate_; }

  // Lanes read none of these in settings(). police() is another step, and, where it returns a number, disown() with
  // that number once no lane is in a batch any more that it was in at the time: its state may have to move to another
  // lane.
  std::uint32_t take_limits(MediaStreamSettings::Limits limits);
  void disown(std::uint32_t change);

  // Whether the stream is this lane's, or any lane's; claim(): then it is if it was nobody's. `port`: of the gateway,
  // that the frame has come in by (Row::port).
  bool is_of(std::uint32_t lane) const { return (owner_.load(std::memory_order_relaxed) & lane_bits) == lane; }
  bool is_claimed() const { return owner_.load(std::memory_order_acquire) != nobody; }
  bool claim(std::uint32_t lane, std::uint16_t port = 0);
  // Only who has finished an authentic packet of it claims it: until then packets are prepared as nobody's
  // (srtp::Channel::prepare_unowned(), which cannot where keys are derived anew on the way, or where there is state).
  bool waits_for_authentic() const {
    return !protects_ && settings_.crypto.derivation_rate == 0 && !has_state_.load(std::memory_order_relaxed);
  }
  srtp::FirstRoc first_roc() const {
    return settings_.rollover ? srtp::FirstRoc{settings_.rollover->ssrc, settings_.rollover->counter}
                              : srtp::FirstRoc{};
  }
  bool may_come_by(std::uint16_t port) const {
    const std::uint16_t only = ingress_.load(std::memory_order_relaxed);
    return only == any_port || only == port;
  }
  bool passes_others() const { return passes_others_.load(std::memory_order_relaxed); }

  // What shows that somebody still sends: authenticated RTCP, and all packets of a stream without a key. Any lane; how
  // many: any thread.
  void note() { noted_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t noted() const { return noted_.load(std::memory_order_relaxed); }

  // Something of it came now, by the time-stamp counter, that is not rare(): a packet that was not refused. When the
  // last did, or 0.
  void came(std::uint64_t now) { last_came_.store(now, std::memory_order_relaxed); }
  std::uint64_t last_came() const { return last_came_.load(std::memory_order_relaxed); }
  // null: it does not carry that, or has no key.
  const LeftTally* left(srtp::Protocol protocol) const {
    const MediaLeg* const leg = (protocol == srtp::Protocol::rtp ? rtp_ : rtcp_).get();
    return leg == nullptr ? nullptr : &leg->left;
  }
  RareTally& rare() { return rare_; }
  const RareTally& rare() const { return rare_; }
  // Of RTP, or of RTCP where it carries nothing else: those that were protected, or found authentic.
  std::uint32_t ssrcs() const {
    const MediaLeg* const leg = rtp_ != nullptr ? rtp_.get() : rtcp_.get();
    return leg == nullptr ? 0 : leg->channel->streams();
  }

 private:
  // A lane, and its port in front.
  static constexpr std::uint32_t nobody = 0xffffffff, lane_bits = 0xffff;
  static constexpr std::uint16_t any_port = 0xffff;
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  static constexpr std::size_t hot_bytes = 128;
  // What is too large would pass at no rate, and is not measured.
  class Bucket final : public Policer {
   public:
    Bucket(const StreamRate& rate, std::uint64_t tsc_hz, engine::RateMeter* meter)
        : Policer(rate.bits, rate.burst, tsc_hz, rate.largest), meter_(meter) {}
    bool take(std::uint32_t bytes, std::uint64_t tsc) {
      if (meter_ != nullptr && bytes <= largest()) meter_->add(bytes, tsc);
      return Policer::take(bytes, tsc);
    }

   private:
    engine::RateMeter* meter_;  // null: nothing is measured
  };
  static_assert(sizeof(Bucket) == 64, "a bucket is a cache line");
  explicit MediaStream(MediaStreamSettings settings)
      : rewrites_(settings.leaves.has_value()),
        protects_(settings.direction == srtp::Direction::protect),
        carries_(settings.carries),
        passes_others_(settings.passes_others),
        ingress_(settings.ingress.value_or(any_port)),
        settings_(std::move(settings)) {}
  static std::uint64_t tsc_hz();
  Expected<std::unique_ptr<MediaLeg>> make_leg(srtp::Protocol protocol, crypto::KeyTable& keys) const;

  // What a packet needs lies in two lines: up to the key of the settings.
  std::unique_ptr<MediaLeg> rtp_, rtcp_;
  std::uint64_t installs_ = 0;
  std::atomic<Bucket*> bucket_{nullptr};
  std::atomic<std::uint32_t> owner_{nobody};
  const bool rewrites_, protects_;
  const Carries carries_;
  std::atomic<bool> passes_others_;
  std::atomic<std::uint16_t> ingress_;
  std::atomic<bool> has_state_{false};  // though it is nobody's
  std::atomic<std::uint64_t> last_came_{0};
  MediaStreamSettings settings_;
  std::atomic<std::uint64_t> noted_{0};
  RareTally rare_;
  std::optional<MediaStreamSettings::Rate> rate_;  // of bucket_
  std::shared_ptr<MeasuredRate> measured_;         // of bucket_, too
  std::uint32_t ingress_changes_ = 0;
  // What bucket_ shows, with the meter that it has.
  struct Held {
    Held(const StreamRate& rate, std::shared_ptr<MeasuredRate> with)
        : bucket(rate, tsc_hz(), with ? with->meter() : nullptr), measured(std::move(with)) {}
    Bucket bucket;
    std::shared_ptr<MeasuredRate> measured;
  };
  std::shared_ptr<Held> held_;
};

// Two hash tables of fixed size, with one writer and any number of readers that never wait: the streams by 5-tuple, and
// by addresses alone how many there are. A reader sees what is put in or taken out beside it, or does not; all else it
// finds. What is taken out may be destroyed once no reader can have found it (streams.h). Memory: 32 to 64 bytes of
// slots for each stream that there is capacity for.
class MediaStreamSlots {
 public:
  explicit MediaStreamSlots(std::size_t capacity);

  // Of as long a life as the slots: what a search reads, close together.
  class View;
  View view() const;
  MediaStream* find(const MediaKey& key) const;
  bool has_addresses(const MediaKey& key) const;
  // The writer's, for `capacity` streams at most. put(): in place of the one with the same 5-tuple, if there is one;
  // false: so much has come and gone that others must be made.
  bool put(MediaStream& stream);
  void take(const MediaKey& key);  // it is there

 private:
  struct Slot {
    std::atomic<std::uint64_t> hash{0};
    std::atomic<MediaStream*> stream{nullptr};  // null: nobody has been here, and nobody is behind
  };
  struct Pair {
    std::atomic<std::uint64_t> hash{0};  // 0: as null above
    std::atomic<std::uint32_t> streams{0};
  };
  Slot* slot_of(std::uint64_t hash, const MediaKey& key);
  void count_addresses(const MediaKey& key);
  void discount_addresses(const MediaKey& key);

  std::vector<Slot> slots_;  // at most half of them with a stream
  std::vector<Pair> pairs_;
  std::size_t mask_;
  std::size_t used_slots_ = 0, used_pairs_ = 0;  // at which no search ends
};

class MediaStreamSlots::View {
 public:
  View(const Slot* slots, std::size_t mask) : slots_(slots), mask_(mask) {}
  MediaStream* find(const MediaKey& key) const { return find(key, hash_of(key)); }
  MediaStream* find(const MediaKey& key, std::uint64_t hash) const;
  // Some time before find(): fetches where it begins; and then the stream that it finds there, in all likelihood.
  void prefetch(std::uint64_t hash) const { sluice::prefetch(slots_ + (hash & mask_)); }
  MediaStream* probable(std::uint64_t hash) const;

 private:
  const Slot* slots_;
  std::size_t mask_;
};

inline MediaStreamSlots::View MediaStreamSlots::view() const {
  return {slots_.data(), mask_};
}

inline MediaStream* MediaStreamSlots::find(const MediaKey& key) const {
  return view().find(key);
}

// The streams as a batch sees them from its first frame to its last: what it finds lives as long as it holds the table.
class MediaStreamTable {
 public:
  // What was taken out while this table was the current one. Batches that hold an older table may have found it, too:
  // tables go in the order in which they were published (Published::reclaim_in_order()).
  struct Retired {
    explicit Retired(std::shared_ptr<std::atomic<std::uint64_t>> all_leaving) : leaving(std::move(all_leaving)) {}
    Retired(const Retired&) = delete;
    Retired& operator=(const Retired&) = delete;
    ~Retired();
    bool empty() const { return streams.empty() && disowned.empty() && others.empty(); }
    std::shared_ptr<std::atomic<std::uint64_t>> leaving;  // how many there are in all tables; counts down at the end
    std::vector<std::shared_ptr<MediaStream>> streams;
    // Streams that stay in the table and may then be another lane's, with what disown() is given.
    std::vector<std::pair<std::shared_ptr<MediaStream>, std::uint32_t>> disowned;
    std::vector<std::shared_ptr<const void>> others;  // what else lanes may still use
  };
  MediaStreamTable(std::shared_ptr<const MediaStreamSlots> slots, std::shared_ptr<std::atomic<std::uint64_t>> leaving)
      : view_(slots->view()), slots_(std::move(slots)), retired_(std::make_unique<Retired>(std::move(leaving))) {}

  MediaStream* find(const MediaKey& key) const { return view_.find(key); }
  const MediaStreamSlots::View& view() const { return view_; }
  // Whether a UDP frame that is not plain may be a part of a stream's: by its 5-tuple or, without ports, its addresses.
  bool may_concern(const MediaKey& key) const;
  // The writer's, while this table is the current one.
  Retired& retired() { return *retired_; }

 private:
  MediaStreamSlots::View view_;
  std::shared_ptr<const MediaStreamSlots> slots_;
  std::unique_ptr<Retired> retired_;  // apart from what lanes read
};

}  // namespace sluice::function
