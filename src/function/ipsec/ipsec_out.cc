// Outbound: what is about to leave is shown to the policies; what they protect is sealed in the pass of departures.
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/prefetch.h"
#include "engine/batch_edit.h"
#include "engine/emitter.h"
#include "engine/pipeline.h"
#include "function/ipsec/exempt.h"
#include "function/ipsec/ipsec.h"
#include "function/ipsec/ipsec_area.h"
#include "function/routing.h"
#include "function/routing_reasons.h"
#include "ipsec/ah.h"
#include "ipsec/esp.h"
#include "ipsec/policy_check.h"
#include "packet/checksum.h"
#include "packet/icmp_error.h"

namespace sluice::function {
namespace {

using engine::Fate;
using packet::no_reason;
using packet::Reason;

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
// How many rows ahead of the one at hand its mbuf is asked for.
constexpr std::uint32_t mbuf_ahead = 12;

std::uint32_t front_of(const ipsec::PacketFormat& format) {
  return format.protocol == ipsec::Protocol::ah ? ipsec::ah_front(format) : ipsec::esp_front(format);
}
std::uint32_t behind_of(const ipsec::PacketFormat& format, const ipsec::InnerPacket& inner) {
  return format.protocol == ipsec::Protocol::ah ? ipsec::ah_behind(format) : ipsec::esp_behind(format, inner);
}
// What leaves, or would if the kernel forwarded it: there the router has not known the neighbour, or has found the
// packet too large for a link that it need not take.
bool is_leaving(const engine::Row& row) {
  switch (row.fate) {
    case Fate::sent:
    case Fate::answered:
      return true;
    case Fate::to_host:
      return row.reason == unresolved || row.reason == too_big;
    default:
      return false;
  }
}

// A cycle after it was received, or behind a device, it is in no cache.
void fetch_mbuf_ahead(const engine::Batch& batch, std::uint32_t i) {
  if (i + mbuf_ahead < batch.count) prefetch_for_write(batch.mbuf[i + mbuf_ahead]);
}

}  // namespace

// Policies have been asked about the row's packet. What leaves by a virtual port is put into another packet by an
// element, and that is asked about when it leaves.
void Ipsec::note_looked_at(engine::Batch& batch, std::uint32_t i) const {
  std::uint64_t& flags = batch.mbuf[i]->ol_flags;
  flags = ports_[batch.row[i].port].is_virtual ? flags & ~looked_at_ : flags | looked_at_;
}

void Ipsec::choose(engine::Batch& batch, engine::Span span, const std::uint16_t* came_by, engine::Emitter& out) {
  if (batch.departs) return look_at_departed(batch, span);
  Lane& lane = lane_of(batch);
  const ipsec::View* const view = databases_->pin(reader_of_lane(batch.lane));
  if (!view->has_policies(ipsec::Direction::out) && !view->has_policies(ipsec::Direction::in)) {
    choose_none(batch, span);
    return databases_->unpin(reader_of_lane(batch.lane));
  }
  lane.view = view;
  lane.chosen.clear();
  lane.next_chosen = 0;
  auto& keys = lane.keys;
  std::array<std::uint32_t, engine::most_classified> rows;
  std::array<const ipsec::PolicyEntry*, engine::most_classified> found;
  std::size_t count = 0;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    fetch_mbuf_ahead(batch, i);
    const std::uint8_t* const frame = batch.data(i);
    if (batch.row[i].fate == Fate::own) [[unlikely]] {
      const Reason why = why_not_own(frame, batch.length[i]);
      if (why != no_reason) batch.drop(i, why);
    }
    if (!is_leaving(batch.row[i])) continue;
    const bool was_opened = (batch.mbuf[i]->ol_flags & looked_at_) != 0;
    note_looked_at(batch, i);
    const Asks asks = look_at_packet(frame, batch.length[i], keys[count]);
    if (asks == Asks::nothing) continue;
    if (asks == Asks::exempt) [[unlikely]] {
      if (came_by[i - span.first] == engine::no_port && is_of_host(frame, keys[count])) continue;
      if (!was_opened && !may_come_in_clear(*view, keys[count], lane)) {
        batch.drop(i, ipsec_policy);
        continue;
      }
    }
    rows[count++] = i;
  }
  view->find_policies(ipsec::Direction::out, {keys.data(), count}, found.data(), &lane.out_cache);
  prefetch_chosen(batch, {rows.data(), count}, found.data(), *view);
  for (std::size_t n = 0; n < count; ++n) {
    const std::uint32_t i = rows[n];
    if (found[n] == nullptr || found[n]->action == ipsec::Action::bypass) continue;
    view->count(ipsec::Direction::out, *found[n], batch.lane, 1, batch.length[i] - ethernet);
    if (found[n]->action == ipsec::Action::discard) {
      batch.drop(i, ipsec_discarded);
    } else {
      choose_for(batch, i, came_by[i - span.first], *found[n], keys[n], out);
    }
  }
  // Else classify() ends it.
  if (lane.chosen.empty()) {
    databases_->unpin(reader_of_lane(batch.lane));
    lane.view = nullptr;
  }
}

// What choose_for() and then seal_run() touch of those that policies protect.
void Ipsec::prefetch_chosen(const engine::Batch& batch, std::span<const std::uint32_t> rows,
                            const ipsec::PolicyEntry* const* found, const ipsec::View& view) {
  for (std::size_t n = 0; n < rows.size(); ++n) {
    if (found[n] == nullptr || found[n]->action == ipsec::Action::bypass) continue;
    view.prefetch_count(ipsec::Direction::out, *found[n], batch.lane);
    const ipsec::Sa* const sa = found[n]->sa[0].load(std::memory_order_acquire);
    if (sa == nullptr) continue;
    sa->prefetch_for_sealing();
    prefetch_for_write(batch.data(rows[n]) + batch.length[rows[n]]);
  }
}

// Where no policy is for any packet.
void Ipsec::choose_none(engine::Batch& batch, engine::Span span) const {
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    fetch_mbuf_ahead(batch, i);
    if (batch.row[i].fate == Fate::own) [[unlikely]] {
      const Reason why = why_not_own(batch.data(i), batch.length[i]);
      if (why != no_reason) batch.drop(i, why);
    } else if (is_leaving(batch.row[i])) {
      note_looked_at(batch, i);
    }
  }
}

// Whether the host has made it, and has not forwarded it: the kernel does that, too, with IP options for one. Whoever
// forwards takes one off the hop limit that neighbour discovery has (RFC 4861 section 7.1).
bool Ipsec::is_of_host(const std::uint8_t* frame, const ipsec::PacketKey& key) const {
  if (key.protocol() == packet::protocol_icmpv6) {
    std::uint16_t type;
    std::memcpy(&type, frame + 12, sizeof type);
    constexpr std::uint8_t undiminished = 255;
    return type != packet::be16(packet::ethertype_ipv6) ||
           frame[ethernet + offsetof(packet::Ipv6Header, hop_limit)] == undiminished;
  }
  return routing_ == nullptr ||
         routing_->table().is_own(key.family(), reinterpret_cast<const std::uint8_t*>(&key.word[1]));
}

// Of IKE and neighbour discovery of others, which classify() has left alone because they could have been the gateway's.
bool Ipsec::may_come_in_clear(const ipsec::View& view, const ipsec::PacketKey& key, Lane& lane) {
  const ipsec::PolicyEntry* policy = nullptr;
  view.find_policies(ipsec::Direction::in, {&key, 1}, &policy, &lane.in_cache);
  return policy == nullptr || ipsec::satisfies(*policy, {});
}

void Ipsec::choose_for(engine::Batch& batch, std::uint32_t i, std::uint16_t came_by, const ipsec::PolicyEntry& policy,
                       const ipsec::PacketKey& key, engine::Emitter& out) {
  Lane& lane = lane_of(batch);
  const bool twice = policy.templates == 2;
  ipsec::Sa* const sa = lane.view->outbound(policy, 0, key);
  ipsec::Sa* const around = twice ? lane.view->outbound(policy, 1, key) : nullptr;
  if (sa == nullptr || (twice && around == nullptr)) {
    lane.view->want(policy, key);
    return batch.drop(i, ipsec_no_sa_out);
  }
  Chosen chosen{.sa = sa, .format = &format_of(*sa), .inner = {}, .around = around};
  if (twice) chosen.around_format = &format_of(*around);
  std::uint8_t* const frame = batch.data(i);
  if (!ipsec::look_at_inner(frame, batch.length[i], sa->mode, chosen.inner)) return batch.drop(i, ipsec_malformed);
  choose_size(chosen, mtu_of(batch, i));
  if (chosen.inner.length > chosen.most && !may_be_fragmented(batch, i, came_by, chosen, out)) [[unlikely]]
    return;
  // The router has not taken its one yet.
  if (batch.row[i].fate == Fate::to_host) {
    std::uint8_t& ttl = frame[ethernet + (chosen.inner.family == 4 ? 8 : 7)];
    if (ttl <= 1) return;
    if (chosen.inner.family == 4) {
      packet::decrement_ttl(packet::header_at<packet::Ipv4Header>(frame, ethernet));
    } else {
      --ttl;
    }
  }
  if (batch.row[i].fate == Fate::answered) out.note_answer(batch, i, batch.row[i].reason);
  // What seal_run() and put_on() write.
  lane.view->prefetch_count(*sa, batch.lane);
  prefetch_for_write(frame - front_of(*chosen.format));
  lane.chosen.push_back(chosen);
  batch.go_on_later(i);
}

void Ipsec::classify_out(engine::Batch& batch, engine::Span span, const IpsecArea& a) {
  Lane& lane = lane_of(batch);
  if (span.first == 0) {
    // The lane holds the view from choose() on.
    databases_->pin(reader_of(batch), lane.view);
    begin(batch, a, lane.view);
  }
  for (std::uint32_t i = span.first; i < span.end();) {
    // A run of rows of one SA takes its numbers at once.
    const std::size_t first = lane.next_chosen;
    ipsec::Sa* const sa = lane.chosen[first].sa;
    std::uint32_t run = 1;
    while (i + run < span.end() && lane.chosen[first + run].sa == sa) ++run;
    if (sa == nullptr) {
      for (std::uint32_t n = 0; n < run; ++n) a.places[i + n] = IpsecArea::no_place;
    } else {
      seal_run(batch, {i, run}, a, *sa);
    }
    lane.next_chosen += run;
    i += run;
  }
  // Fragments that were added come next.
  if (lane.next_chosen != lane.chosen.size()) return;
  databases_->unpin(reader_of_lane(batch.lane));
  lane.view = nullptr;
}

void Ipsec::seal_run(engine::Batch& batch, engine::Span run, const IpsecArea& a, ipsec::Sa& sa) {
  Lane& lane = lane_of(batch);
  const ipsec::View& view = *a.header->view;
  std::array<std::uint32_t, engine::most_classified> rows;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  for (std::uint32_t n = 0; n < run.count; ++n) {
    const std::uint32_t i = run.first + n;
    Chosen& chosen = lane.chosen[lane.next_chosen + n];
    a.places[i] = IpsecArea::no_place;
    if (chosen.inner.length > chosen.most && !fragment(batch, i, chosen.most, chosen)) [[unlikely]] {
      batch.drop(i, ipsec_no_room);
      continue;
    }
    rows[count++] = n;
    bytes += lane.chosen[lane.next_chosen + n].inner.length;
  }
  if (count == 0) return;
  const auto refuse = [&](std::uint32_t from) {
    for (std::uint32_t n = from; n < count; ++n) batch.drop(run.first + rows[n], ipsec_expired);
    sa.refused.expired.fetch_add(count - from, std::memory_order_relaxed);
  };
  if (!view.count(sa, batch.lane, count, bytes)) return refuse(0);
  const ipsec::Sequence::Run numbers = view.take_numbers(sa, count);
  for (std::uint32_t n = 0; n < numbers.count; ++n) {
    put_on(batch, run.first + rows[n], a, lane.chosen[lane.next_chosen + rows[n]], numbers.first + n);
  }
  if (numbers.count != count) refuse(numbers.count);
}

void Ipsec::put_on(engine::Batch& batch, std::uint32_t i, const IpsecArea& a, const Chosen& chosen,
                   std::uint64_t number) {
  const ipsec::PacketFormat& format = *chosen.format;
  const std::uint32_t front = front_of(format), behind = behind_of(format, chosen.inner);
  const std::uint32_t length = ethernet + front + chosen.inner.length + behind;
  std::uint32_t around_front = 0, around_behind = 0;
  if (chosen.around != nullptr) [[unlikely]] {
    around_front = ipsec::ah_front(*chosen.around_format);
    around_behind = ipsec::ah_behind(*chosen.around_format);
  }
  if (front + around_front > engine::capacity_in_front(batch, i) ||
      engine::capacity_from(batch, i) + front < length + around_behind) [[unlikely]] {
    return batch.drop(i, ipsec_no_room);
  }
  std::uint8_t* const frame = engine::prepend(batch, i, front);
  engine::set_length(batch, i, length);  // the frame may have had padding of Ethernet behind the packet
  const bool is_ah = format.protocol == ipsec::Protocol::ah;
  const std::uint32_t offset = is_ah ? ethernet : ethernet + format.outer_bytes, packet_bytes = length - offset;
  const Place taken = take_place(batch, a, i, *chosen.sa, offset, packet_bytes);
  const std::uint32_t place = taken.index;
  IpsecArea::Work& work = a.works[place];
  if (is_ah) {
    if (!ipsec::ah_put_on(format, chosen.inner, number, frame, a.jobs[place], work.kept)) {
      return batch.drop(i, ipsec_malformed);
    }
  } else {
    ipsec::esp_put_on(format, chosen.inner, number, frame, a.jobs[place]);
  }
  a.jobs[place].key = chosen.sa->key;
  work.sa = chosen.sa;
  work.format = &format;
  work.sequence = number;
  work.frame = i;
  work.length = chosen.inner.length;
  work.needs_core = is_ah || (format.has_udp && format.family == 6);
  work.around = nullptr;
  if (chosen.around != nullptr) [[unlikely]] {
    if (const Reason why = put_ah_around(batch, i, chosen, *a.header->view, work); why != no_reason) {
      return batch.drop(i, why);
    }
  }
  note_job(a, taken, *chosen.sa, packet_bytes);
  a.places[i] = place;
}

// What only the core can do, when the job is done.
void Ipsec::finish(engine::Batch& batch, std::uint32_t i, const IpsecArea::Work& work, const crypto::Job& job) {
  const ipsec::PacketFormat& format = *work.format;
  std::uint8_t* const frame = batch.data(i);
  if (format.protocol == ipsec::Protocol::ah) {
    ipsec::ah_finish(format, frame, job, work.kept);
    engine::set_length(batch, i, batch.length[i] - ipsec::ah_behind(format));
  } else if (format.has_udp && format.family == 6) {
    const std::uint32_t tag = work.around == nullptr ? 0 : ipsec::ah_behind(format_of(*work.around));
    ipsec::esp_checksum(format, frame, batch.length[i] - tag);
  }
}

void Ipsec::apply_out(engine::Batch& batch, engine::Span span, const IpsecArea& a, engine::Emitter& /*out*/) {
  Lane& lane = lane_of(batch);
  std::uint64_t sealed = 0, bytes = 0;
  std::array<std::uint32_t, engine::most_classified> twice;
  std::size_t around = 0;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    fetch_mbuf_ahead(batch, i);  // for leave()
    const std::uint32_t place = a.places[i];
    if (place == IpsecArea::no_place || !batch.goes_on(i)) continue;
    const IpsecArea::Work& work = a.works[place];
    if (a.verdicts[place] != crypto::Verdict::done) [[unlikely]] {
      batch.drop(i, engine::device_lost);
      continue;
    }
    if (work.needs_core) finish(batch, i, work, a.jobs[place]);
    if (work.around != nullptr) [[unlikely]] {
      twice[around++] = i;
      if (around == twice.size()) {
        finish_around(batch, twice, a);
        around = 0;
      }
    }
    ++sealed;
    bytes += work.length;
  }
  if (around != 0) finish_around(batch, {twice.data(), around}, a);
  lane.sealed.add(sealed);
  lane.sealed_bytes.add(bytes);
}

// The host knows nothing of these frames, and takes none from an address of its own.
void Ipsec::look_at_departed(engine::Batch& batch, engine::Span span) {
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    note_looked_at(batch, i);
    if (batch.row[i].fate != Fate::to_host) continue;
    batch.drop(i, batch.row[i].reason == too_big ? ipsec_too_big : ipsec_unresolved);
  }
}

unsigned Ipsec::leave(std::uint32_t lane_index, std::uint16_t port, rte_mbuf** frames, unsigned count,
                      engine::Emitter& out) {
  const bool are_copies = out.is_for_copies(port);
  unsigned kept = 0;
  for (unsigned n = 0; n < count; ++n) {
    rte_mbuf* const frame = frames[n];
    if (!are_copies && (frame->ol_flags & looked_at_) == 0 && is_protected(lane_index, *frame)) [[unlikely]] {
      out.drop(frame, ipsec_unprotected);
    } else {
      frame->ol_flags &= ~looked_at_;
      frames[kept++] = frame;
    }
  }
  return kept;
}

[[gnu::noinline]] bool Ipsec::is_protected(std::uint32_t lane_index, const rte_mbuf& frame) {
  const auto* const data = rte_pktmbuf_mtod(&frame, const std::uint8_t*);
  packet::Metadata meta;
  packet::read_metadata(data, rte_pktmbuf_pkt_len(&frame), packet::Depth::transport, meta);
  if (meta.family == 0 || is_exempt(data, meta)) return false;
  const ipsec::PacketKey key = ipsec::packet_key(data, meta);
  const ipsec::PolicyEntry* policy = nullptr;
  const std::size_t reader = reader_of_lane(lane_index);
  Lane& lane = *lanes_[lane_index];
  const bool pinned = lane.view != nullptr;
  const ipsec::View* const view = pinned ? lane.view : databases_->pin(reader);
  view->find_policies(ipsec::Direction::out, {&key, 1}, &policy, &lane.out_cache);
  const bool is = policy != nullptr && policy->action != ipsec::Action::bypass;
  if (!pinned) databases_->unpin(reader);
  return is;
}

}  // namespace sluice::function
