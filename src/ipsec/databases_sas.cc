// SAs: how they come, change and go.
#include <algorithm>
#include <string>
#include <utility>

#include "ipsec/databases.h"
#include "ipsec/sa_record.h"
#include "packet/headers.h"

namespace sluice::ipsec {
namespace {

constexpr std::uint32_t first_spi = 256;  // below: reserved (RFC 4303 section 2.1)

Expected<void> check(const SaSettings& sa) {
  const std::string of = "the SA " + sa.id.str();
  const std::uint8_t family = sa.id.destination.family;
  if ((family != 4 && family != 6) || sa.source.family != family) {
    return make_error(of + " needs a source and a destination, addresses of one family");
  }
  if (sa.id.protocol != Protocol::esp && sa.id.protocol != Protocol::ah) {
    return make_error(of + " is neither of ESP (50) nor of AH (51)");
  }
  if (sa.id.spi < first_spi) return make_error(of + " has a reserved SPI; take one from " + std::to_string(first_spi));
  if (sa.replay_window > most_replay_window) {
    return make_error(of + " has a replay window of " + std::to_string(sa.replay_window) + " packets; at most " +
                      std::to_string(most_replay_window));
  }
  if (!sa.esn && sa.sequence > last_short_sequence) {
    return make_error(of + " has sequence number " + std::to_string(sa.sequence) + ", which needs esn");
  }
  if (sa.udp && sa.id.protocol == Protocol::ah) {
    return make_error(of + " has UDP encapsulation, which AH has not (RFC 3948)");
  }
  if (sa.selector) {
    if (auto fine = sa.selector->check(); !fine) return make_error(of + ": " + fine.error().message);
  }
  return {};
}

bool is_limited(const Lifetime& lifetime) {
  return lifetime.packets != Limit{} || lifetime.bytes != Limit{};
}

// Their lengths stay, which lists show.
void hide_keys(Transform& transform) {
  for (SecretKey* const key : {&transform.cipher_key, &transform.salt, &transform.auth_key}) {
    crypto::wipe(key->bytes.bytes, sizeof key->bytes.bytes);
  }
}

}  // namespace

Sa* Databases::find(const SaId& id) const {
  for (const Sas& sas : sas_) {
    if (const auto at = sas.find(id); at != sas.end()) return at->second.get();
  }
  return nullptr;
}

// Of an SA that readers may have found already, too.
void Databases::set_changeable(Sa& sa, const SaSettings& settings) {
  SaRecord& record = *sa.record;
  record.settings.name = settings.name;
  record.settings.lifetime = settings.lifetime;
  record.settings.udp = settings.udp;
  record.settings.source = settings.source;
  record.settings.selector = settings.selector;
  if (const Outer outer = outer_of(settings); outer != *sa.outer.load(std::memory_order_relaxed)) {
    retired_.others.push_back(std::exchange(record.outer, std::make_shared<const Outer>(outer)));
    sa.outer.store(record.outer.get(), std::memory_order_release);
  }
  auto inner = settings.selector ? std::make_shared<const MaskedKey>(masked_key(*settings.selector)) : nullptr;
  retired_.others.push_back(std::exchange(record.inner, std::move(inner)));
  sa.inner.store(record.inner.get(), std::memory_order_release);
  std::erase(retired_.others, nullptr);
  sa.budget.set(settings.lifetime.packets, settings.lifetime.bytes, tables_->sa_counts.sum(sa.index));
  sa.limited.store(is_limited(settings.lifetime), std::memory_order_release);
}

Expected<Databases::SaHandle> Databases::make_sa(const SaSettings& settings) {
  if (tables_->pool.used() == tables_->pool.capacity() || !tables_->ways.has_capacity() ||
      keys_.used() == keys_.capacity()) {
    reclaim();
  }
  const std::string of = "the SA " + settings.id.str() + ": ";
  if (tables_->pool.used() == tables_->pool.capacity() || !tables_->ways.has_capacity()) {
    return make_error(of + "no capacity: there is one for " + std::to_string(tables_->pool.capacity()) + " SAs");
  }
  if (auto format = packet_format(settings); !format) return make_error(of + format.error().message);
  auto slot = keys_.install(key_material(settings));
  if (!slot) return make_error(of + slot.error().message);
  KeyHold key(keys_, *slot);
  const std::uint32_t index = tables_->pool.next_index();
  SaHandle sa = tables_->pool.make(settings, index, *slot, keys_.installs());
  SaRecord& record = *sa->record;
  record.settings = settings;
  hide_keys(record.settings.transform);
  record.serial = ++last_serial_;
  record.added = now_;
  record.key = std::move(key);
  tables_->sa_counts.clear(index);
  tables_->shares.clear(index);
  set_changeable(*sa, settings);
  return sa;
}

Expected<void> Databases::add_sa(const SaSettings& settings) {
  auto made = make_sa(settings);
  if (!made) return tl::unexpected(made.error());
  larvals_.erase(settings.id);
  put_sa(std::move(*made));
  return {};
}

// In the place of one with this id and direction, if there is one.
void Databases::put_sa(SaHandle made) {
  Sa& sa = *made;
  SaHandle before =
      std::exchange(sas_[static_cast<std::size_t>(sa.direction)][sa.record->settings.id], std::move(made));
  by_index_[sa.index] = &sa;
  plan(sa);
  if (sa.direction == Direction::out) {
    const SaSettings& settings = sa.record->settings;
    sa.path_mtu.store(path_mtus_.of({settings.source, settings.id.destination}), std::memory_order_relaxed);
    tables_->ways.add(sa);
    if (before != nullptr) tables_->ways.remove(*before);
  } else if (before != nullptr) {
    tables_->sad.replace(*before, sa);
  } else {
    tables_->sad.insert(sa);
  }
  if (before == nullptr) return;
  by_index_[before->index] = nullptr;
  retired_.sas.push_back(std::move(before));
}

Expected<void> Databases::add(const SaSettings& settings) {
  if (auto fine = check(settings); !fine) return fine;
  const std::lock_guard lock(mutex_);
  if (find(settings.id) != nullptr) return make_error("there is an SA " + settings.id.str() + " already");
  return add_sa(settings);
}

Expected<void> Databases::update(const SaSettings& settings) {
  if (auto fine = check(settings); !fine) return fine;
  const std::lock_guard lock(mutex_);
  Sa* const sa = find(settings.id);
  if (sa == nullptr) {
    if (!larvals_.contains(settings.id)) return make_error("there is no SA " + settings.id.str());
    return add_sa(settings);
  }
  const bool out = sa->direction == Direction::out;
  const bool elsewhere = out && settings.source != sa->record->settings.source;
  const bool lives_otherwise = settings.lifetime != sa->record->settings.lifetime;
  if (elsewhere) tables_->ways.remove(*sa);
  set_changeable(*sa, settings);
  if (elsewhere)
    sa->path_mtu.store(path_mtus_.of({settings.source, settings.id.destination}), std::memory_order_relaxed);
  if (lives_otherwise) {
    sa->record->soft_said = false;
    SaState dying = SaState::dying;
    sa->state.compare_exchange_strong(dying, SaState::valid, std::memory_order_relaxed);
    tables_->due.note(sa->index);  // the next tick() says what it has reached by now
    plan(*sa);
  }
  if (elsewhere) {
    tables_->ways.add(*sa);
  } else if (out) {
    tables_->ways.look_again(*sa);
  }
  publish();
  return {};
}

bool Databases::take_sa(const SaId& id) {
  if (larvals_.erase(id) != 0) return true;
  for (Sas& sas : sas_) {
    const auto at = sas.find(id);
    if (at == sas.end()) continue;
    Sa& sa = *at->second;
    if (sa.direction == Direction::in) {
      tables_->sad.erase(sa);
    } else {
      tables_->ways.remove(sa);
    }
    by_index_[sa.index] = nullptr;
    retired_.sas.push_back(std::move(at->second));
    sas.erase(at);
    return true;
  }
  return false;
}

Expected<void> Databases::replace(const SaSettings& settings) {
  if (auto fine = check(settings); !fine) return fine;
  const std::lock_guard lock(mutex_);
  const Sa* const before = find(settings.id);
  if (before == nullptr) return make_error("there is no SA " + settings.id.str());
  auto made = make_sa(settings);
  if (!made) return tl::unexpected(made.error());
  if (before->direction != settings.direction) take_sa(settings.id);
  put_sa(std::move(*made));
  publish();
  return {};
}

bool Databases::remove(const SaId& id) {
  const std::lock_guard lock(mutex_);
  if (!take_sa(id)) return false;
  publish();
  return true;
}

void Databases::flush_sas(std::optional<Protocol> protocol) {
  const std::lock_guard lock(mutex_);
  std::vector<SaId> ids;
  const auto note = [&](const auto& all) {
    for (const auto& [id, sa] : all) {
      if (!protocol || id.protocol == *protocol) ids.push_back(id);
    }
  };
  note(sas_[0]);
  note(sas_[1]);
  note(larvals_);
  for (const SaId& id : ids) take_sa(id);
  publish();
}

std::optional<std::uint32_t> Databases::unused_spi(SaId id, std::uint32_t least, std::uint32_t most) {
  const std::uint64_t range = std::uint64_t{most} - least + 1;
  constexpr unsigned at_random = 32;
  const auto is_unused = [&](std::uint64_t offset) {
    id.spi = least + static_cast<std::uint32_t>(offset % range);
    return find(id) == nullptr && !larvals_.contains(id);
  };
  for (unsigned i = 0; i < at_random; ++i) {
    if (is_unused(random_())) return id.spi;
  }
  // One more in a row than are in use: one of them is free, or all of the range are taken.
  const std::uint64_t in_use = sas_[0].size() + sas_[1].size() + larvals_.size();
  const std::uint64_t first = random_();
  for (std::uint64_t i = 0; i < std::min(range, in_use + 1); ++i) {
    if (is_unused(first % range + i)) return id.spi;
  }
  return std::nullopt;
}

Expected<std::uint32_t> Databases::reserve_spi(const packet::IpAddress& source, const packet::IpAddress& destination,
                                               Protocol protocol, std::uint32_t reqid, std::uint32_t least,
                                               std::uint32_t most) {
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  least = std::max(least, first_spi);
  if (least > most) return make_error("no SPI is in " + range + "; those from 256 on may be used");
  const std::lock_guard lock(mutex_);
  SaId id{.destination = destination, .protocol = protocol};
  const auto spi = unused_spi(id, least, most);
  if (!spi) return make_error("all SPIs in " + range + " are in use for " + destination.str());
  if (larvals_.size() == by_index_.size()) return make_error("no SPI can be reserved: as many are as there may be SAs");
  id.spi = *spi;
  larvals_.emplace(id, Larval{source, reqid, now_, now_ + spi_kept});
  larval_ends_.emplace_back(now_ + spi_kept, id);
  return *spi;
}

std::uint64_t Databases::epoch_seconds(Time time) const {
  return epoch_start_ +
         static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(time - start_).count());
}

SaStatus Databases::status(const Sa& sa) const {
  const SaRecord& record = *sa.record;
  const Count count = tables_->sa_counts.sum(sa.index);
  SaStatus status{.settings = record.settings, .state = sa.state.load(std::memory_order_relaxed)};
  SaCounters& counters = status.counters;
  counters.packets = count.packets;
  counters.bytes = count.bytes;
  counters.bad_icv = sa.refused.bad_icv.load(std::memory_order_relaxed);
  counters.replay = sa.refused.replay.load(std::memory_order_relaxed);
  counters.policy = sa.refused.policy.load(std::memory_order_relaxed);
  counters.expired = sa.refused.expired.load(std::memory_order_relaxed);
  counters.malformed = sa.refused.malformed.load(std::memory_order_relaxed);
  counters.sequence = sa.direction == Direction::in ? sa.window.highest() : sa.sequence.last();
  counters.added_at = epoch_seconds(record.added);
  const auto used = [&](const std::atomic<std::uint32_t>& seconds) {
    const std::uint32_t at = seconds.load(std::memory_order_relaxed);
    return at == 0 ? 0 : epoch_seconds(time_of(at));
  };
  counters.first_used_at = used(sa.first_used);
  counters.last_used_at = used(sa.last_used);
  status.path_mtu = sa.path_mtu.load(std::memory_order_relaxed);
  return status;
}

SaStatus Databases::status(const SaId& id, const Larval& larval) const {
  SaStatus status{.settings = {.id = id, .source = larval.source, .reqid = larval.reqid}, .state = SaState::larval};
  status.counters.added_at = epoch_seconds(larval.added);
  return status;
}

std::optional<SaStatus> Databases::sa(const SaId& id) const {
  const std::lock_guard lock(mutex_);
  if (const Sa* const sa = find(id)) return status(*sa);
  const auto at = larvals_.find(id);
  return at == larvals_.end() ? std::nullopt : std::optional(status(id, at->second));
}

std::vector<SaStatus> Databases::sas(std::size_t most) const {
  const std::lock_guard lock(mutex_);
  std::vector<SaStatus> all;
  auto larval = larvals_.begin();
  const auto add_larvals_before = [&](const SaId* id) {
    for (; larval != larvals_.end() && (id == nullptr || larval->first < *id) && all.size() < most; ++larval) {
      all.push_back(status(larval->first, larval->second));
    }
  };
  for (const Sas& sas : sas_) {
    for (const auto& [id, sa] : sas) {
      add_larvals_before(&id);
      if (all.size() == most) return all;
      all.push_back(status(*sa));
    }
    add_larvals_before(nullptr);  // they are inbound, as the first of sas_
  }
  return all;
}

std::size_t Databases::sa_count() const {
  const std::lock_guard lock(mutex_);
  return sas_[0].size() + sas_[1].size() + larvals_.size();
}

}  // namespace sluice::ipsec
