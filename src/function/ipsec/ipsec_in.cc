// Inbound: packets of ESP and AH to this gateway are found before others look at them, opened, and go on as what was in
// them. And what came in clear is judged.
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/prefetch.h"
#include "engine/batch_edit.h"
#include "engine/pipeline.h"
#include "function/ipsec/exempt.h"
#include "function/ipsec/ipsec.h"
#include "function/ipsec/ipsec_area.h"
#include "ipsec/esp.h"
#include "ipsec/outer_packet.h"
#include "ipsec/policy_check.h"
#include "packet/headers.h"
#include "packet/metadata.h"

namespace sluice::function {
namespace {

using ipsec::OuterKind;
using packet::no_reason;
using packet::Reason;

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);

bool may_be_ipsec(std::uint8_t protocol) {
  return protocol == packet::protocol_esp || protocol == packet::protocol_ah || protocol == packet::protocol_udp;
}

// Whether find_outer() has to look. Most frames are none.
bool is_candidate(const std::uint8_t* frame, std::uint32_t length) {
  if (length < ethernet + sizeof(packet::Ipv4Header)) return false;
  std::uint16_t type;
  std::memcpy(&type, frame + 12, sizeof type);
  if (type == packet::be16(packet::ethertype_ipv4)) {
    const std::uint8_t protocol = frame[ethernet + 9];
    if (protocol != packet::protocol_udp) return may_be_ipsec(protocol);
    const std::uint32_t port = ethernet + (frame[ethernet] & 0xfU) * 4U + 2;
    return length < port + 2 ||
           (frame[port] == ipsec::nat_traversal_port >> 8 && frame[port + 1] == (ipsec::nat_traversal_port & 0xff));
  }
  if (type != packet::be16(packet::ethertype_ipv6)) return false;
  const std::uint8_t next_header = frame[ethernet + 6];
  if (next_header != packet::protocol_udp) {
    return may_be_ipsec(next_header) || packet::is_ipv6_extension(next_header);
  }
  constexpr std::uint32_t port = ethernet + sizeof(packet::Ipv6Header) + 2;
  return length < port + 2 ||
         (frame[port] == ipsec::nat_traversal_port >> 8 && frame[port + 1] == (ipsec::nat_traversal_port & 0xff));
}

ipsec::SadKey key_of(const std::uint8_t* frame, const ipsec::OuterView& outer) {
  const std::uint32_t spi = outer.at + (outer.protocol == ipsec::Protocol::ah ? offsetof(packet::AhHeader, spi) : 0U);
  return ipsec::sad_key(frame + spi, outer.family, outer.destination, outer.protocol);
}

}  // namespace

// Frames of SAs are in a pass of their own; others go on to the link layer of the router.
void Ipsec::admit(engine::Batch& batch, engine::Span span) {
  if (batch.pass != 0) return;
  const IpsecArea a(area(batch), batch.capacity);
  if (span.first == 0) begin(batch, a, databases_->pin(reader_of(batch)));
  std::array<ipsec::OuterView, engine::most_classified> outer;
  std::array<ipsec::SadKey, engine::most_classified> keys;
  std::array<std::uint32_t, engine::most_classified> rows;
  std::array<ipsec::Sa*, engine::most_classified> found;
  std::size_t count = 0;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    a.places[i] = IpsecArea::no_place;
    const std::uint8_t* const frame = batch.data(i);
    if (!batch.goes_on(i) || !is_candidate(frame, batch.length[i])) continue;
    outer[count] = {};
    if (ipsec::find_outer(frame, batch.length[i], outer[count]) != OuterKind::ipsec) continue;
    keys[count] = key_of(frame, outer[count]);
    rows[count++] = i;
  }
  if (count == 0) return;
  a.header->view->find_sas({keys.data(), count}, found.data());
  for (std::size_t n = 0; n < count; ++n) {
    if (found[n] != nullptr) look_at(batch, a, rows[n], *found[n], outer[n]);
  }
}

void Ipsec::look_at(engine::Batch& batch, const IpsecArea& a, std::uint32_t i, ipsec::Sa& sa,
                    const ipsec::OuterView& outer) {
  if (sa.state.load(std::memory_order_relaxed) == ipsec::SaState::dead) {
    sa.refused.expired.fetch_add(1, std::memory_order_relaxed);
    return batch.drop(i, ipsec_expired);
  }
  const ipsec::PacketFormat& format = sa.outer.load(std::memory_order_acquire)->format;
  const auto number = sa.window.extend(outer.sequence);
  if (!number || !sa.window.may_be_new(*number)) {
    sa.refused.replay.fetch_add(1, std::memory_order_relaxed);
    return batch.drop(i, ipsec_replay);
  }
  const bool is_ah = outer.protocol == ipsec::Protocol::ah;
  const std::uint32_t packet_bytes = is_ah ? outer.at - ethernet + outer.length + format.icv : outer.length;
  const std::uint32_t place = take_place(batch, a, i, sa, is_ah ? ethernet : outer.at, packet_bytes);
  IpsecArea::Work& work = a.works[place];
  const auto upper = static_cast<std::uint32_t>(*number >> 32);
  std::uint8_t* const frame = batch.data(i);
  const bool fits = !is_ah || engine::capacity_from(batch, i) >= ethernet + packet_bytes;
  const bool fine = fits && (is_ah ? ipsec::ah_look(format, frame, outer, upper, a.jobs[place], work.kept)
                                   : ipsec::esp_look(format, frame, outer, upper, a.jobs[place]));
  if (!fine) {
    sa.refused.malformed.fetch_add(1, std::memory_order_relaxed);
    return batch.drop(i, ipsec_malformed);
  }
  a.jobs[place].key = sa.key;
  work.sa = &sa;
  work.format = &format;
  work.sequence = *number;
  work.frame = i;
  work.at = outer.at;
  work.length = outer.length;
  work.named_at = outer.named_at;
  work.udp_source = outer.udp_source;
  work.family = outer.family;
  work.tos = outer.tos;
  work.in_udp = outer.in_udp;
  note_job(a, place, sa, packet_bytes);
  a.places[i] = place;
  batch.go_on_later(i);
}

// A policy may want protected what came in clear.
void Ipsec::check_clear(engine::Batch& batch, engine::Span span) {
  const IpsecArea a(area(batch), batch.capacity);
  Lane& lane = lane_of(batch);
  std::array<ipsec::PacketKey, engine::most_classified> keys;
  std::array<std::uint32_t, engine::most_classified> rows;
  std::array<const ipsec::PolicyEntry*, engine::most_classified> found;
  std::size_t count = 0;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    const bool own = batch.row[i].fate == engine::Fate::own;
    if (!own && (!batch.is_live(i) || batch.row[i].fate == engine::Fate::later)) continue;
    const std::uint8_t* const frame = batch.data(i);
    packet::Metadata meta;
    packet::read_metadata(frame, batch.length[i], packet::Depth::transport, meta);
    if (meta.family == 0) continue;
    if (is_exempt(frame, meta)) continue;  // if it is for the gateway itself, which the router finds out
    keys[count] = ipsec::packet_key(frame, meta);
    rows[count++] = i;
  }
  if (count == 0) return;
  a.header->view->find_policies(ipsec::Direction::in, {keys.data(), count}, found.data(), &lane.in_cache);
  for (std::size_t n = 0; n < count; ++n) {
    const ipsec::PolicyEntry* const policy = found[n];
    if (policy == nullptr || policy->action == ipsec::Action::bypass) continue;
    const std::uint32_t i = rows[n];
    a.header->view->count(ipsec::Direction::in, *policy, batch.lane, 1, batch.length[i] - ethernet);
    if (policy->action == ipsec::Action::discard) {
      batch.drop(i, ipsec_discarded);
    } else if (!ipsec::satisfies(*policy, {})) {
      lane.in_clear.add(1);
      batch.drop(i, ipsec_policy);
    }
  }
}

void Ipsec::apply_in(engine::Batch& batch, engine::Span span, const IpsecArea& a) {
  const ipsec::View& view = *a.header->view;
  for (engine::Span part{span.first, 0}; part.first < span.end(); part = {part.end(), 0}) {
    part.count = std::min<std::uint32_t>(span.end() - part.first, engine::most_classified);
    bool any = false;
    for (std::uint32_t i = part.first; i < part.end(); ++i) {
      const std::uint32_t place = a.places[i];
      if (place == IpsecArea::no_place || batch.row[i].fate != engine::Fate::later) continue;
      const Reason why = open(batch, a, place, view);
      any |= why == no_reason;
      if (why != no_reason) batch.drop(i, why);
    }
    if (any) check_opened(batch, part, a, view);
  }
}

// no_reason: the frame holds what was in it.
Reason Ipsec::open(engine::Batch& batch, const IpsecArea& a, std::uint32_t place, const ipsec::View& view) {
  const IpsecArea::Work& work = a.works[place];
  ipsec::Sa& sa = *work.sa;
  const std::uint32_t i = work.frame;
  if (a.verdicts[place] != crypto::Verdict::done) {
    sa.refused.bad_icv.fetch_add(1, std::memory_order_relaxed);
    return ipsec_bad_icv;
  }
  if (!sa.window.accept(work.sequence)) {
    sa.refused.replay.fetch_add(1, std::memory_order_relaxed);
    return ipsec_replay;
  }
  std::uint8_t* const frame = batch.data(i);
  const ipsec::OuterView outer{.at = work.at,
                               .length = work.length,
                               .named_at = work.named_at,
                               .protocol = sa.protocol,
                               .family = work.family,
                               .tos = work.tos,
                               .in_udp = work.in_udp};
  std::array<std::uint8_t, 16> source{};
  const std::uint32_t source_at =
      ethernet + (work.family == 4 ? offsetof(packet::Ipv4Header, source) : offsetof(packet::Ipv6Header, source));
  std::memcpy(source.data(), frame + source_at, work.family == 4 ? 4 : 16);
  const ipsec::Taken taken = sa.protocol == ipsec::Protocol::ah
                                 ? ipsec::ah_take_off(*work.format, frame, outer, work.kept)
                                 : ipsec::esp_take_off(*work.format, frame, outer);
  Lane& lane = lane_of(batch);
  switch (taken.content) {
    case ipsec::Content::packet:
      break;
    case ipsec::Content::dummy:
      lane.dummies.add(1);
      if (!view.count(sa, batch.lane, 1, 0)) return ipsec_expired;
      batch.absorb(i);
      return no_reason;
    case ipsec::Content::malformed:
      sa.refused.malformed.fetch_add(1, std::memory_order_relaxed);
      return ipsec_malformed;
    case ipsec::Content::congested:
      return ipsec_congested;
  }
  const std::uint32_t bytes = taken.length - ethernet;
  if (!view.count(sa, batch.lane, 1, bytes)) {
    sa.refused.expired.fetch_add(1, std::memory_order_relaxed);
    return ipsec_expired;
  }
  const ipsec::Outer& expected = *sa.outer.load(std::memory_order_acquire);
  if (sa.mode == ipsec::Mode::tunnel &&
      (expected.source != source || (work.in_udp && expected.source_port != packet::be16(work.udp_source))))
      [[unlikely]] {
    view.note_moved(sa, source.data(), work.udp_source);
  }
  batch.mbuf[i]->ol_flags |= looked_at_;  // so that choose() knows
  engine::shrink_front(batch, i, taken.front);
  engine::set_length(batch, i, taken.length);
  lane.opened.add(1);
  lane.opened_bytes.add(bytes);
  return no_reason;
}

// RFC 4301 section 5.2 step 4: whether a policy wants what came out of the SA, and from it.
void Ipsec::check_opened(engine::Batch& batch, engine::Span span, const IpsecArea& a, const ipsec::View& view) {
  std::array<ipsec::PacketKey, engine::most_classified> keys;
  std::array<std::uint32_t, engine::most_classified> rows;
  std::array<const ipsec::PolicyEntry*, engine::most_classified> found;
  std::size_t count = 0;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    if (a.places[i] == IpsecArea::no_place || batch.row[i].fate != engine::Fate::later) continue;
    packet::Metadata meta;
    packet::read_metadata(batch.data(i), batch.length[i], packet::Depth::transport, meta);
    if (!meta.is_whole_packet()) {
      a.works[a.places[i]].sa->refused.malformed.fetch_add(1, std::memory_order_relaxed);
      batch.drop(i, ipsec_malformed);
      continue;
    }
    keys[count] = ipsec::packet_key(batch.data(i), meta);
    rows[count++] = i;
  }
  view.find_policies(ipsec::Direction::in, {keys.data(), count}, found.data(), &lane_of(batch).in_cache);
  for (std::size_t n = 0; n < count; ++n) {
    const std::uint32_t i = rows[n];
    ipsec::Sa& sa = *a.works[a.places[i]].sa;
    const ipsec::PolicyEntry* const policy = found[n];
    if (policy != nullptr) {
      view.count(ipsec::Direction::in, *policy, batch.lane, 1, batch.length[i] - ethernet);
      if (policy->action == ipsec::Action::discard) {
        batch.drop(i, ipsec_discarded);
        continue;
      }
    }
    // Of transport mode none need be there, as in Linux.
    const ipsec::Sa* const opened = &sa;
    const bool wanted = policy == nullptr ? sa.mode == ipsec::Mode::transport : ipsec::satisfies(*policy, {&opened, 1});
    if (wanted && sa.has_inner(keys[n])) continue;
    sa.refused.policy.fetch_add(1, std::memory_order_relaxed);
    batch.drop(i, ipsec_policy);
  }
}

}  // namespace sluice::function
