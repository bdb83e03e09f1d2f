// Inbound: packets of ESP and AH to this gateway are found before others look at them, opened, and go on as what was in
// them. And what came in clear is judged.
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/prefetch.h"
#include "engine/batch_edit.h"
#include "engine/frame_marks.h"
#include "engine/pipeline.h"
#include "function/ipsec/exempt.h"
#include "function/ipsec/ipsec.h"
#include "function/ipsec/ipsec_area.h"
#include "ipsec/esp.h"
#include "ipsec/outer_packet.h"
#include "ipsec/policy_check.h"
#include "ipsec/too_big.h"
#include "packet/headers.h"
#include "packet/metadata.h"

namespace sluice::function {
namespace {

using ipsec::OuterKind;
using packet::no_reason;
using packet::Reason;

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);

// How many rows ahead of the one that is opened what it needs is asked for: frame, mbuf and SA; and what the SA leads
// to.
constexpr std::uint32_t frame_ahead = 12, state_ahead = 6;

ipsec::SadKey key_of(const std::uint8_t* frame, const ipsec::OuterView& outer) {
  const std::uint32_t spi = outer.at + (outer.protocol == ipsec::Protocol::ah ? offsetof(packet::AhHeader, spi) : 0U);
  return ipsec::sad_key(frame + spi, outer.family, outer.destination, outer.protocol);
}

// From the first byte that is authenticated, with space for the ICV at the end.
std::uint32_t job_bytes(const ipsec::PacketFormat& format, const ipsec::OuterView& outer) {
  return outer.protocol == ipsec::Protocol::ah ? outer.at - ethernet + outer.length + format.icv : outer.length;
}

bool is_tunnel(const ipsec::Sa* sa) {
  return sa->mode == ipsec::Mode::tunnel;
}

}  // namespace

// Of frames that hold ESP or AH, to look for their SAs at once.
struct Ipsec::Found {
  std::array<ipsec::OuterView, engine::most_classified> outer;
  std::array<ipsec::SadKey, engine::most_classified> keys;
  std::array<std::uint32_t, engine::most_classified> rows;
  std::array<ipsec::Sa*, engine::most_classified> sas;
  std::size_t count = 0;

  // What the frame is; outer[count] says more of what is no ESP or AH.
  OuterKind look_at(const engine::Batch& batch, std::uint32_t i) {
    const std::uint8_t* const frame = batch.data(i);
    if (!ipsec::may_be_outer(frame, batch.length[i])) return OuterKind::other;
    outer[count] = {};
    const OuterKind kind = ipsec::find_outer(frame, batch.length[i], outer[count]);
    if (kind != OuterKind::ipsec) return kind;
    keys[count] = key_of(frame, outer[count]);
    rows[count++] = i;
    return kind;
  }
};

// Frames of SAs are in a pass of their own; others go on to the link layer of the router.
void Ipsec::admit(engine::Batch& batch, engine::Span span) {
  if (batch.pass != 0) return;
  const IpsecArea a(area(batch), batch.capacity);
  if (span.first == 0) begin(batch, a, databases_->pin(reader_of(batch)));
  Lane& lane = lane_of(batch);
  const std::uint32_t now = a.header->view->seconds();
  lane.fragments.expire(now);
  lane.incomplete.set(lane.fragments.counters().incomplete);
  Found found;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    a.places[i] = IpsecArea::no_place;
    if (!batch.goes_on(i)) continue;
    if (ipsec::is_too_big(batch.data(i), batch.length[i])) [[unlikely]] {
      if (const auto error = ipsec::read_too_big(batch.data(i), batch.length[i])) a.header->view->note_too_big(*error);
      continue;
    }
    const bool is_piece = found.look_at(batch, i) == OuterKind::fragment;
    if (is_piece && put_together(batch, i, found.outer[found.count], now)) found.look_at(batch, i);
  }
  if (found.count == 0) return;
  a.header->view->find_sas({found.keys.data(), found.count}, found.sas.data());
  for (std::size_t n = 0; n < found.count; ++n) {
    if (n + state_ahead < found.count && found.sas[n + state_ahead] != nullptr) {
      found.sas[n + state_ahead]->window.prefetch(found.outer[n + state_ahead].sequence);
    }
    if (found.sas[n] != nullptr) look_at(batch, a, found.rows[n], *found.sas[n], found.outer[n]);
  }
}

void Ipsec::look_at(engine::Batch& batch, const IpsecArea& a, std::uint32_t i, ipsec::Sa& sa,
                    const ipsec::OuterView& outer) {
  const std::uint32_t packet_bytes = job_bytes(sa.outer.load(std::memory_order_acquire)->format, outer);
  const std::uint32_t offset = outer.protocol == ipsec::Protocol::ah ? ethernet : outer.at;
  const Place taken = take_place(batch, a, i, sa, offset, packet_bytes);
  const std::uint32_t place = taken.index;
  const Reason why = begin_opening(batch, i, sa, outer, a.jobs[place], a.works[place]);
  if (why != no_reason) return batch.drop(i, why);
  note_job(a, taken, sa, packet_bytes);
  a.places[i] = place;
  batch.go_on_later(i);
}

// Makes the job and what is to be known of it; else why not.
Reason Ipsec::begin_opening(const engine::Batch& batch, std::uint32_t i, ipsec::Sa& sa, const ipsec::OuterView& outer,
                            crypto::Job& job, IpsecArea::Work& work) {
  if (sa.state.load(std::memory_order_relaxed) == ipsec::SaState::dead) {
    sa.refused.expired.fetch_add(1, std::memory_order_relaxed);
    return ipsec_expired;
  }
  const auto number = sa.number(outer.sequence);
  if (!number || !sa.window.may_be_new(*number)) {
    sa.refused.replay.fetch_add(1, std::memory_order_relaxed);
    return ipsec_replay;
  }
  const ipsec::PacketFormat& format = sa.outer.load(std::memory_order_acquire)->format;
  const bool is_ah = outer.protocol == ipsec::Protocol::ah;
  const auto upper = static_cast<std::uint32_t>(*number >> 32);
  std::uint8_t* const frame = batch.data(i);
  const bool fits = !is_ah || engine::capacity_from(batch, i) >= ethernet + job_bytes(format, outer);
  const bool fine = fits && (is_ah ? ipsec::ah_look(format, frame, outer, upper, job, work.kept)
                                   : ipsec::esp_look(format, frame, outer, upper, job));
  if (!fine) {
    sa.refused.malformed.fetch_add(1, std::memory_order_relaxed);
    return ipsec_malformed;
  }
  job.key = sa.key;
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
  return no_reason;
}

// A policy may want protected what came in clear.
void Ipsec::check_clear(engine::Batch& batch, engine::Span span) {
  const IpsecArea a(area(batch), batch.capacity);
  if (!a.header->view->has_policies(ipsec::Direction::in)) return;
  Lane& lane = lane_of(batch);
  auto& keys = lane.keys;
  std::array<std::uint32_t, engine::most_classified> rows;
  std::array<const ipsec::PolicyEntry*, engine::most_classified> found;
  std::size_t count = 0;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    const bool own = batch.row[i].fate == engine::Fate::own;
    if (!own && (!batch.is_live(i) || batch.row[i].fate == engine::Fate::later)) continue;
    // What is exempt is so if it is for the gateway itself, which the router finds out.
    if (look_at_packet(batch.data(i), batch.length[i], keys[count]) == Asks::policies) rows[count++] = i;
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
      batch.drop(i, ipsec_policy);
    }
  }
}

// A cycle after it was collected a frame, and perhaps its SA, is in no cache.
void Ipsec::fetch_ahead(const engine::Batch& batch, const IpsecArea& a, std::uint32_t i) {
  if (const std::uint32_t ahead = i + frame_ahead; ahead < batch.count) {
    prefetch_for_write(batch.mbuf[ahead]);
    if (const std::uint32_t place = a.places[ahead]; place != IpsecArea::no_place) {
      const IpsecArea::Work& work = a.works[place];
      const crypto::Job& job = a.jobs[place];
      prefetch(batch.data(ahead), work.at + ethernet + sizeof(packet::Ipv4Header) + sizeof(packet::UdpHeader));
      // ESP's trailer.
      prefetch(reinterpret_cast<const std::uint8_t*>(job.data) + job.cipher_offset + job.cipher_length - 1);
      work.sa->prefetch_for_opening();
    }
  }
  if (const std::uint32_t ahead = i + state_ahead; ahead < batch.count) {
    if (const std::uint32_t place = a.places[ahead]; place != IpsecArea::no_place) {
      const IpsecArea::Work& work = a.works[place];
      work.sa->window.prefetch(work.sequence);
      a.header->view->prefetch_count(*work.sa, batch.lane);
    }
  }
}

void Ipsec::apply_in(engine::Batch& batch, engine::Span span, const IpsecArea& a) {
  const ipsec::View& view = *a.header->view;
  for (engine::Span part{span.first, 0}; part.first < span.end(); part = {part.end(), 0}) {
    part.count = std::min<std::uint32_t>(span.end() - part.first, engine::most_classified);
    std::array<Through, engine::most_classified> through;
    bool any = false, again = false;
    for (std::uint32_t i = part.first; i < part.end(); ++i) {
      fetch_ahead(batch, a, i);
      const std::uint32_t place = a.places[i];
      if (place == IpsecArea::no_place || batch.row[i].fate != engine::Fate::later) continue;
      const Reason why = open(batch, a.works[place], a.verdicts[place], view, through[i - part.first]);
      if (why != no_reason) {
        batch.drop(i, why);
      } else if (batch.row[i].fate == engine::Fate::later) {
        any = true;
        again |= ipsec::may_be_outer(batch.data(i), batch.length[i]);
      }
    }
    if (again && !a.header->not_computed) [[unlikely]] {
      open_again(batch, part, view, {through.data(), part.count});
    }
    if (any) check_opened(batch, part, {through.data(), part.count}, view);
  }
}

// no_reason: the frame holds what was in it.
Reason Ipsec::open(engine::Batch& batch, const IpsecArea::Work& work, crypto::Verdict verdict, const ipsec::View& view,
                   Through& through) {
  ipsec::Sa& sa = *work.sa;
  const std::uint32_t i = work.frame;
  if (verdict != crypto::Verdict::done) {
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
  through.sas[through.count++] = &sa;
  return no_reason;
}

// RFC 4301 section 5.2 step 4: whether a policy wants what came out of SAs, and from these.
void Ipsec::check_opened(engine::Batch& batch, engine::Span span, std::span<const Through> through,
                         const ipsec::View& view) {
  Lane& lane = lane_of(batch);
  std::array<ipsec::PacketKey, engine::most_classified> keys;
  std::array<std::uint32_t, engine::most_classified> rows;
  std::array<const ipsec::PolicyEntry*, engine::most_classified> found;
  std::size_t count = 0;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    const Through& came = through[i - span.first];
    if (came.count == 0 || batch.row[i].fate != engine::Fate::later) continue;
    lane.opened.add(1);
    lane.opened_bytes.add(batch.length[i] - ethernet);
    packet::Metadata meta;
    packet::read_metadata(batch.data(i), batch.length[i], packet::Depth::transport, meta);
    if (!meta.is_whole_packet()) {
      came.innermost().refused.malformed.fetch_add(1, std::memory_order_relaxed);
      batch.drop(i, ipsec_malformed);
      continue;
    }
    keys[count] = ipsec::packet_key(batch.data(i), meta);
    rows[count++] = i;
  }
  view.find_policies(ipsec::Direction::in, {keys.data(), count}, found.data(), &lane.in_cache);
  for (std::size_t n = 0; n < count; ++n) {
    if (found[n] == nullptr) continue;
    prefetch(&found[n]->with[0], sizeof found[n]->with[0]);
    view.prefetch_count(ipsec::Direction::in, *found[n], batch.lane);
  }
  for (std::size_t n = 0; n < count; ++n) {
    const std::uint32_t i = rows[n];
    const std::span<ipsec::Sa* const> sas = through[i - span.first].all();
    const ipsec::PolicyEntry* const policy = found[n];
    if (policy != nullptr) {
      view.count(ipsec::Direction::in, *policy, batch.lane, 1, batch.length[i] - ethernet);
      if (policy->action == ipsec::Action::discard) {
        batch.drop(i, ipsec_discarded);
        continue;
      }
    }
    // Of transport mode none need be there, as in Linux.
    const bool wanted = policy == nullptr ? std::ranges::none_of(sas, is_tunnel) : ipsec::satisfies(*policy, sas);
    if (wanted && std::ranges::all_of(sas, [&](const ipsec::Sa* sa) { return sa->has_inner(keys[n]); })) {
      batch.mbuf[i]->ol_flags |= engine::frame_marks().source_verified;
      continue;
    }
    sas.back()->refused.policy.fetch_add(1, std::memory_order_relaxed);
    batch.drop(i, ipsec_policy);
  }
}

// What came out of an SA may be ESP or AH to this gateway again, as ESP with AH around it is: the lane's core opens it
// at once.
[[gnu::noinline]] void Ipsec::open_again(engine::Batch& batch, engine::Span span, const ipsec::View& view,
                                         std::span<Through> through) {
  std::array<crypto::Job, engine::most_classified> jobs;
  std::array<IpsecArea::Work, engine::most_classified> works;
  std::array<crypto::Verdict, engine::most_classified> verdicts;
  for (std::uint32_t depth = 1;; ++depth) {
    Found found;
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      const bool came = through[i - span.first].count == depth && batch.row[i].fate == engine::Fate::later;
      if (came) found.look_at(batch, i);
    }
    if (found.count == 0) return;
    view.find_sas({found.keys.data(), found.count}, found.sas.data());
    std::size_t count = 0;
    for (std::size_t n = 0; n < found.count; ++n) {
      if (found.sas[n] == nullptr) continue;
      const std::uint32_t i = found.rows[n];
      const Reason why = depth == Through::most
                             ? ipsec_policy
                             : begin_opening(batch, i, *found.sas[n], found.outer[n], jobs[count], works[count]);
      if (why != no_reason) {
        batch.drop(i, why);
      } else {
        ++count;
      }
    }
    if (count == 0) return;
    lane_of(batch).cpu.run(*keys_, {jobs.data(), count}, {verdicts.data(), count});
    for (std::size_t n = 0; n < count; ++n) {
      const std::uint32_t i = works[n].frame;
      const Reason why = open(batch, works[n], verdicts[n], view, through[i - span.first]);
      if (why != no_reason) batch.drop(i, why);
    }
  }
}

}  // namespace sluice::function
