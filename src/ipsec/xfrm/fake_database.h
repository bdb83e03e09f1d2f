// A Database of maps, for tests: what it is told it keeps, keys and all, and nothing passes through it. As strict as
// its contract: an id or a policy that is there is no new one, and what is larval becomes valid once.
//
// Thread-safety: as of Database.
#pragma once

#include <ctime>
#include <map>
#include <mutex>
#include <utility>

#include "ipsec/database.h"

namespace sluice::ipsec::xfrm {

class FakeDatabase : public Database {
 public:
  Expected<void> add(const SaSettings& sa) override {
    const std::lock_guard lock(mutex_);
    const auto found = sas_.find(sa.id);
    if (found != sas_.end() && found->second.state != SaState::larval) return make_error("there is " + sa.id.str());
    if (sa.transform.cipher == crypto::Cipher::none) return make_error("no cipher");
    sas_[sa.id] = {sa, SaState::valid, counters(sa)};
    return {};
  }

  Expected<void> update(const SaSettings& sa) override {
    const std::lock_guard lock(mutex_);
    const auto found = sas_.find(sa.id);
    if (found == sas_.end()) return make_error("there is no " + sa.id.str());
    SaStatus& status = found->second;
    if (status.state == SaState::larval) {
      status = {sa, SaState::valid, counters(sa)};
      return {};
    }
    status.settings.lifetime = sa.lifetime;
    status.settings.udp = sa.udp;
    status.settings.selector = sa.selector;
    status.settings.source = sa.source;
    return {};
  }

  bool remove(const SaId& id) override {
    const std::lock_guard lock(mutex_);
    return sas_.erase(id) != 0;
  }

  Expected<std::uint32_t> reserve_spi(const packet::IpAddress& source, const packet::IpAddress& destination,
                                      Protocol protocol, std::uint32_t reqid, std::uint32_t least,
                                      std::uint32_t most) override {
    const std::lock_guard lock(mutex_);
    // Each is another, so that an old one is seen.
    for (std::uint64_t spi = std::uint64_t{least} + reserved_++; spi <= most; ++spi) {
      const SaId id{destination, static_cast<std::uint32_t>(spi), protocol};
      if (sas_.contains(id)) continue;
      SaStatus larval;
      larval.settings.id = id;
      larval.settings.source = source;
      larval.settings.reqid = reqid;
      larval.state = SaState::larval;
      sas_.emplace(id, larval);
      return id.spi;
    }
    return make_error("no SPI is left");
  }

  std::optional<SaStatus> sa(const SaId& id) const override {
    const std::lock_guard lock(mutex_);
    const auto found = sas_.find(id);
    return found == sas_.end() ? std::nullopt : std::optional(without_keys(found->second));
  }

  std::vector<SaStatus> sas(std::size_t most) const override {
    const std::lock_guard lock(mutex_);
    std::vector<SaStatus> all;
    for (const auto& [id, status] : sas_) {
      if (all.size() < most) all.push_back(without_keys(status));
    }
    return all;
  }

  std::size_t sa_count() const override {
    const std::lock_guard lock(mutex_);
    return sas_.size();
  }

  void flush_sas(std::optional<Protocol> protocol) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(sas_, [&](const auto& one) { return !protocol || one.first.protocol == *protocol; });
  }

  Expected<void> add(const Policy& policy, bool replaces) override {
    const std::lock_guard lock(mutex_);
    const std::pair key{policy.direction, policy.selector};
    if (!replaces && policies_.contains(key)) return make_error("there is such a policy");
    policies_[key] = policy;
    return {};
  }

  bool remove_policy(Direction direction, const Selector& selector) override {
    const std::lock_guard lock(mutex_);
    return policies_.erase({direction, selector}) != 0;
  }

  std::optional<Policy> policy(Direction direction, const Selector& selector) const override {
    const std::lock_guard lock(mutex_);
    const auto found = policies_.find({direction, selector});
    return found == policies_.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<Policy> policies(std::size_t most) const override {
    const std::lock_guard lock(mutex_);
    std::vector<Policy> all;
    for (const auto& [key, policy] : policies_) {
      if (all.size() < most) all.push_back(policy);
    }
    return all;
  }

  std::size_t policy_count() const override {
    const std::lock_guard lock(mutex_);
    return policies_.size();
  }

  void flush_policies() override {
    const std::lock_guard lock(mutex_);
    policies_.clear();
  }

  void set_events(Events* events) override {
    const std::lock_guard lock(mutex_);
    events_ = events;
  }

  // What only tests know.
  Events* events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  // With its keys; nothing: there is none.
  std::optional<SaStatus> whole_sa(const SaId& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = sas_.find(id);
    return found == sas_.end() ? std::nullopt : std::optional(found->second);
  }
  void set_counters(const SaId& id, const SaCounters& counters) {
    const std::lock_guard lock(mutex_);
    const auto found = sas_.find(id);
    if (found != sas_.end()) found->second.counters = counters;
  }

 private:
  static SaStatus without_keys(SaStatus status) {
    status.settings.transform.cipher_key = {};
    status.settings.transform.salt = {};
    status.settings.transform.auth_key = {};
    return status;
  }
  static SaCounters counters(const SaSettings& sa) {
    SaCounters counters;
    counters.sequence = sa.sequence;
    counters.added_at = static_cast<std::uint64_t>(std::time(nullptr));
    return counters;
  }

  mutable std::mutex mutex_;
  std::map<SaId, SaStatus> sas_;
  std::map<std::pair<Direction, Selector>, Policy> policies_;
  Events* events_ = nullptr;
  std::uint32_t reserved_ = 0;
};

}  // namespace sluice::ipsec::xfrm
