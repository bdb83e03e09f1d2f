#include "function/srtp/media_stream.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "media/srtp/header.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t usual_window = 128;

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

bool same_keys(const media::sdp::CryptoAttribute& a, const media::sdp::CryptoAttribute& b) {
  return a.suite == b.suite && a.derivation_rate == b.derivation_rate && a.window == b.window &&
         std::ranges::equal(a.keys, b.keys, [](const auto& one, const auto& other) {
           return one.key == other.key && one.lifetime == other.lifetime && one.mki == other.mki &&
                  one.mki_length == other.mki_length;
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

bool MediaStreamSettings::same(const MediaStreamSettings& other) const {
  return key == other.key && direction == other.direction && carries == other.carries && max_ssrcs == other.max_ssrcs &&
         passes_others == other.passes_others && rollover == other.rollover && same_keys(crypto, other.crypto);
}

Expected<std::unique_ptr<MediaStream::Leg>> MediaStream::make_leg(srtp::Protocol protocol,
                                                                  crypto::KeyTable& keys) const {
  const media::sdp::CryptoAttribute& crypto = settings_.crypto;
  const srtp::SuiteFacts& suite = srtp::facts(crypto.suite);
  auto pool = srtp::StreamPool::make(settings_.max_ssrcs, std::bit_ceil(crypto.window.value_or(usual_window)));
  if (!pool) return tl::unexpected(pool.error());
  auto leg = std::make_unique<Leg>(Leg{std::move(*pool), std::nullopt});
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
  const auto add = [&](srtp::Protocol protocol, std::unique_ptr<Leg>& leg) -> Expected<void> {
    auto made = stream->make_leg(protocol, keys);
    if (!made) return make_error("the stream " + stream->settings_.name + ": " + made.error().message);
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
  return stream;
}

srtp::Channel* MediaStream::channel_for(std::span<const std::uint8_t> packet, bool& rtcp) {
  const srtp::PacketKind kind = srtp::kind_of(packet);
  if (kind == srtp::PacketKind::other) return nullptr;
  // Where RTCP has a port of its own, RTP's payload types are free (RFC 5761 section 4).
  rtcp = settings_.carries == Carries::both ? kind == srtp::PacketKind::rtcp : settings_.carries == Carries::rtcp;
  return &*(rtcp ? rtcp_ : rtp_)->channel;
}

bool MediaStream::claim_first(std::uint32_t lane) {
  std::uint32_t owner = nobody;
  return owner_.compare_exchange_strong(owner, lane, std::memory_order_relaxed) || owner == lane;
}

Expected<std::unique_ptr<MediaStreamTable>> MediaStreamTable::make(const std::vector<MediaStreamSettings>& streams,
                                                                   const MediaStreamTable* before,
                                                                   crypto::KeyTable& keys) {
  std::unordered_map<const MediaStream*, std::shared_ptr<MediaStream>> known;
  if (before != nullptr) {
    for (const auto& stream : before->streams_) known.emplace(stream.get(), stream);
  }
  auto table = std::make_unique<MediaStreamTable>();
  for (const MediaStreamSettings& settings : streams) {
    const MediaStream* const old = before == nullptr ? nullptr : before->find(settings.key);
    if (old != nullptr && old->settings().same(settings)) {
      table->streams_.push_back(known.at(old));
      continue;
    }
    auto made = MediaStream::make(settings, keys);
    if (!made) return tl::unexpected(made.error());
    table->streams_.push_back(std::move(*made));
  }
  table->fill();
  return table;
}

void MediaStreamTable::fill() {
  slots_.resize(std::bit_ceil(std::max<std::size_t>(2, 2 * streams_.size())));
  for (const auto& stream : streams_) {
    const std::uint64_t hash = hash_of(stream->settings().key);
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].stream != nullptr) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {hash, stream.get()};
    address_hashes_.push_back(hash_of(without_ports(stream->settings().key)));
  }
  std::ranges::sort(address_hashes_);
}

MediaStream* MediaStreamTable::find(const MediaKey& key) const {
  const std::uint64_t hash = hash_of(key);
  for (std::size_t at = hash & (slots_.size() - 1); slots_[at].stream != nullptr; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash == hash && slots_[at].stream->settings().key == key) return slots_[at].stream;
  }
  return nullptr;
}

bool MediaStreamTable::may_concern(const MediaKey& key) const {
  if (find(key) != nullptr) return true;
  return key.source_port == 0 && key.destination_port == 0 && std::ranges::binary_search(address_hashes_, hash_of(key));
}

}  // namespace sluice::function
