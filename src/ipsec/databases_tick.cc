// What happens to SAs and policies by itself: lifetimes, SAs that lanes lack, hosts that move.
#include <algorithm>
#include <utility>

#include "ipsec/databases.h"
#include "ipsec/sa_record.h"

namespace sluice::ipsec {
namespace {

constexpr std::chrono::seconds moved_again{30};

bool has_passed(std::uint64_t limit, Databases::Time since, Databases::Time now) {
  return limit != 0 && now - since >= std::chrono::seconds(limit);
}

}  // namespace

void Databases::tick(Time now) {
  const std::lock_guard telling(telling_);
  const Happened happened = look(now);
  if (events_ == nullptr) return;
  for (const Acquire& acquire : happened.acquires) events_->acquire(acquire);
  for (const Expiry& expiry : happened.expiries) events_->expired(expiry.sa, expiry.hard);
  for (const Move& move : happened.moves) events_->moved(move.sa, move.source, move.port);
}

Databases::Happened Databases::look(Time now) {
  const std::lock_guard lock(mutex_);
  now_ = now;
  tables_->seconds.store(
      static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(now - start_).count()) + 1,
      std::memory_order_relaxed);
  Happened happened;
  tables_->due.take([&](std::uint32_t index) {
    if (Sa* const sa = by_index_[index]) {
      look_at(*sa, happened.expiries);
      plan(*sa);
    }
  });
  while (!deadlines_.empty() && deadlines_.top().at <= now) {
    const Deadline deadline = deadlines_.top();
    deadlines_.pop();
    Sa* const sa = by_index_[deadline.index];
    if (sa == nullptr || sa->record->serial != deadline.serial) continue;
    look_at(*sa, happened.expiries);
    plan(*sa);
  }
  look_at_larvals(happened.expiries);
  look_at_moves(happened.moves);
  look_at_path_mtus();
  happened.acquires = tables_->acquires.take(tables_->out, tables_->ways, now);
  reclaim();
  return happened;
}

void Databases::look_at(Sa& sa, std::vector<Expiry>& expiries) {
  SaRecord& record = *sa.record;
  const Lifetime& lifetime = record.settings.lifetime;
  const std::uint32_t used = sa.first_used.load(std::memory_order_relaxed);
  const bool hard = sa.state.load(std::memory_order_relaxed) == SaState::dead ||
                    has_passed(lifetime.seconds.hard, record.added, now_) ||
                    (used != 0 && has_passed(lifetime.use_seconds.hard, time_of(used), now_));
  const bool soft = sa.budget.soft_reached() || has_passed(lifetime.seconds.soft, record.added, now_) ||
                    (used != 0 && has_passed(lifetime.use_seconds.soft, time_of(used), now_)) ||
                    (sa.direction == Direction::out && !sa.esn() && sa.sequence.last() >= late_sequence);
  if (hard && !record.hard_said) {
    record.hard_said = record.soft_said = true;
    sa.state.store(SaState::dead, std::memory_order_relaxed);
  } else if (soft && !record.soft_said) {
    record.soft_said = true;
    SaState valid = SaState::valid;  // lanes may have ended it meanwhile
    sa.state.compare_exchange_strong(valid, SaState::dying, std::memory_order_relaxed);
  } else {
    return;
  }
  if (sa.direction == Direction::out) tables_->ways.look_again(sa);
  expiries.push_back({status(sa), record.hard_said});
}

// The next time at which one of its limits in seconds may have passed.
void Databases::plan(const Sa& sa) {
  const SaRecord& record = *sa.record;
  const std::uint32_t used = sa.first_used.load(std::memory_order_relaxed);
  Time next = Time::max();
  const auto consider = [&](std::uint64_t limit, Time since) {
    constexpr std::uint64_t longest = 1U << 31;  // 68 years
    if (limit == 0) return;
    const Time at = since + std::chrono::seconds(std::min(limit, longest));
    if (at > now_) next = std::min(next, at);
  };
  for (const bool soft : {true, false}) {
    if (soft ? record.soft_said : record.hard_said) continue;
    const auto of = [&](const Limit& limit) { return soft ? limit.soft : limit.hard; };
    consider(of(record.settings.lifetime.seconds), record.added);
    if (used != 0) consider(of(record.settings.lifetime.use_seconds), time_of(used));
  }
  if (next != Time::max()) deadlines_.push({next, sa.index, record.serial});
}

void Databases::look_at_larvals(std::vector<Expiry>& expiries) {
  for (; !larval_ends_.empty() && larval_ends_.front().first <= now_; larval_ends_.pop_front()) {
    const auto& [until, id] = larval_ends_.front();
    const auto larval = larvals_.find(id);
    if (larval == larvals_.end() || larval->second.until != until) continue;
    expiries.push_back({status(id, larval->second), true});
    larvals_.erase(larval);
  }
}

void Databases::look_at_moves(std::vector<Move>& moves) {
  Moved moved;
  for (std::size_t taken = 0; taken < Tables::most_moved && tables_->moved.pop(moved); ++taken) {
    Sa* const sa = by_index_[moved.index];
    if (sa == nullptr || sa->record->serial != moved.serial) continue;
    SaRecord& record = *sa->record;
    const auto source = packet::IpAddress::from_bytes(sa->family, moved.source.data());
    sa->has_moved.store(false, std::memory_order_relaxed);
    const bool said = source == record.moved_to && moved.port == record.moved_port;
    if (said && now_ - record.moved_said < moved_again) continue;
    record.moved_to = source;
    record.moved_port = moved.port;
    record.moved_said = now_;
    moves.push_back({status(*sa), source, moved.port});
  }
}

void Databases::look_at_path_mtus() {
  TooBig error;
  for (std::size_t taken = 0; taken < Tables::most_too_big && tables_->too_big.pop(error); ++taken) {
    const PathMtus::Way way{packet::IpAddress::from_bytes(error.family, error.source.data()),
                            packet::IpAddress::from_bytes(error.family, error.destination.data())};
    const Sas& sas = sas_[static_cast<std::size_t>(Direction::out)];
    const auto at = sas.find({way.second, error.spi, error.protocol});
    if (at == sas.end() || error.mtu >= error.length) continue;
    const SaSettings& settings = at->second->record->settings;
    if (settings.source != way.first || settings.udp.has_value() != error.in_udp) continue;
    const std::uint64_t last = at->second->sequence.last();
    if (static_cast<std::uint32_t>(last) - error.sequence >= std::min<std::uint64_t>(last, recent)) continue;
    if (!path_mtus_.learn(way, error.mtu, now_)) continue;
    path_mtus_learnt_.fetch_add(1, std::memory_order_relaxed);
    set_path_mtu(way);
  }
  for (PathMtus::Way way; path_mtus_.expire(now_, way);) set_path_mtu(way);
}

// Of all its SAs.
void Databases::set_path_mtu(const PathMtus::Way& way) {
  const std::uint16_t mtu = path_mtus_.of(way);
  const Sas& sas = sas_[static_cast<std::size_t>(Direction::out)];
  for (auto at = sas.lower_bound({way.second, 0, Protocol{}}); at != sas.end() && at->first.destination == way.second;
       ++at) {
    if (at->second->record->settings.source == way.first) at->second->path_mtu.store(mtu, std::memory_order_relaxed);
  }
}

}  // namespace sluice::ipsec
