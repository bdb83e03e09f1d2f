#include "function/srtp/media_stream.h"

#include <rte_cycles.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "media/srtp/header.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t usual_window = 128;

// In a slot whose stream has gone, with others behind it.
MediaStream* const gone = reinterpret_cast<MediaStream*>(1);

MediaKey without_ports(MediaKey key) {
  key.source_port = key.destination_port = 0;
  return key;
}

// As RFC 4568 has it: a number in so many bytes, the most significant first.
std::vector<std::uint8_t> mki_of(const media::sdp::CryptoKey& key) {
  std::vector<std::uint8_t> bytes(key.mki_length);
  std::uint64_t number = key.mki.value_or(0);
  for (std::size_t i = bytes.size(); i-- > 0; number >>= 8) bytes[i] = static_cast<std::uint8_t>(number);
  return bytes;
}

// By their hashes: 0 is none, and like no other.
bool same_key(std::uint64_t one, std::uint64_t other) {
  return one == other && one != 0;
}

bool same_keys(const MediaStreamSettings& a, const MediaStreamSettings& b) {
  const media::sdp::CryptoAttribute &one = a.crypto, &other = b.crypto;
  return one.suite == other.suite && one.derivation_rate == other.derivation_rate && one.window == other.window &&
         std::ranges::equal(a.key_hashes, b.key_hashes, same_key) &&
         std::ranges::equal(one.keys, other.keys, [](const auto& key, const auto& as) {
           return key.lifetime == as.lifetime && key.mki == as.mki && key.mki_length == as.mki_length;
         });
}

}  // namespace

MediaKey media_key(const packet::IpAddress& source, std::uint16_t source_port, const packet::IpAddress& destination,
                   std::uint16_t destination_port) {
  MediaKey key{};
  std::memcpy(key.source, source.bytes.data(), sizeof key.source);
  std::memcpy(key.destination, destination.bytes.data(), sizeof key.destination);
  key.source_port = packet::be16(source_port);
  key.destination_port = packet::be16(destination_port);
  key.family = source.family;
  return key;
}

std::uint32_t MediaStreamSettings::largest_in_clear(std::uint32_t largest_frame) const {
  const std::uint32_t most = rate && rate->largest != 0 ? std::min(rate->largest, largest_frame) : largest_frame;
  if (crypto.keys.empty()) return most;
  const std::uint32_t added = srtp::facts(crypto.suite).rtp_tag_length + crypto.keys.front().mki_length;
  return direction == srtp::Direction::protect ? std::min(most, largest_frame - added) : most - std::min(most, added);
}

bool MediaStreamSettings::same(const MediaStreamSettings& other) const {
  return key == other.key && leaves == other.leaves && direction == other.direction && carries == other.carries &&
         max_ssrcs == other.max_ssrcs && rollover == other.rollover && origin == other.origin &&
         keyless == other.keyless && same_keys(*this, other);
}

bool MediaStreamSettings::would_begin_anew_under_its_key(const MediaStreamSettings& before) const {
  if (keyless != Keyless::no || before.keyless != Keyless::no || direction != before.direction) return false;
  const auto was_there = [&](std::uint64_t one) {
    return std::ranges::any_of(before.key_hashes, [&](std::uint64_t other) { return same_key(one, other); });
  };
  if (direction == srtp::Direction::protect) return std::ranges::any_of(key_hashes, was_there);
  return !key_hashes.empty() && std::ranges::all_of(key_hashes, was_there);
}

Expected<std::unique_ptr<MediaLeg>> MediaStream::make_leg(srtp::Protocol protocol, crypto::KeyTable& keys) const {
  const media::sdp::CryptoAttribute& crypto = settings_.crypto;
  const srtp::SuiteFacts& suite = srtp::facts(crypto.suite);
  auto pool = srtp::StreamPool::make(settings_.max_ssrcs, std::bit_ceil(crypto.window.value_or(usual_window)));
  if (!pool) return tl::unexpected(pool.error());
  auto leg = std::make_unique<MediaLeg>(std::move(*pool));
  std::vector<std::vector<std::uint8_t>> mkis;
  std::vector<srtp::MasterKey> masters;
  for (const media::sdp::CryptoKey& key : crypto.keys) {
    mkis.push_back(mki_of(key));
    std::uint64_t lifetime = key.lifetime.value_or(0);
    // SDES gives one lifetime for both protocols; RTCP's own is shorter than the longest of these.
    if (protocol == srtp::Protocol::rtcp) lifetime = std::min(lifetime, std::uint64_t{1} << 31);
    masters.push_back({.key = key.key.bytes().first(suite.key_length),
                       .salt = key.key.bytes().subspan(suite.key_length),
                       .mki = mkis.back(),
                       .lifetime = lifetime});
  }
  auto channel =
      srtp::Channel::make({.suite = crypto.suite,
                           .protocol = protocol,
                           .direction = settings_.direction,
                           .key_derivation_rate = crypto.derivation_rate == 0 ? 0 : 1U << crypto.derivation_rate,
                           .max_streams = settings_.max_ssrcs},
                          masters, keys, leg->pool);
  if (!channel) return tl::unexpected(channel.error());
  leg->channel.emplace(std::move(*channel));
  if (protocol == srtp::Protocol::rtp && settings_.rollover) {
    const srtp::Status status = leg->channel->open_stream(settings_.rollover->ssrc, settings_.rollover->counter);
    if (status != srtp::Status::ok) return make_error(std::string(srtp::status_text(status)));
  }
  return leg;
}

Expected<std::shared_ptr<MediaStream>> MediaStream::make(MediaStreamSettings settings, crypto::KeyTable& keys) {
  std::shared_ptr<MediaStream> stream(new MediaStream(std::move(settings)));
  if (stream->settings_.keyless != Keyless::no) return stream;
  const auto add = [&](srtp::Protocol protocol, std::unique_ptr<MediaLeg>& leg) -> Expected<void> {
    auto made = stream->make_leg(protocol, keys);
    if (!made) {
      const bool full = made.error().message.starts_with(crypto::table_of_keys_is_full);
      const char* const more = full ? ": raise [srtp] max_keys" : "";
      return make_error("the stream " + stream->settings_.name + ": " + made.error().message + more);
    }
    leg = std::move(*made);
    return {};
  };
  if (stream->settings_.carries != Carries::rtcp) {
    if (const auto ok = add(srtp::Protocol::rtp, stream->rtp_); !ok) return tl::unexpected(ok.error());
  }
  if (stream->settings_.carries != Carries::rtp) {
    if (const auto ok = add(srtp::Protocol::rtcp, stream->rtcp_); !ok) return tl::unexpected(ok.error());
  }
  stream->installs_ = stream->settings_.crypto.derivation_rate == 0 ? keys.installs() : never;
  for (media::sdp::CryptoKey& key : stream->settings_.crypto.keys) key.key = {};
  return stream;
}

MediaLeg* MediaStream::leg_for(std::span<const std::uint8_t> packet, bool& rtcp) {
  const srtp::PacketKind kind = srtp::kind_of(packet);
  if (kind == srtp::PacketKind::other) return nullptr;
  // Where RTCP has a port of its own, RTP's payload types are free (RFC 5761 section 4), and what comes to that port is
  // to be authenticated, which shows what it is. Without a key the type alone does.
  const bool apart = carries_ != Carries::both && (rtp_ != nullptr || rtcp_ != nullptr);
  rtcp = apart ? carries_ == Carries::rtcp : kind == srtp::PacketKind::rtcp;
  return (rtcp ? rtcp_ : rtp_).get();
}

std::uint64_t MediaStream::tsc_hz() {
  return rte_get_tsc_hz();
}

std::shared_ptr<const void> MediaStream::police(std::optional<MediaStreamSettings::Rate> rate,
                                                std::shared_ptr<MeasuredRate> measured) {
  if (rate == rate_ && measured == measured_) return nullptr;
  rate_ = rate;
  measured_ = std::move(measured);
  std::shared_ptr<Held> held;
  if (rate) {
    StreamRate now = *rate;
    if (measured_) now = {measured_->bits(), measured_->burst(), rate->largest};
    held = std::make_shared<Held>(now, measured_);
  }
  bucket_.store(held ? &held->bucket : nullptr, std::memory_order_release);
  return std::exchange(held_, std::move(held));
}

void MediaStream::give(std::uint64_t bits) {
  measured_->set(bits);
  held_->bucket.change(bits, measured_->burst(), rte_get_tsc_hz(), rte_rdtsc());
}

std::uint32_t MediaStream::take_limits(MediaStreamSettings::Limits limits) {
  const std::optional<std::uint16_t> before = settings_.ingress;
  std::tie(settings_.rate, settings_.measure, settings_.deadline, settings_.ingress, settings_.passes_others,
           settings_.place) = std::move(limits);
  passes_others_.store(settings_.passes_others, std::memory_order_relaxed);
  ingress_.store(settings_.ingress.value_or(any_port), std::memory_order_relaxed);
  if (settings_.ingress == before) return 0;
  ++ingress_changes_;
  return settings_.ingress ? ingress_changes_ : 0;
}

// Behind a later change it is for that one to say, for lanes may have come by the port that was right in between.
void MediaStream::disown(std::uint32_t change) {
  const std::uint32_t owner = owner_.load(std::memory_order_relaxed);
  if (change != ingress_changes_ || owner == nobody || may_come_by(static_cast<std::uint16_t>(owner >> 16))) return;
  has_state_.store(true, std::memory_order_relaxed);
  owner_.store(nobody, std::memory_order_release);
}

bool MediaStream::claim(std::uint32_t lane, std::uint16_t port) {
  const std::uint32_t own = std::uint32_t{port} << 16 | lane;
  std::uint32_t owner = nobody;
  return owner_.compare_exchange_strong(owner, own, std::memory_order_acquire) || owner == own;
}

MediaStreamSlots::MediaStreamSlots(std::size_t capacity)
    : slots_(std::bit_ceil(std::max<std::size_t>(16, 2 * capacity))), pairs_(slots_.size()), mask_(slots_.size() - 1) {}

// The same 5-tuple's or another's.
MediaStream* MediaStreamSlots::View::probable(std::uint64_t hash) const {
  const Slot& slot = slots_[hash & mask_];
  MediaStream* const stream = slot.stream.load(std::memory_order_acquire);
  return stream == gone || slot.hash.load(std::memory_order_relaxed) != hash ? nullptr : stream;
}

MediaStream* MediaStreamSlots::View::find(const MediaKey& key, std::uint64_t hash) const {
  for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
    MediaStream* const stream = slots_[at].stream.load(std::memory_order_acquire);
    if (stream == nullptr) return nullptr;
    if (slots_[at].hash.load(std::memory_order_relaxed) == hash && stream != gone && stream->settings().key == key) {
      return stream;
    }
  }
}

bool MediaStreamSlots::has_addresses(const MediaKey& key) const {
  const std::uint64_t hash = hash_of(without_ports(key)) | 1;
  for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
    const std::uint64_t here = pairs_[at].hash.load(std::memory_order_acquire);
    if (here == 0) return false;
    if (here == hash && pairs_[at].streams.load(std::memory_order_relaxed) != 0) return true;
  }
}

MediaStreamSlots::Slot* MediaStreamSlots::slot_of(std::uint64_t hash, const MediaKey& key) {
  for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
    MediaStream* const stream = slots_[at].stream.load(std::memory_order_relaxed);
    if (stream == nullptr) return nullptr;
    if (slots_[at].hash.load(std::memory_order_relaxed) == hash && stream != gone && stream->settings().key == key) {
      return &slots_[at];
    }
  }
}

bool MediaStreamSlots::put(MediaStream& stream) {
  const MediaKey& key = stream.settings().key;
  const std::uint64_t hash = hash_of(key);
  if (Slot* const same = slot_of(hash, key)) {
    same->stream.store(&stream, std::memory_order_release);
    return true;
  }
  const std::size_t most = slots_.size() / 8 * 7;
  if (used_slots_ >= most || used_pairs_ >= most) return false;
  std::size_t at = hash & mask_;
  MediaStream* here = nullptr;
  while ((here = slots_[at].stream.load(std::memory_order_relaxed)) != nullptr && here != gone) at = (at + 1) & mask_;
  used_slots_ += here == nullptr ? 1 : 0;
  count_addresses(key);
  slots_[at].hash.store(hash, std::memory_order_relaxed);
  slots_[at].stream.store(&stream, std::memory_order_release);
  return true;
}

// Those that have gone at the end of a row of slots are nobody's any more, so rows do not grow with the years.
void MediaStreamSlots::take(const MediaKey& key) {
  Slot* const slot = slot_of(hash_of(key), key);
  std::size_t at = static_cast<std::size_t>(slot - slots_.data());
  slot->stream.store(gone, std::memory_order_release);
  if (slots_[(at + 1) & mask_].stream.load(std::memory_order_relaxed) == nullptr) {
    for (; slots_[at].stream.load(std::memory_order_relaxed) == gone; at = (at - 1) & mask_) {
      slots_[at].stream.store(nullptr, std::memory_order_release);
      --used_slots_;
    }
  }
  discount_addresses(key);
}

void MediaStreamSlots::count_addresses(const MediaKey& key) {
  const std::uint64_t hash = hash_of(without_ports(key)) | 1;
  Pair* free = nullptr;
  for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
    Pair& pair = pairs_[at];
    const std::uint64_t here = pair.hash.load(std::memory_order_relaxed);
    if (here == hash) {
      pair.streams.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const bool unused = here == 0 || pair.streams.load(std::memory_order_relaxed) == 0;
    if (free == nullptr && unused) free = &pair;
    if (here == 0) break;
  }
  used_pairs_ += free->hash.load(std::memory_order_relaxed) == 0 ? 1 : 0;
  free->streams.store(1, std::memory_order_relaxed);
  free->hash.store(hash, std::memory_order_release);
}

void MediaStreamSlots::discount_addresses(const MediaKey& key) {
  const std::uint64_t hash = hash_of(without_ports(key)) | 1;
  std::size_t at = hash & mask_;
  while (pairs_[at].hash.load(std::memory_order_relaxed) != hash) at = (at + 1) & mask_;
  pairs_[at].streams.fetch_sub(1, std::memory_order_relaxed);
  if (pairs_[(at + 1) & mask_].hash.load(std::memory_order_relaxed) != 0) return;
  for (; pairs_[at].hash.load(std::memory_order_relaxed) != 0 && pairs_[at].streams.load() == 0;
       at = (at - 1) & mask_) {
    pairs_[at].hash.store(0, std::memory_order_release);
    --used_pairs_;
  }
}

MediaStreamTable::Retired::~Retired() {
  leaving->fetch_sub(streams.size(), std::memory_order_relaxed);
  for (const auto& [stream, change] : disowned) stream->disown(change);
}

bool MediaStreamTable::may_concern(const MediaKey& key) const {
  if (find(key) != nullptr) return true;
  return key.source_port == 0 && key.destination_port == 0 && slots_->has_addresses(key);
}

}  // namespace sluice::function
