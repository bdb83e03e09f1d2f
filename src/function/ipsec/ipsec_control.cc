#include "function/ipsec/ipsec_control.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/units.h"
#include "crypto/keyed_hash.h"
#include "media/secret.h"

namespace sluice::function {
namespace {

using ipsec::Direction;
using ipsec::Policy;
using ipsec::SaId;
using ipsec::SaSettings;
using ipsec::SaStatus;

constexpr std::size_t everything = std::numeric_limits<std::size_t>::max();

constexpr const char* daemon_is_not_told =
    "an IKE daemon brought it, and is not told: it goes on as if it were there, until it brings another";

std::string direction_text(Direction direction) {
  return direction == Direction::in ? "in" : "out";
}

std::string text_of(const PolicyId& id) {
  return "the policy " + direction_text(id.direction) + " " + id.selector.str();
}

PolicyId id_of(const Policy& policy) {
  return {policy.direction, policy.selector.normal()};
}

}  // namespace

Expected<std::unique_ptr<IpsecControl>> IpsecControl::make(ipsec::Databases& databases, Limits limits) {
  std::unique_ptr<IpsecControl> control(new IpsecControl(databases, limits));
  if (auto ok = media::system_random(control->own_key_.first(sizeof control->own_key_.bytes)); !ok) {
    return tl::unexpected(ok.error());
  }
  return control;
}

std::uint64_t IpsecControl::key_hash(const SaSettings& sa) const {
  const ipsec::Transform& transform = sa.transform;
  return crypto::keyed_hash(own_key_.bytes,
                            {transform.cipher_key.view(), transform.salt.view(), transform.auth_key.view()});
}

Expected<void> IpsecControl::load(const IpsecOptions& file) {
  const std::lock_guard lock(mutex_);
  for (const SaSettings& sa : file.sas) {
    if (auto ok = databases_.add(sa); !ok) return ok;
    sas_[sa.id] = {Origin::configuration, key_hash(sa)};
  }
  for (const Policy& policy : file.policies) {
    if (auto ok = databases_.add(policy, false); !ok) return ok;
    policies_[id_of(policy)] = {Origin::configuration};
  }
  return {};
}

Expected<IpsecChange> IpsecControl::add(const SaSettings& sa) {
  const std::lock_guard lock(mutex_);
  if (databases_.sa_count() >= limits_.sas) {
    return make_error("there are " + counted_text(limits_.sas, "SA") + ", as many as [ipsec] max_sas allows");
  }
  if (auto ok = databases_.add(sa); !ok) return tl::unexpected(ok.error());
  sas_[sa.id] = {Origin::api, key_hash(sa)};
  IpsecChange change{"the SA " + sa.id.str() + " is in force"};
  const std::string warning = sa.direction == Direction::out ? manual_key_warning(sa.transform) : "";
  if (!warning.empty()) change.warnings.push_back("the SA " + sa.id.str() + ": " + warning);
  return change;
}

Expected<IpsecChange> IpsecControl::add(const GivenSa& given) {
  auto change = add(given.sa);
  const std::string warning = ignored_warning(given.ignored);
  if (!change || warning.empty()) return change;
  change->warnings.push_back("the proposal of the SA " + given.sa.id.str() + " (" + given.ignored + "): " + warning);
  return change;
}

Expected<IpsecChange> IpsecControl::add(const Policy& policy) {
  const std::lock_guard lock(mutex_);
  if (databases_.policy_count() >= limits_.policies) {
    return make_error("there are " + std::to_string(limits_.policies) +
                      " policies, as many as [ipsec] max_policies allows");
  }
  if (auto ok = databases_.add(policy, false); !ok) return tl::unexpected(ok.error());
  policies_[id_of(policy)] = {Origin::api};
  return IpsecChange{text_of(id_of(policy)) + " is in force"};
}

Expected<IpsecChange> IpsecControl::remove(const SaId& id) {
  const std::lock_guard lock(mutex_);
  const auto status = databases_.sa(id);
  if (!status || !databases_.remove(id)) return make_error("there is no SA " + id.str());
  IpsecChange change{"the SA " + id.str() + " is removed"};
  if (origin_of(*status) == Origin::ike) change.warnings.emplace_back(daemon_is_not_told);
  sas_.erase(id);
  return change;
}

Expected<IpsecChange> IpsecControl::remove(const PolicyId& id) {
  const std::lock_guard lock(mutex_);
  const auto policy = databases_.policy(id.direction, id.selector);
  if (!policy || !databases_.remove_policy(id.direction, id.selector))
    return make_error("there is no " + text_of(id).substr(4));
  IpsecChange change{text_of(id) + " is removed"};
  if (origin_of(*policy) == Origin::ike) change.warnings.emplace_back(daemon_is_not_told);
  policies_.erase(id);
  return change;
}

IpsecControl::Origin IpsecControl::origin_of(const SaStatus& sa) const {
  if (sa.settings.name.empty()) return Origin::ike;
  const auto known = sas_.find(sa.settings.id);
  return known == sas_.end() ? Origin::ike : known->second.origin;
}

IpsecControl::Origin IpsecControl::origin_of(const Policy& policy) const {
  if (policy.name.empty()) return Origin::ike;
  const auto known = policies_.find(id_of(policy));
  return known == policies_.end() ? Origin::ike : known->second.origin;
}

IpsecControl::Listing<SaStatus> IpsecControl::list_sas(std::size_t most, const SaFilter& filter) const {
  const bool all = filter.address.empty() && !filter.spi;
  const std::lock_guard lock(mutex_);
  Listing<SaStatus> listing;
  for (SaStatus& sa : databases_.sas(all ? most : everything)) {
    const SaSettings& settings = sa.settings;
    if (filter.spi && *filter.spi != settings.id.spi) continue;
    if (!filter.address.empty() && filter.address != settings.source && filter.address != settings.id.destination) {
      continue;
    }
    ++listing.count;
    if (listing.rows.size() == most) continue;
    const Origin origin = origin_of(sa);
    listing.rows.push_back({std::move(sa), origin});
  }
  if (all) listing.count = databases_.sa_count();
  return listing;
}

IpsecControl::Listing<Policy> IpsecControl::list_policies(std::size_t most, std::optional<Direction> direction) const {
  const std::lock_guard lock(mutex_);
  Listing<Policy> listing;
  for (Policy& policy : databases_.policies(direction ? everything : most)) {
    if (direction && *direction != policy.direction) continue;
    ++listing.count;
    if (listing.rows.size() == most) continue;
    const Origin origin = origin_of(policy);
    const auto count = databases_.counts(policy.direction, policy.selector).value_or(ipsec::Count{});
    listing.rows.push_back({std::move(policy), origin, count});
  }
  if (!direction) listing.count = databases_.policy_count();
  return listing;
}

std::string manual_key_warning(const ipsec::Transform& transform) {
  using enum crypto::Cipher;
  const bool counts =
      transform.cipher == aes_ctr_esp || transform.cipher == aes_gcm_esp || transform.cipher == chacha20_poly1305_esp;
  if (!counts) return "";
  return "a cipher in counter mode is not for keys by hand (RFC 4106 section 2, RFC 8221 section 3): after a restart "
         "it begins anew under the same key. Sluice's IVs begin at a random number, so that two packets have one by "
         "chance alone; take a new key for each start, AES-CBC, or an IKE daemon";
}

std::string ignored_warning(const std::string& ignored) {
  if (ignored.empty()) return "";
  return "this is no part of an SA, and is ignored: a key exchange is IKE's, and a cipher that authenticates takes no "
         "hash";
}

}  // namespace sluice::function
