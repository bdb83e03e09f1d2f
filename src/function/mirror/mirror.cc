#include "function/mirror/mirror.h"

#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/emitter.h"
#include "engine/pipeline.h"

namespace sluice::function {
namespace {

constexpr unsigned free_share = 8;                      // of a pool, which copies leave free
constexpr std::uint64_t used_parts = 3, all_parts = 4;  // of a deadline, behind which none are made
constexpr std::uint8_t passed_over = 0xff;              // in place of the port that a frame came in by: no copy of it
static_assert(engine::max_ports < passed_over);

const engine::Element* innermost(engine::Element* element) {
  while (auto* const wrapper = element->trait<engine::Wrapper>()) element = &wrapper->inner();
  return element;
}

}  // namespace

Expected<void> Mirror::prepare(const engine::Plan& plan) {
  tallies_ = std::vector<Tally>(plan.lanes);
  current_.emplace(plan.lanes);
  is_first_ = plan.pipeline == nullptr || innermost(plan.pipeline->elements().front().get()) == this;
  if (!plan.captures) {
    const auto nanoseconds = static_cast<std::uint64_t>(plan.deadline.count()) * used_parts / all_parts;
    latest_tsc_ =
        static_cast<std::uint64_t>(static_cast<double>(nanoseconds) * 1e-9 * static_cast<double>(rte_get_tsc_hz()));
  }
  auto sessions = MirrorSessions::create(options_);
  if (!sessions) return tl::unexpected(sessions.error());
  publish(std::move(*sessions));
  return {};
}

// A port becomes one for copies before there are any.
void Mirror::publish(std::unique_ptr<MirrorSessions> sessions) {
  give_places(*sessions);
  const PortBits to = sessions->to(), tx_from = sessions->tx_from();
  to_.store(to, std::memory_order_relaxed);
  current_->publish(std::move(sessions));
  tx_from_.store(tx_from, std::memory_order_relaxed);
}

void Mirror::give_places(MirrorSessions& sessions) {
  const std::lock_guard lock(showing_);
  std::array<bool, places> taken{};
  for (const Shown& one : shown_) taken[one.tally] = true;
  std::vector<Shown> next;
  for (const MirrorSession& session : sessions.list()) {
    const auto old = std::ranges::find(shown_, session.name, &Shown::name);
    if (old != shown_.end()) {
      next.push_back({session.name, session.to_name, session.to, old->tally, old->before});
      continue;
    }
    const auto place = static_cast<std::uint8_t>(std::ranges::find(taken, false) - taken.begin());
    taken[place] = true;
    next.push_back({session.name, session.to_name, session.to, place, copies_at(place)});
  }
  for (std::size_t s = 0; s < next.size(); ++s) sessions.set_tally(s, next[s].tally);
  shown_ = std::move(next);
}

Mirror::Copies Mirror::copies_at(std::size_t place) const {
  Copies all;
  for (const Tally& lane : tallies_) {
    all.copied += lane.session[place].copied.get();
    all.cut += lane.session[place].cut.get();
    all.skipped += lane.session[place].skipped.get();
  }
  return all;
}

std::uint64_t Mirror::lost_at(std::uint16_t port) const {
  std::uint64_t all = 0;
  for (const Tally& lane : tallies_) all += lane.lost[port].get();
  return all;
}

// What the link layer has given to the host passes here, too; what it has dropped does not. The last word on what comes
// in by a monitor port is here: it is nobody's. A row's port is that which its frame came in by for elements: of what
// has come out of a tunnel the tunnel's, not the lane's. By the time that results are there it may be that which the
// frame leaves by.
void Mirror::classify(engine::Batch& batch, engine::Span span) {
  std::uint8_t* const came_in = came_in_by(batch);
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    const engine::Fate fate = batch.row[i].fate;
    if (!batch.is_consumed(i) && is_in(to_, batch.row[i].port)) [[unlikely]] {
      batch.drop(i, mirror_port);
      came_in[i] = passed_over;
      continue;
    }
    came_in[i] = fate <= engine::Fate::own ? static_cast<std::uint8_t>(batch.row[i].port) : passed_over;
  }
}

// Behind other elements, what is dropped by now may have been dropped by one of those.
void Mirror::apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) {
  const auto sessions = current_->read(batch.lane);
  if (sessions->rx_from() == 0) return;
  const std::uint8_t* const came_in = came_in_by(batch);
  std::array<MirrorSessions::Frame, MirrorSessions::most_at_once> frames;
  std::array<std::uint32_t, MirrorSessions::most_at_once> rows;
  for (std::uint32_t next = span.first; next < span.end();) {
    unsigned count = 0;
    for (; next < span.end() && count < frames.size(); ++next) {
      if (came_in[next] == passed_over) continue;
      const SessionBits asked = sessions->of_rx(came_in[next]);
      const engine::Fate fate = batch.row[next].fate;
      const bool is_gone = batch.is_consumed(next) || (fate == engine::Fate::dropped && !is_first_);
      if (asked == 0 || is_gone) continue;
      rows[count] = next;
      frames[count++] = {batch.data(next), batch.length[next], asked};
    }
    sessions->match(frames.data(), count);
    for (unsigned n = 0; n < count; ++n) {
      copy(*sessions, frames[n], batch.mbuf[rows[n]]->pool, tallies_[batch.lane], out,
           [&](std::uint16_t port, std::uint32_t most) { return out.clone(batch, rows[n], port, most); });
    }
  }
}

// A copy may fill its port's burst, which leaves at once, through here. A reload may have made that port one whose
// frames are copied: what is read already holds for it, too, for a second reading would end the first one.
unsigned Mirror::leave(std::uint32_t lane, std::uint16_t port, rte_mbuf** frames, unsigned count,
                       engine::Emitter& out) {
  if (!is_in(tx_from_, port) || is_in(to_, port)) return count;
  Tally& tally = tallies_[lane];
  if (tally.reading != nullptr) {
    copy_leaving(*tally.reading, lane, port, frames, count, out);
    return count;
  }
  const auto sessions = current_->read(lane);
  tally.reading = &*sessions;
  copy_leaving(*sessions, lane, port, frames, count, out);
  tally.reading = nullptr;
  return count;
}

void Mirror::copy_leaving(const MirrorSessions& sessions, std::uint32_t lane, std::uint16_t port,
                          const rte_mbuf* const* frames, unsigned count, engine::Emitter& out) {
  const SessionBits asked = sessions.of_tx(port);
  std::array<MirrorSessions::Frame, MirrorSessions::most_at_once> matched;
  for (unsigned first = 0; asked != 0 && first < count; first += MirrorSessions::most_at_once) {
    const unsigned part = std::min(count - first, MirrorSessions::most_at_once);
    for (unsigned n = 0; n < part; ++n) {
      const rte_mbuf* const frame = frames[first + n];
      matched[n] = {rte_pktmbuf_mtod(frame, const std::uint8_t*), rte_pktmbuf_pkt_len(frame), asked};
    }
    sessions.match(matched.data(), part);
    for (unsigned n = 0; n < part; ++n) {
      const rte_mbuf* const frame = frames[first + n];
      copy(sessions, matched[n], frame->pool, tallies_[lane], out,
           [&](std::uint16_t to, std::uint32_t most) { return out.clone(frame, to, most); });
    }
  }
}

// `clone(port, most)`: makes one.
template <typename Clone>
void Mirror::copy(const MirrorSessions& sessions, const MirrorSessions::Frame& frame, const rte_mempool* pool,
                  Tally& tally, const engine::Emitter& out, const Clone& clone) const {
  for (unsigned left = frame.sessions; left != 0; left &= left - 1) {
    const MirrorSession& session = sessions.list()[static_cast<unsigned>(__builtin_ctz(left))];
    Tally::OfSession& counts = tally.session[session.tally];
    if (!may_copy(pool, out) || !clone(session.to, session.most)) {
      counts.skipped.add(1);
      continue;
    }
    counts.copied.add(1);
    if (session.most != 0 && session.most < frame.length) counts.cut.add(1);
  }
}

// Pools of frames have no caches of threads, so that counting what is free takes two loads.
bool Mirror::may_copy(const rte_mempool* pool, const engine::Emitter& out) const {
  const std::uint64_t since = out.oldest_tsc();
  const bool is_late = since != 0 && latest_tsc_ != 0 && rte_rdtsc() - since > latest_tsc_;
  return !is_late && rte_mempool_avail_count(pool) >= pool->size / free_share;
}

packet::Reason Mirror::not_taken(std::uint32_t lane, std::uint16_t port, unsigned count) {
  tallies_[lane].lost[port].add(count);
  return mirror_full;
}

Expected<engine::Element::Change> Mirror::reload(Element& fresh) {
  const MirrorOptions& wanted = static_cast<const Mirror&>(fresh).options_;
  current_->reclaim();
  auto made = MirrorSessions::create(wanted);
  if (!made) return tl::unexpected(made.error());
  const std::size_t count = wanted.sessions.size();
  auto next = std::make_shared<std::unique_ptr<MirrorSessions>>(std::move(*made));
  return Change{std::to_string(count) + (count == 1 ? " mirror session is" : " mirror sessions are") + " in force",
                [this, next] {
                  publish(std::move(*next));
                  current_->reclaim();
                }};
}

std::vector<engine::Metric> Mirror::metrics() const {
  std::vector<engine::Metric> all = {
      {"mirror_copied_frames", "copies of frames that were made for monitor ports"},
      {"mirror_cut_frames", "such copies that were cut to their session's length"},
      {"mirror_skipped_frames", "copies that were not made, for want of time or of free frames"},
      {"mirror_lost_frames", "copies that their monitor port did not take at once"},
  };
  for (std::size_t place = 0; place < places; ++place) {
    const Copies copies = copies_at(place);
    all[0].value += copies.copied;
    all[1].value += copies.cut;
    all[2].value += copies.skipped;
  }
  for (std::uint16_t port = 0; port < engine::max_ports; ++port) all[3].value += lost_at(port);
  return all;
}

}  // namespace sluice::function
