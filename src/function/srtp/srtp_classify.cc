// SRTP's first step: which stream a frame is of, if any, and the job of its packet.

#include <rte_cycles.h>

#include <algorithm>

#include "engine/batch_edit.h"
#include "function/srtp/clear_media.h"
#include "function/srtp/rewrite.h"
#include "function/srtp/srtp.h"
#include "function/srtp/srtp_area.h"

namespace sluice::function {
namespace {

using outcome::drop;

// Frames that are classified together.
constexpr std::uint32_t looks = 32;

}  // namespace

// A frame of a burst, with all there is to know before its stream is looked at.
struct Srtp::Look {
  MediaFrame media;
  std::uint64_t hash;
  MediaStream* stream;  // in all likelihood; null: unknown
};

void Srtp::classify(engine::Batch& batch, engine::Span span) {
  const Area a(area(batch), batch.capacity);
  if (span.first == 0) {
    Area::Header& header = *a.header;
    header.table = current_->pin(Area::reader_of(batch));
    header.installs = devices_.installs();
    header.jobs = header.finished = 0;
    header.kept = batch.capacity;
    header.kept_done = header.sums = header.not_computed = false;
    header.runs.clear();
  }
  for (std::uint32_t i = span.first; i < span.end(); i += looks) {
    classify_some(batch, a, i, std::min(span.end() - i, looks));
  }
}

// With many streams their state is in no cache: it is asked for, step by step, for all frames at once.
void Srtp::classify_some(const engine::Batch& batch, const Area& a, std::uint32_t first, std::uint32_t count) {
  Look look[looks];
  a.header->now = rte_rdtsc();
  const MediaStreamSlots::View& view = a.header->table->view();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t of = first + i;
    read_media_frame(reinterpret_cast<const std::uint8_t*>(batch.frame[of]), batch.length[of], look[i].media);
    look[i].hash = look[i].media.kind == MediaFrameKind::other ? 0 : hash_of(look[i].media.key);
    view.prefetch(look[i].hash);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    look[i].stream = view.probable(look[i].hash);
    if (look[i].stream != nullptr) look[i].stream->prefetch();
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (look[i].stream != nullptr) look[i].stream->prefetch_channels();
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (look[i].stream != nullptr) look[i].stream->prefetch_state(batch.lane);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t of = first + i;
    if (batch.goes_on(of)) [[likely]] {
      a.places[of] = place_of(batch, a, of, look[i]);
    } else {
      a.places[of] = batch.is_live(of) ? place_of_transit(batch, a, of, look[i].media) : outcome::passes;
    }
  }
}

std::uint32_t Srtp::place_of(const engine::Batch& batch, const Area& a, std::uint32_t i, const Look& look) {
  const MediaFrame& media = look.media;
  if (media.kind == MediaFrameKind::other) return rtsp_flows_.empty() ? outcome::passes : place_of_other(batch, i);
  if (media.kind == MediaFrameKind::odd) {
    const auto* const frame = reinterpret_cast<const std::uint8_t*>(batch.frame[i]);
    const packet::Reason why = look_at_odd(*a.header->table, frame, batch.length[i], media);
    return why != packet::no_reason ? drop(why) : outcome::passes;
  }
  MediaStream* const stream = a.header->table->view().find(media.key, look.hash);
  if (stream == nullptr) {
    const auto* const frame = reinterpret_cast<const std::uint8_t*>(batch.frame[i]);
    if (server_media_.may_be(media.key) || goes_on_in_clear(frame, batch.length[i], media)) [[unlikely]]
      return drop(srtp_unprotected);
    if (has_media_ports_) look_at_unmatched(batch.lane, *a.header->table, media.key);
    return outcome::passes;
  }
  const std::uint32_t place =
      media.kind == MediaFrameKind::bad ? drop(srtp_malformed) : prepare_packet(batch, a, i, media, *stream);
  const bool goes_on = place == outcome::passes || !outcome::is_drop(place);
  if (!goes_on) [[unlikely]] {
    stream->rare().refuse(outcome::reason(place), a.header->now);
    return place;
  }
  stream->came(a.header->now);
  if (const MediaKey* const ends = stream->leaves(); ends != nullptr) [[unlikely]] {
    rewrite_ends(batch.data(i), media.udp_offset, *ends);  // before what forwards looks where it goes
  }
  return place;
}

// Of a frame that the kernel is to forward, which neither protects nor unprotects: no frame of a stream goes that way,
// and none gets new ends.
[[gnu::noinline]] std::uint32_t Srtp::place_of_transit(const engine::Batch& batch, const Area& a, std::uint32_t i,
                                                       const MediaFrame& media) const {
  const std::uint8_t* const frame = batch.data(i);
  packet::Reason why = packet::no_reason;
  if (media.kind != MediaFrameKind::other) {
    why = look_at_odd(*a.header->table, frame, batch.length[i], media);
  } else if (rtsp_flows_.look_at(frame, batch.length[i]) == RtspFrame::past) {
    why = srtp_rtsp_past_proxy;
  }
  return why != packet::no_reason ? drop(why) : outcome::passes;
}

// A later fragment has no ports.
packet::Reason Srtp::look_at_odd(const MediaStreamTable& table, const std::uint8_t* frame, std::uint32_t length,
                                 const MediaFrame& media) const {
  const MediaKey& key = media.key;
  if (MediaStream* const stream = table.find(key)) stream->rare().refuse(srtp_not_plain, rte_rdtsc());
  if (table.may_concern(key)) return srtp_not_plain;
  const bool later = key.source_port == 0 && key.destination_port == 0;
  const bool clear = server_media_.may_be(key, later) || goes_on_in_clear(frame, length, media);
  return clear ? srtp_unprotected : packet::no_reason;
}

// Of no stream. What goes to an address of `listen` is the host's.
bool Srtp::goes_on_in_clear(const std::uint8_t* frame, std::uint32_t length, const MediaFrame& media) const {
  if (!drops_unprotected_.load(std::memory_order_relaxed) || !may_be_clear_media(frame, length, media)) return false;
  if (!has_media_ports_) return true;
  const MediaKey& key = media.key;
  return !options_.rtsp->is_explicit(packet::IpAddress::from_bytes(static_cast<int>(key.family), key.destination));
}

// UDP of no stream at the proxy's own ports: the host's, like all that is addressed to it.
[[gnu::noinline]] void Srtp::look_at_unmatched(std::uint32_t lane, const MediaStreamTable& table, MediaKey key) {
  const RtspOptions& rtsp = *options_.rtsp;
  const std::uint16_t port = packet::be16(key.destination_port);
  if (port < rtsp.first_media_port || port > rtsp.last_media_port) return;
  const auto to = packet::IpAddress::from_bytes(static_cast<int>(key.family), key.destination);
  key.source_port = key.destination_port = 0;
  if (rtsp.is_explicit(to) || table.may_concern(key)) lanes_[lane]->unmatched.add(1);
}

std::uint32_t Srtp::prepare_packet(const engine::Batch& batch, const Area& a, std::uint32_t i, const MediaFrame& media,
                                   MediaStream& stream) {
  auto* const frame = reinterpret_cast<std::uint8_t*>(batch.frame[i]);
  std::uint8_t* const payload = frame + media.payload_offset();
  const std::uint32_t length = udp_payload_length(frame, media);
  const std::uint32_t buffer = engine::capacity_from(batch, i);
  // What is unprotected gets shorter.
  const std::uint32_t most = stream.protects() ? std::min(buffer, options_.largest_frame) : buffer;
  if (most < media.payload_offset() + length) return drop(srtp_too_big);
  bool unowned = false;
  if (!stream.is_of(batch.lane) || !stream.may_come_by(batch.row[i].port)) [[unlikely]] {
    const packet::Reason why = look_at_lane(batch.lane, batch.row[i].port, stream, unowned);
    if (why != packet::no_reason) return drop(why);
  }
  if (!stream.conforms(batch.length[i], rte_rdtsc)) return drop(srtp_policed);
  bool rtcp = false;
  MediaLeg* const leg = stream.leg_for({payload, length}, rtcp);
  if (leg == nullptr) return place_without_key(batch.lane, rtcp, stream);
  srtp::Channel* const channel = &*leg->channel;
  const bool for_device = stream.installs() <= a.header->installs && length + channel->overhead() <= most_on_device_ &&
                          buffer - media.payload_offset() >= capacity_on_device_;
  const std::uint32_t place = for_device ? a.header->jobs : a.header->kept - 1;
  Area::Work& work = a.works[place];
  crypto::Job& job = a.jobs[place];
  const srtp::Packet packet{payload, length, most - media.payload_offset()};
  const bool sums = for_device && devices_.is_there() && has_udp_checksum(frame, media);
  const bool checks = sums && stream.protects() && !channel->marks_at_once(packet);
  if (stream.protects() && !checks && !udp_checksum_ok(frame, media)) return drop(srtp_bad_checksum);
  const srtp::Status status = unowned ? channel->prepare_unowned(packet, stream.first_roc(), job, work.pending)
                                      : channel->prepare(packet, job, work.pending);
  if (status != srtp::Status::ok) {
    return drop(checks && !udp_checksum_ok(frame, media) ? srtp_bad_checksum : reason_of(status));
  }
  work.leg = leg;
  work.stream = &stream;
  work.frame = i;
  work.udp_offset = media.udp_offset;
  work.rtcp = rtcp;
  work.protects = stream.protects();
  work.checks = checks;
  work.makes = sums;
  work.unowned = unowned;
  if (sums) {
    job.flags |=
        static_cast<std::uint8_t>(checks ? crypto::job_sums_before | crypto::job_sums_after : crypto::job_sums_after);
    a.header->sums = true;
  }
  a.verdicts[place] = crypto::Verdict::tag_mismatch;  // until it is computed
  if (for_device) [[likely]] {
    a.header->jobs = place + 1;
    a.header->runs.add(job.data, length + (work.protects ? channel->overhead() : 0));
  } else {
    a.header->kept = place;
  }
  return place;
}

// Of a stream that is not this lane's, as far as is known: why not, or that it may become so.
[[gnu::noinline]] packet::Reason Srtp::look_at_lane(std::uint32_t lane, std::uint16_t port, MediaStream& stream,
                                                    bool& unowned) const {
  if (!stream.may_come_by(port)) return srtp_wrong_port;
  if (stream.settings().keyless != Keyless::no) return packet::no_reason;
  if (stream.is_claimed()) return srtp_other_lane;
  unowned = stream.waits_for_authentic();
  return unowned || stream.claim(lane, port) ? packet::no_reason : srtp_other_lane;
}

// What the proxy terminates is the host's.
std::uint32_t Srtp::place_of_other(const engine::Batch& batch, std::uint32_t i) {
  switch (rtsp_flows_.look_at(reinterpret_cast<const std::uint8_t*>(batch.frame[i]), batch.length[i])) {
    case RtspFrame::rtsp:
      lanes_[batch.lane]->to_proxy.add(1);
      return outcome::hands_over;
    case RtspFrame::past:
      return drop(srtp_rtsp_past_proxy);
    case RtspFrame::fragment:
      return drop(srtp_rtsp_fragment);
    case RtspFrame::none:
      break;
  }
  return outcome::passes;
}

[[gnu::cold, gnu::noinline]] std::uint32_t Srtp::place_without_key(std::uint32_t lane, bool rtcp, MediaStream& stream) {
  switch (stream.settings().keyless) {
    case Keyless::ended:
      stream.note();
      return drop(srtp_ended);
    case Keyless::passes:
      stream.note();
      stream.rare().pass();
      lanes_[lane]->others.add(1);
      return outcome::passes;
    case Keyless::passes_rtcp:
      if (!rtcp) return drop(srtp_not_media);
      stream.note();
      stream.rare().pass();
      lanes_[lane]->clear_rtcp.add(1);
      return outcome::passes;
    case Keyless::drops_rtcp:
      if (!rtcp) return drop(srtp_not_media);
      stream.note();  // its client is there
      return drop(srtp_clear_rtcp);
    case Keyless::no:
      break;
  }
  if (!stream.passes_others()) return drop(srtp_not_media);
  stream.rare().pass();
  lanes_[lane]->others.add(1);
  return outcome::passes;
}

}  // namespace sluice::function
