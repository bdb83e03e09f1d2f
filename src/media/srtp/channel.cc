#include "media/srtp/channel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "base/prefetch.h"
#include "media/srtp/header.h"
#include "media/srtp/index.h"
#include "media/srtp/key_derivation.h"

namespace sluice::srtp {
namespace {

constexpr std::uint32_t index_length = 4;  // SRTCP's E and index, on the wire
constexpr std::uint8_t e_bit = 0x80;
constexpr std::uint32_t rtp_ssrc_offset = 8;
constexpr std::uint64_t max_rtp_lifetime = std::uint64_t{1} << 48;
constexpr std::uint64_t max_rtcp_lifetime = std::uint64_t{1} << 31;
constexpr std::uint32_t max_key_derivation_rate = 1U << 24;

template <std::size_t length>
void store(std::uint8_t* at, std::uint64_t value) {
  for (std::size_t i = 0; i < length; ++i) {
    at[i] = static_cast<std::uint8_t>(value >> (8 * (length - 1 - i)));
  }
}

std::uint32_t load32(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
}

std::uint64_t max_lifetime(Protocol protocol) {
  return protocol == Protocol::rtp ? max_rtp_lifetime : max_rtcp_lifetime;
}

std::uint64_t max_index(Protocol protocol) {
  return protocol == Protocol::rtp ? max_rtp_index : max_rtcp_index;
}

// What is wrong with the channel's settings or its master keys; empty if nothing.
std::string check(const ChannelSettings& settings, std::span<const MasterKey> masters) {
  if (masters.empty() || masters.size() > max_master_keys) {
    return std::to_string(masters.size()) + " master keys: must be 1 to " + std::to_string(max_master_keys);
  }
  if (settings.max_streams == 0) {
    return "a channel of 0 streams: must be at least 1";
  }
  const std::uint32_t rate = settings.key_derivation_rate;
  if (rate > max_key_derivation_rate || (rate != 0 && !std::has_single_bit(rate))) {
    return "a key derivation rate of " + std::to_string(rate) + ": must be 0 or a power of two up to 2^24";
  }
  const std::size_t mki_length = masters[0].mki.size();
  if (mki_length > max_mki_length || (mki_length == 0 && masters.size() > 1)) {
    return std::to_string(masters.size()) + " master keys with an MKI of " + std::to_string(mki_length) +
           " bytes: must be at most 128, and more than one master key need one";
  }
  for (std::size_t i = 0; i < masters.size(); ++i) {
    const std::span<const std::uint8_t> mki = masters[i].mki;
    if (mki.size() != mki_length) {
      return "MKIs of " + std::to_string(mki_length) + " and " + std::to_string(mki.size()) +
             " bytes: must have one length";
    }
    if (masters[i].lifetime > max_lifetime(settings.protocol)) {
      return "a lifetime of " + std::to_string(masters[i].lifetime) + " packets: must be at most " +
             (settings.protocol == Protocol::rtp ? "2^48" : "2^31");
    }
    for (const MasterKey& other : masters.first(i)) {
      if (std::equal(mki.begin(), mki.end(), other.mki.begin())) {
        return "two master keys with one MKI";
      }
    }
  }
  return {};
}

// Key derivation with a rate: the master key, and the session keys of a few periods.
struct Derivation {
  struct Period {
    std::uint64_t number;
    std::uint32_t slot;
    std::uint32_t in_flight;
  };
  crypto::Secret<max_key_length> key;
  crypto::Secret<max_salt_length> salt;
  std::array<Period, key_periods> periods = {};
};

}  // namespace

struct Channel::Master {
  std::uint64_t left = 0;  // packets
  std::vector<std::uint8_t> mki;
  std::uint32_t slot = 0;                  // of its session keys, without a rate
  std::unique_ptr<Derivation> derivation;  // with one
};

struct Channel::Parsed {
  std::uint8_t* data;
  std::uint32_t ssrc;
  std::uint16_t sequence;       // RTP
  std::uint16_t cipher_offset;  // the header's length
  std::uint16_t cipher_length;
  std::uint8_t e_and_index[index_length];  // SRTCP
};

// -- making and closing
// ----------------------------------------------------------------------------------------------------

Channel::Channel(const ChannelSettings& settings, crypto::KeyTable& keys, StreamPool& pool)
    : keys_(&keys),
      pool_(&pool),
      max_streams_(settings.max_streams),
      rate_(settings.key_derivation_rate),
      suite_(settings.suite),
      protocol_(settings.protocol),
      direction_(settings.direction),
      tag_length_(facts(settings.suite).tag_length(settings.protocol)) {}

Expected<Channel> Channel::make(const ChannelSettings& settings, std::span<const MasterKey> masters,
                                crypto::KeyTable& keys, StreamPool& pool) {
  if (const std::string wrong = check(settings, masters); !wrong.empty()) {
    return make_error(wrong);
  }
  Channel channel(settings, keys, pool);
  channel.mki_length_ = static_cast<std::uint8_t>(masters[0].mki.size());
  channel.masters_.reserve(masters.size());
  for (const MasterKey& key : masters) {
    if (auto added = channel.add(key); !added) {
      return tl::unexpected(added.error());
    }
  }
  return channel;
}

Expected<std::uint32_t> Channel::install(const MasterKey& key, std::uint64_t period) {
  const auto keys = derive(suite_, protocol_, key.key, key.salt, period);
  if (!keys) {
    return tl::unexpected(keys.error());
  }
  return keys_->install(keys->material(suite_, protocol_));
}

Expected<void> Channel::add(const MasterKey& key) {
  Master master;
  master.left = key.lifetime != 0 ? key.lifetime : max_lifetime(protocol_);
  master.mki.assign(key.mki.begin(), key.mki.end());
  if (rate_ == 0) {
    const auto slot = install(key, 0);
    if (!slot) {
      return tl::unexpected(slot.error());
    }
    master.slot = *slot;
    masters_.push_back(std::move(master));
    return {};
  }
  auto derivation = std::make_unique<Derivation>();
  for (std::uint64_t number = 0; number < key_periods; ++number) {
    const auto slot = install(key, number);
    if (!slot) {
      for (const Derivation::Period& made : std::span(derivation->periods).first(number)) {
        keys_->release(made.slot);
      }
      return tl::unexpected(slot.error());
    }
    derivation->periods[number] = {.number = number, .slot = *slot, .in_flight = 0};
  }
  std::copy(key.key.begin(), key.key.end(), derivation->key.bytes);
  std::copy(key.salt.begin(), key.salt.end(), derivation->salt.bytes);
  master.derivation = std::move(derivation);
  masters_.push_back(std::move(master));
  return {};
}

void Channel::close() {
  for (const Master& master : masters_) {
    if (!master.derivation) {
      keys_->release(master.slot);
      continue;
    }
    for (const Derivation::Period& period : master.derivation->periods) {
      keys_->release(period.slot);
    }
  }
  masters_.clear();
  end_streams();
}

void Channel::end_streams() {
  while (first_ != no_stream_slot) {
    const std::uint32_t slot = std::exchange(first_, (*pool_)[first_].next);
    pool_->give_back(slot);
  }
  streams_ = 0;
}

Channel::Channel(Channel&& other) noexcept
    : keys_(other.keys_),
      pool_(other.pool_),
      masters_(std::exchange(other.masters_, {})),
      first_(std::exchange(other.first_, no_stream_slot)),
      streams_(std::exchange(other.streams_, 0)),
      max_streams_(other.max_streams_),
      rate_(other.rate_),
      suite_(other.suite_),
      protocol_(other.protocol_),
      direction_(other.direction_),
      tag_length_(other.tag_length_),
      mki_length_(other.mki_length_),
      current_(other.current_) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  if (this != &other) {
    std::destroy_at(this);
    std::construct_at(this, std::move(other));
  }
  return *this;
}

Channel::~Channel() {
  close();
}

std::uint32_t Channel::overhead() const {
  return std::uint32_t{tag_length_} + mki_length_ + (protocol_ == Protocol::rtcp ? index_length : 0);
}

// -- streams
// ---------------------------------------------------------------------------------------------------------------

std::uint32_t Channel::find(std::uint32_t ssrc) {
  if (first_ == no_stream_slot || (*pool_)[first_].ssrc == ssrc) {
    return first_;
  }
  return find_further(ssrc);
}

// What is found comes to the front of the list.
std::uint32_t Channel::find_further(std::uint32_t ssrc) {
  StreamPool& pool = *pool_;
  for (std::uint32_t before = first_; pool[before].next != no_stream_slot; before = pool[before].next) {
    const std::uint32_t slot = pool[before].next;
    if (pool[slot].ssrc == ssrc) {
      pool[before].next = pool[slot].next;
      pool[slot].next = first_;
      first_ = slot;
      return slot;
    }
  }
  return no_stream_slot;
}

std::uint32_t Channel::add_stream(std::uint32_t ssrc, std::uint32_t roc) {
  if (streams_ == max_streams_) {
    return no_stream_slot;
  }
  const std::uint32_t slot = pool_->take(ssrc, roc);
  if (slot != no_stream_slot) {
    (*pool_)[slot].next = first_;
    first_ = slot;
    ++streams_;
  }
  return slot;
}

std::uint32_t Channel::find_or_add(std::uint32_t ssrc) {
  const std::uint32_t slot = find(ssrc);
  return slot != no_stream_slot ? slot : add_stream(ssrc, 0);
}

Status Channel::open_stream(std::uint32_t ssrc, std::uint32_t roc) {
  if (find(ssrc) != no_stream_slot) {
    return Status::replayed;
  }
  return add_stream(ssrc, roc) != no_stream_slot ? Status::ok : Status::no_stream;
}

void Channel::mark(std::uint32_t slot, std::uint64_t index) {
  Stream& stream = (*pool_)[slot];
  if (stream.fresh) {
    stream.fresh = false;
    stream.highest = index;
  }
  mark_window(pool_->window(slot), stream.highest, index);
}

// -- keys
// ------------------------------------------------------------------------------------------------------------------

Status Channel::find_master(const std::uint8_t* mki, std::uint8_t& master) const {
  if (mki_length_ == 0) {
    master = 0;
    return Status::ok;
  }
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    if (std::memcmp(masters_[i].mki.data(), mki, mki_length_) == 0) {
      master = static_cast<std::uint8_t>(i);
      return Status::ok;
    }
  }
  return Status::no_key;
}

Status Channel::take_key(Pending& pending, std::uint32_t& slot) {
  pending.period = 0;
  if (rate_ != 0) {
    return take_period(pending, slot);
  }
  slot = masters_[pending.master].slot;
  return Status::ok;
}

Status Channel::take_period(Pending& pending, std::uint32_t& slot) {
  Derivation& derivation = *masters_[pending.master].derivation;
  auto& periods = derivation.periods;
  const std::uint64_t number = pending.index / rate_;
  auto period = std::ranges::find(periods, number, &Derivation::Period::number);
  if (period == periods.end()) {
    // The oldest that nothing in flight needs.
    for (auto it = periods.begin(); it != periods.end(); ++it) {
      if (it->in_flight == 0 && (period == periods.end() || it->number < period->number)) {
        period = it;
      }
    }
    if (period == periods.end()) {
      return Status::too_many_in_flight;
    }
    const SuiteFacts& of = facts(suite_);
    const auto keys =
        derive(suite_, protocol_, derivation.key.first(of.key_length), derivation.salt.first(of.salt_length), number);
    if (!keys || !keys_->replace(period->slot, keys->material(suite_, protocol_))) {
      return Status::no_key;
    }
    period->number = number;
  }
  ++period->in_flight;
  pending.period = static_cast<std::uint8_t>(period - periods.begin());
  slot = period->slot;
  return Status::ok;
}

void Channel::put_back_key(const Pending& pending) {
  if (rate_ != 0) {
    --masters_[pending.master].derivation->periods[pending.period].in_flight;
  }
}

// -- prepare
// ---------------------------------------------------------------------------------------------------------------

Status Channel::prepare(const Packet& packet, crypto::Job& job, Pending& pending) {
  Parsed parsed;
  if (const Status status = parse(packet, parsed); status != Status::ok) {
    return status;
  }
  return direction_ == Direction::protect ? protect(packet, parsed, job, pending)
                                          : unprotect(packet, parsed, job, pending);
}

bool Channel::marks_at_once(const Packet& packet) {
  if (direction_ == Direction::unprotect || protocol_ == Protocol::rtcp || packet.length < rtp_fixed_length) {
    return direction_ == Direction::protect;
  }
  const std::uint32_t slot = find(load32(packet.data + rtp_ssrc_offset));
  return slot == no_stream_slot || (*pool_)[slot].fresh;
}

void Channel::prefetch_state() const {
  if (first_ != no_stream_slot) {
    pool_->prefetch(first_);
  }
  sluice::prefetch(masters_.data());
}

void Channel::prefetch_finish(const Pending& pending) const {
  if (pending.stream != no_stream_slot) {
    pool_->prefetch(pending.stream);
  }
}

Status Channel::parse(const Packet& packet, Parsed& parsed) const {
  parsed.data = packet.data;
  const std::span<const std::uint8_t> bytes(packet.data, packet.length);
  if (protocol_ == Protocol::rtcp) {
    parsed.cipher_offset = rtcp_fixed_length;
    return parse_rtcp(bytes, parsed.ssrc);
  }
  RtpHeader header;
  const Status status = parse_rtp(bytes, header);
  parsed.ssrc = header.ssrc;
  parsed.sequence = header.sequence;
  parsed.cipher_offset = header.length;
  return status;
}

// RTP's next index, or SRTCP's to protect.
Status Channel::choose_index(const Stream& stream, std::uint16_t sequence, std::uint64_t& index) const {
  if (protocol_ == Protocol::rtcp) {
    index = stream.fresh ? 0 : stream.highest + 1;
  } else {
    index = stream.fresh ? stream.highest | sequence : guess_index(stream.highest, sequence);
  }
  return index > max_index(protocol_) ? Status::key_expired : Status::ok;
}

Status Channel::protect(const Packet& packet, const Parsed& parsed, crypto::Job& job, Pending& pending) {
  const std::uint32_t length = packet.length + overhead();
  if (length > packet.room || length > max_packet_length) {
    return Status::no_room;
  }
  while (masters_[current_].left == 0) {
    if (current_ + 1U == masters_.size()) {
      return Status::key_expired;
    }
    ++current_;
  }
  const std::uint32_t slot = find_or_add(parsed.ssrc);
  if (slot == no_stream_slot) {
    return Status::no_stream;
  }
  const Stream& stream = (*pool_)[slot];
  const bool tag_first = facts(suite_).cipher == crypto::Cipher::aes_gcm;  // RFC 7714; RFC 3711 has it last
  pending = {.index = 0,
             .ssrc = parsed.ssrc,
             .stream = slot,
             .length = static_cast<std::uint16_t>(length),
             .master = current_,
             .period = 0,
             .behind_tag = static_cast<std::uint8_t>(tag_first ? overhead() - tag_length_ : 0),
             .marked = protocol_ == Protocol::rtcp || stream.fresh};
  Status status = choose_index(stream, parsed.sequence, pending.index);
  if (status == Status::ok && !stream.fresh) {
    status = check_window(pool_->window(slot), stream.highest, pending.index);
  }
  if (status == Status::ok && stream.in_flight >= max_in_flight) {
    status = Status::too_many_in_flight;
  }
  if (status == Status::ok) {
    status = take_key(pending, job.key);
  }
  if (status != Status::ok) {
    return status;
  }
  if (pending.marked) {
    mark(slot, pending.index);
  } else {
    ++(*pool_)[slot].in_flight;
  }
  --masters_[current_].left;

  Parsed sealed = parsed;
  sealed.cipher_length = static_cast<std::uint16_t>(packet.length - parsed.cipher_offset);
  std::uint8_t* behind = packet.data + packet.length;
  behind += tag_first ? tag_length_ : 0;
  if (protocol_ == Protocol::rtcp) {
    store<index_length>(sealed.e_and_index, pending.index);
    sealed.e_and_index[0] |= e_bit;
    std::memcpy(behind, sealed.e_and_index, index_length);
    behind += index_length;
  }
  if (mki_length_ != 0) {
    std::memcpy(behind, masters_[current_].mki.data(), mki_length_);
  }
  fill(sealed, pending, job);
  return Status::ok;
}

Status Channel::unprotect(const Packet& packet, const Parsed& parsed, crypto::Job& job, Pending& pending) {
  if (packet.length < parsed.cipher_offset + overhead()) {
    return Status::too_short;
  }
  const std::uint32_t length = packet.length - overhead();
  const bool tag_first = facts(suite_).cipher == crypto::Cipher::aes_gcm;
  const std::uint8_t* behind = packet.data + length + (tag_first ? tag_length_ : 0);
  Parsed sealed = parsed;
  sealed.cipher_length = static_cast<std::uint16_t>(length - parsed.cipher_offset);
  pending = {.index = 0,
             .ssrc = parsed.ssrc,
             .stream = find(parsed.ssrc),
             .length = static_cast<std::uint16_t>(length),
             .master = 0,
             .period = 0,
             .behind_tag = 0,
             .marked = false};
  if (protocol_ == Protocol::rtcp) {
    std::memcpy(sealed.e_and_index, behind, index_length);
    pending.index = load32(behind) & max_rtcp_index;
    if ((behind[0] & e_bit) == 0) {  // in clear, and authenticated all the same
      sealed.cipher_offset = static_cast<std::uint16_t>(length);
      sealed.cipher_length = 0;
    }
    behind += index_length;
  }
  Status status = find_master(behind, pending.master);
  if (status != Status::ok) {
    return status;
  }
  if (masters_[pending.master].left == 0) {
    return Status::key_expired;
  }
  if (pending.stream == no_stream_slot) {
    if (protocol_ == Protocol::rtp) {
      pending.index = parsed.sequence;
    }
  } else {
    const Stream& stream = (*pool_)[pending.stream];
    if (protocol_ == Protocol::rtp) {
      status = choose_index(stream, parsed.sequence, pending.index);
    }
    if (status == Status::ok && !stream.fresh) {
      status = check_window(pool_->window(pending.stream), stream.highest, pending.index);
    }
    if (status == Status::ok && stream.in_flight >= max_in_flight) {
      status = Status::too_many_in_flight;
    }
  }
  if (status == Status::ok) {
    status = take_key(pending, job.key);
  }
  if (status != Status::ok) {
    return status;
  }
  if (pending.stream != no_stream_slot) {
    ++(*pool_)[pending.stream].in_flight;
  }
  fill(sealed, pending, job);
  return Status::ok;
}

// All but the key. Counter mode has the tag behind SRTCP's index and the MKI, GCM before them.
void Channel::fill(const Parsed& parsed, const Pending& pending, crypto::Job& job) const {
  const bool gcm = facts(suite_).cipher == crypto::Cipher::aes_gcm;
  job.data = reinterpret_cast<std::uint64_t>(parsed.data);
  job.cipher_offset = parsed.cipher_offset;
  job.cipher_length = parsed.cipher_length;
  job.tag_gap = static_cast<std::uint8_t>(gcm ? 0 : overhead() - tag_length_);
  store<4>(job.nonce, parsed.ssrc);
  store<6>(job.nonce + 4, pending.index);
  job.flags = direction_ == Direction::unprotect ? crypto::job_opens : std::uint8_t{0};
  if (protocol_ == Protocol::rtcp) {
    std::memcpy(job.suffix, parsed.e_and_index, index_length);
    job.flags |= crypto::job_has_suffix;
  } else if (!gcm) {
    store<4>(job.suffix, pending.index >> 16);
    job.flags |= crypto::job_has_suffix;
  }
}

// -- finish
// ----------------------------------------------------------------------------------------------------------------

void Channel::leave_flight(const Pending& pending) {
  put_back_key(pending);
  if (!pending.marked && pending.stream != no_stream_slot) {
    --(*pool_)[pending.stream].in_flight;
  }
}

void Channel::withdraw(const Pending& pending) {
  leave_flight(pending);
  if (direction_ == Direction::protect) {
    ++masters_[pending.master].left;
  }
}

void Channel::abandon(const Pending& pending) {
  leave_flight(pending);
  if (direction_ == Direction::protect && !pending.marked) {
    take_index(pending.stream, pending.index);
  }
}

// Unless it has been taken.
Status Channel::take_index(std::uint32_t slot, std::uint64_t index) {
  const Stream& stream = (*pool_)[slot];
  if (!stream.fresh) {
    if (const Status status = check_window(pool_->window(slot), stream.highest, index); status != Status::ok) {
      return status;
    }
  }
  mark(slot, index);
  return Status::ok;
}

Status Channel::finish(const Pending& pending, crypto::Verdict verdict) {
  if (verdict != crypto::Verdict::done) {
    abandon(pending);
    return Status::auth_failed;
  }
  leave_flight(pending);
  if (direction_ == Direction::protect) {
    return pending.marked ? Status::ok : take_index(pending.stream, pending.index);
  }
  Master& master = masters_[pending.master];
  if (master.left == 0) {
    return Status::key_expired;
  }
  const std::uint32_t slot = pending.stream != no_stream_slot ? pending.stream : find_or_add(pending.ssrc);
  if (slot == no_stream_slot) {
    return Status::no_stream;
  }
  const Status status = take_index(slot, pending.index);
  if (status == Status::ok) {
    --master.left;
  }
  return status;
}

}  // namespace sluice::srtp
