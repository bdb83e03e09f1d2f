#include "media/srtp/channel.h"

#include <utility>

#include "media/srtp/big_endian.h"
#include "media/srtp/header.h"

namespace sluice::srtp {
namespace {

constexpr std::uint32_t rtp_ssrc_offset = 8;

}  // namespace

Channel::Channel(const ChannelSettings& settings, MasterKeys masters, StreamPool& pool)
    : masters_(std::move(masters)),
      streams_(pool, settings.max_streams),
      format_(settings.suite, settings.protocol, masters_.mki_length()),
      direction_(settings.direction) {}

Expected<Channel> Channel::make(const ChannelSettings& settings, std::span<const MasterKey> masters,
                                crypto::KeyTable& keys, StreamPool& pool) {
  if (settings.max_streams == 0) {
    return make_error("a channel of 0 streams: must be at least 1");
  }
  auto made = MasterKeys::make(settings.suite, settings.protocol, settings.key_derivation_rate, masters, keys);
  if (!made) {
    return tl::unexpected(made.error());
  }
  return Channel(settings, std::move(*made), pool);
}

void Channel::end_streams() {
  streams_.clear();
}

std::uint32_t Channel::overhead() const {
  return format_.overhead();
}

Status Channel::open_stream(std::uint32_t ssrc, std::uint32_t roc) {
  if (streams_.find(ssrc) != no_stream_slot) {
    return Status::replayed;
  }
  return streams_.add(ssrc, roc) != no_stream_slot ? Status::ok : Status::no_stream;
}

Status Channel::prepare(const Packet& packet, crypto::Job& job, Pending& pending) {
  PacketParts parts;
  if (const Status status = parse(packet, parts); status != Status::ok) {
    return status;
  }
  return direction_ == Direction::protect ? protect(packet, parts, job, pending)
                                          : unprotect(packet, parts, job, pending);
}

bool Channel::marks_at_once(const Packet& packet) {
  if (direction_ == Direction::unprotect || format_.protocol() == Protocol::rtcp || packet.length < rtp_fixed_length) {
    return direction_ == Direction::protect;
  }
  const std::uint32_t slot = streams_.find(load32(packet.data + rtp_ssrc_offset));
  return slot == no_stream_slot || streams_[slot].fresh;
}

void Channel::prefetch_state() const {
  streams_.prefetch_first();
  masters_.prefetch();
}

void Channel::prefetch_finish(const Pending& pending) const {
  if (pending.stream != no_stream_slot) {
    streams_.prefetch(pending.stream);
  }
}

Status Channel::parse(const Packet& packet, PacketParts& parts) const {
  parts.data = packet.data;
  const std::span<const std::uint8_t> bytes(packet.data, packet.length);
  if (format_.protocol() == Protocol::rtcp) {
    parts.cipher_offset = rtcp_fixed_length;
    return parse_rtcp(bytes, parts.ssrc);
  }
  RtpHeader header;
  const Status status = parse_rtp(bytes, header);
  parts.ssrc = header.ssrc;
  parts.sequence = header.sequence;
  parts.cipher_offset = header.length;
  return status;
}

Status Channel::protect(const Packet& packet, PacketParts& parts, crypto::Job& job, Pending& pending) {
  const std::uint32_t length = packet.length + format_.overhead();
  if (length > packet.capacity || length > max_packet_length) {
    return Status::no_capacity;
  }
  std::uint8_t master = 0;
  if (const Status status = masters_.choose(master); status != Status::ok) {
    return status;
  }
  std::uint32_t slot = streams_.find(parts.ssrc);
  const bool known = slot != no_stream_slot;
  if (!known) {
    slot = streams_.add(parts.ssrc, 0);
    if (slot == no_stream_slot) {
      return Status::no_stream;
    }
  }
  pending = {.index = 0,
             .ssrc = parts.ssrc,
             .stream = slot,
             .length = static_cast<std::uint16_t>(length),
             .master = master,
             .period = 0,
             .behind_tag = format_.behind_tag(),
             .marked = format_.protocol() == Protocol::rtcp || streams_[slot].fresh};
  Status status = streams_.next_index(slot, format_.protocol(), parts.sequence, pending.index);
  if (status == Status::ok && streams_.is_before_first(slot, pending.index)) {
    status = Status::too_old;
  }
  if (status == Status::ok) {
    status = streams_.check(slot, pending.index);
  }
  if (status == Status::ok) {
    status = masters_.take(master, pending.index, pending.index, pending.period, job.key);
  }
  if (status != Status::ok) {
    if (!known) {
      streams_.take_back(slot);
    }
    return status;
  }
  if (pending.marked) {
    streams_.mark(slot, pending.index);
  } else {
    streams_.enter_flight(slot);
  }
  masters_.count(master);
  format_.add_trailer(parts, packet.length, pending.index, masters_.mki(master));
  format_.make_job(parts, pending.index, false, job);
  return Status::ok;
}

// All that follows from the packet alone.
Status Channel::read_protected(const Packet& packet, PacketParts& parts, Pending& pending) const {
  if (packet.length < parts.cipher_offset + format_.overhead()) {
    return Status::too_short;
  }
  const std::uint32_t length = packet.length - format_.overhead();
  pending = {.index = 0,
             .ssrc = parts.ssrc,
             .stream = no_stream_slot,
             .length = static_cast<std::uint16_t>(length),
             .master = 0,
             .period = 0,
             .behind_tag = 0,
             .marked = false};
  const std::uint8_t* const mki = format_.read_trailer(parts, length, pending.index);
  return masters_.find(mki, pending.master);
}

Status Channel::prepare_unowned(const Packet& packet, FirstRoc first, crypto::Job& job, Pending& pending) const {
  PacketParts parts;
  Status status = parse(packet, parts);
  if (status == Status::ok) {
    status = read_protected(packet, parts, pending);
  }
  if (status != Status::ok) {
    return status;
  }
  if (format_.protocol() == Protocol::rtp) {
    const std::uint64_t roc = parts.ssrc == first.ssrc ? first.roc : 0;
    pending.index = roc << 16 | parts.sequence;
  }
  job.key = masters_.only_slot(pending.master);
  format_.make_job(parts, pending.index, true, job);
  return Status::ok;
}

Status Channel::unprotect(const Packet& packet, PacketParts& parts, crypto::Job& job, Pending& pending) {
  Status status = read_protected(packet, parts, pending);
  if (status != Status::ok) {
    return status;
  }
  pending.stream = streams_.find(parts.ssrc);
  if (masters_.expired(pending.master)) {
    status = Status::key_expired;
  }
  if (pending.stream == no_stream_slot) {
    if (format_.protocol() == Protocol::rtp) {
      pending.index = parts.sequence;
    }
  } else {
    if (status == Status::ok && format_.protocol() == Protocol::rtp) {
      status = streams_.next_index(pending.stream, Protocol::rtp, parts.sequence, pending.index);
    }
    if (status == Status::ok) {
      status = streams_.check(pending.stream, pending.index);
    }
  }
  if (status == Status::ok) {
    const std::uint64_t highest = streams_.highest(pending.stream, MasterKeys::no_highest);
    status = masters_.take(pending.master, pending.index, highest, pending.period, job.key);
  }
  if (status != Status::ok) {
    return status;
  }
  if (pending.stream != no_stream_slot) {
    streams_.enter_flight(pending.stream);
  }
  format_.make_job(parts, pending.index, true, job);
  return Status::ok;
}

void Channel::leave_flight(const Pending& pending) {
  masters_.put_back(pending.master, pending.period);
  if (!pending.marked && pending.stream != no_stream_slot) {
    streams_.leave_flight(pending.stream);
  }
}

void Channel::withdraw(const Pending& pending) {
  leave_flight(pending);
  if (direction_ == Direction::protect) {
    masters_.count_back(pending.master);
  }
}

void Channel::abandon(const Pending& pending) {
  leave_flight(pending);
  if (direction_ == Direction::protect && !pending.marked) {
    streams_.take(pending.stream, pending.index);
  }
}

Status Channel::finish(const Pending& pending, crypto::Verdict verdict) {
  if (verdict != crypto::Verdict::done) {
    abandon(pending);
    return Status::auth_failed;
  }
  leave_flight(pending);
  if (direction_ == Direction::protect) {
    return pending.marked ? Status::ok : streams_.take(pending.stream, pending.index);
  }
  if (masters_.expired(pending.master)) {
    return Status::key_expired;
  }
  const std::uint32_t slot = pending.stream != no_stream_slot ? pending.stream : streams_.find_or_add(pending.ssrc);
  if (slot == no_stream_slot) {
    return Status::no_stream;
  }
  const Status status = streams_.take(slot, pending.index);
  if (status == Status::ok) {
    masters_.count(pending.master);
    masters_.establish(pending.master, pending.period);
  }
  return status;
}

}  // namespace sluice::srtp
