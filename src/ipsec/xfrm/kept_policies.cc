#include "ipsec/xfrm/kept_policies.h"

#include <algorithm>
#include <cerrno>

#include "ipsec/security_association.h"

namespace sluice::ipsec::xfrm {
namespace {

constexpr std::uint32_t index_step = 8;  // as in Linux the lowest three bits are the direction

}  // namespace

const KeptPolicies::Kept* KeptPolicies::twin(const Key& key) const {
  if (key.first == Way::out) return nullptr;
  const auto found = policies_.find({key.first == Way::in ? Way::forward : Way::in, key.second});
  return found == policies_.end() ? nullptr : &found->second;
}

KeptPolicies::Policies::const_iterator KeptPolicies::at(const PolicyName& name) const {
  if (name.index == 0) return policies_.find({name.way, name.selector});
  const auto found = by_index_.find(name.index);
  return found == by_index_.end() || found->second.first != name.way ? policies_.end() : policies_.find(found->second);
}

const KeptPolicies::Kept* KeptPolicies::find(const PolicyName& name) const {
  const auto found = at(name);
  return found == policies_.end() ? nullptr : &found->second;
}

std::uint32_t KeptPolicies::next_index(Way way) {
  do {
    generator_ += index_step;
  } while (generator_ == 0 || by_index_.contains(generator_ | static_cast<std::uint32_t>(way)));
  return generator_ | static_cast<std::uint32_t>(way);
}

Result<void> KeptPolicies::add(const PolicyRequest& request, bool replaces, std::uint64_t now) {
  const Key key{request.way, request.policy.selector};
  const auto found = policies_.find(key);
  const bool known = found != policies_.end();
  if (known && !replaces) return refuse(EEXIST, "there is such a policy");
  const Kept* const other = twin(key);
  const bool in_database = known || other != nullptr;
  if (!in_database && database_.policy(request.policy.direction, key.second)) {
    return refuse(EEXIST, "there is such a policy, and it is not of this daemon");
  }
  if (request.way != Way::forward || other == nullptr) {
    const auto done = database_.add(request.policy, in_database);
    if (!done) return refuse(EINVAL, done.error().message);
  }
  if (known) {
    found->second.policy = request.policy;
    return {};
  }
  const PolicyFacts facts{next_index(request.way), now, 0};
  policies_.emplace(key, Kept{request.policy, request.way, facts});
  by_index_.emplace(facts.index, key);
  return {};
}

bool KeptPolicies::remove(const PolicyName& name) {
  const auto found = at(name);
  if (found == policies_.end()) return false;
  const Key key = found->first;
  const Kept* const other = twin(key);
  if (other == nullptr) {
    database_.remove_policy(found->second.policy.direction, key.second);
  } else if (key.first == Way::in) {
    // It was in the Database before, so that it is not refused now.
    static_cast<void>(database_.add(other->policy, true));
  }
  by_index_.erase(found->second.facts.index);
  policies_.erase(found);
  return true;
}

void KeptPolicies::flush() {
  for (const auto& [key, kept] : policies_) database_.remove_policy(kept.policy.direction, key.second);
  policies_.clear();
  by_index_.clear();
}

std::size_t KeptPolicies::count(Way way) const {
  return static_cast<std::size_t>(
      std::count_if(policies_.begin(), policies_.end(), [way](const auto& one) { return one.first.first == way; }));
}

std::vector<KeptPolicies::Kept> KeptPolicies::all() const {
  std::vector<Kept> all;
  all.reserve(policies_.size());
  for (const auto& [key, kept] : policies_) all.push_back(kept);
  return all;
}

}  // namespace sluice::ipsec::xfrm
