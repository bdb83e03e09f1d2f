// What a reload does to SAs and policies of the file.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <tuple>
#include <utility>

#include "crypto/algorithm.h"
#include "function/ipsec/ipsec_control.h"
#include "ipsec/packet_format.h"

namespace sluice::function {
namespace {

using ipsec::Policy;
using ipsec::SaId;
using ipsec::SaSettings;
using ipsec::SaStatus;

enum class Differs : std::uint8_t { nowhere, in_place, altogether };

// But for keys.
Differs how_differs(const SaSettings& now, const SaSettings& wanted) {
  const auto constant = [](const SaSettings& sa) {
    const ipsec::Transform& transform = sa.transform;
    return std::tuple(sa.direction, sa.mode, sa.reqid, transform.cipher, transform.hash, transform.cipher_key.length,
                      transform.icv_length, sa.esn, sa.replay_window, sa.dont_fragment, sa.copy_dscp, sa.ecn,
                      sa.pad_to);
  };
  const auto changeable = [](const SaSettings& sa) {
    return std::tie(sa.name, sa.source, sa.udp, sa.lifetime, sa.selector);
  };
  if (constant(now) != constant(wanted)) return Differs::altogether;
  return changeable(now) == changeable(wanted) ? Differs::nowhere : Differs::in_place;
}

// What Database::add() would say, as far as it does not depend on what there is.
Expected<void> check(const SaSettings& sa) {
  if (auto format = ipsec::packet_format(sa); !format) return tl::unexpected(format.error());
  if (crypto::algorithm(sa.transform.cipher, sa.transform.hash) != nullptr) return {};
  return make_error("there is no algorithm for it");
}

// Its numbers and its window would begin anew under the same key: nobody could tell then what is replayed.
std::string why_not(const SaStatus& now, const SaId& id) {
  return "the SA " + id.str() +
         (now.state == ipsec::SaState::dead
              ? " has reached its hard limit and keeps its key"
              : " keeps its key, under which only name, source, ports of UDP and limits can change") +
         ": give it a new key or SPI. Or remove it first (ctl ipsec remove): then its numbers begin anew, which the "
         "other end takes for replayed packets until they have passed those that it has seen";
}

using Time = std::chrono::steady_clock::time_point;

// `short_of`: called once where there is no capacity at first. False: it is not in force.
template <class Add, class ShortOf>
bool add_patiently(Time until, const std::string& what, const Add& add, const ShortOf& short_of) {
  auto added = add();
  if (!added) short_of();
  while (!added && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    added = add();
  }
  if (!added) spdlog::error("ipsec: {} is not in force: {}", what, added.error().message);
  return added.has_value();
}

std::string counts_text(const char* what, std::size_t added, std::size_t changed, std::size_t removed) {
  std::string text;
  const auto count = [&](std::size_t number, const char* word) {
    if (number != 0) text += (text.empty() ? "" : ", ") + std::to_string(number) + " " + word;
  };
  count(added, "added");
  count(changed, "changed");
  count(removed, "removed");
  return std::string(what) + " of the file: " + (text.empty() ? "as before" : text);
}

}  // namespace

struct IpsecControl::Plan {
  std::vector<SaSettings> add, update, replace;
  std::vector<SaId> remove;
  std::vector<Policy> add_policies, replace_policies;
  std::vector<PolicyId> remove_policies;
  // Of all that the file has.
  std::map<SaId, Known> sas;
  std::map<PolicyId, Known> policies;
};

Expected<void> IpsecControl::plan_sas(const IpsecOptions& file, Plan& plan) const {
  for (std::size_t i = 0; i < file.sas.size(); ++i) {
    const SaSettings& sa = file.sas[i];
    const std::string before =
        file.lines.before(i < file.lines.sas.size() ? file.lines.sas[i].section : 0) + "[ipsec] ";
    if (auto ok = check(sa); !ok) return make_error(before + "the SA " + sa.id.str() + ": " + ok.error().message);
    const std::uint64_t hash = key_hash(sa);
    plan.sas[sa.id] = {Origin::configuration, hash};
    const auto now = databases_.sa(sa.id);
    if (!now) {
      plan.add.push_back(sa);
      continue;
    }
    const Origin origin = origin_of(*now);
    const auto known = sas_.find(sa.id);
    const bool same_key = origin != Origin::ike && hash != 0 && known->second.key_hash == hash;
    const Differs differs = same_key ? how_differs(now->settings, sa) : Differs::altogether;
    if (differs == Differs::nowhere) continue;
    if (origin != Origin::configuration) {
      return make_error(before + "there is an SA " + sa.id.str() + " of " +
                        (origin == Origin::api ? "the API, and it is another one" : "an IKE daemon") +
                        ": remove that (ctl ipsec remove), or take it out of the file");
    }
    if (!same_key) {
      plan.replace.push_back(sa);
    } else if (differs == Differs::in_place && now->state != ipsec::SaState::dead) {
      plan.update.push_back(sa);
    } else {
      return make_error(before + why_not(*now, sa.id));
    }
  }
  for (const auto& [id, known] : sas_) {
    if (known.origin == Origin::configuration && !plan.sas.contains(id) && databases_.sa(id)) plan.remove.push_back(id);
  }
  const std::size_t then = databases_.sa_count() + plan.add.size() - plan.remove.size();
  if (plan.add.size() > plan.remove.size() && then > limits_.sas) {
    return make_error(
        "[ipsec] there would be " + std::to_string(then) +
        " SAs with those of the API and of IKE, more than max_sas: restart the gateway with a larger one");
  }
  return {};
}

Expected<void> IpsecControl::plan_policies(const IpsecOptions& file, Plan& plan) const {
  for (std::size_t i = 0; i < file.policies.size(); ++i) {
    const Policy& policy = file.policies[i];
    Policy wanted = policy;
    wanted.selector = policy.selector.normal();
    const PolicyId id{wanted.direction, wanted.selector};
    plan.policies[id] = {Origin::configuration};
    const auto now = databases_.policy(id.direction, id.selector);
    if (!now) {
      plan.add_policies.push_back(std::move(wanted));
      continue;
    }
    if (*now == wanted) continue;
    const Origin origin = origin_of(*now);
    if (origin != Origin::configuration) {
      const unsigned line = i < file.lines.policies.size() ? file.lines.policies[i].section : 0;
      return make_error(file.lines.before(line) + "[ipsec] there is a policy for " + wanted.selector.str() + " of " +
                        (origin == Origin::api ? "the API, and it is another one" : "an IKE daemon") +
                        ": remove that (ctl ipsec remove-policy), or take it out of the file");
    }
    plan.replace_policies.push_back(std::move(wanted));
  }
  for (const auto& [id, known] : policies_) {
    const bool gone = known.origin == Origin::configuration && !plan.policies.contains(id);
    if (gone && databases_.policy(id.direction, id.selector)) plan.remove_policies.push_back(id);
  }
  const std::size_t then = databases_.policy_count() + plan.add_policies.size() - plan.remove_policies.size();
  if (plan.add_policies.size() > plan.remove_policies.size() && then > limits_.policies) {
    return make_error(
        "[ipsec] there would be " + std::to_string(then) +
        " policies with those of the API and of IKE, more than max_policies: restart the gateway with a larger one");
  }
  return {};
}

Expected<engine::Element::Change> IpsecControl::reload(const IpsecOptions& file) {
  const auto plan = std::make_shared<Plan>();
  const std::lock_guard lock(mutex_);
  if (auto ok = plan_sas(file, *plan); !ok) return tl::unexpected(ok.error());
  if (auto ok = plan_policies(file, *plan); !ok) return tl::unexpected(ok.error());
  return engine::Element::Change{
      counts_text("SAs", plan->add.size(), plan->update.size() + plan->replace.size(), plan->remove.size()) + "; " +
          counts_text("policies", plan->add_policies.size(), plan->replace_policies.size(),
                      plan->remove_policies.size()),
      [this, plan] {
        const std::lock_guard lock(mutex_);
        commit(*plan);
      }};
}

// What is new comes first, and what is gone goes last, so that an SA with a new SPI takes over without a gap. Where
// there is no capacity for both, what is gone goes at once.
void IpsecControl::commit(const Plan& plan) {
  const Time until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const auto remove = [&] {
    for (const PolicyId& id : plan.remove_policies) databases_.remove_policy(id.direction, id.selector);
    for (const SaId& id : plan.remove) databases_.remove(id);
  };
  const auto add = [&](const SaSettings& sa) {
    add_patiently(
        until, "the SA " + sa.id.str(), [&] { return databases_.add(sa); }, remove);
  };
  const auto put = [&](const Policy& policy) {
    add_patiently(
        until, "the policy " + policy.selector.str(), [&] { return databases_.add(policy, true); }, remove);
  };
  std::ranges::for_each(plan.add, add);
  for (const SaSettings& sa : plan.update) {
    if (auto ok = databases_.update(sa); !ok) spdlog::error("ipsec: {}: {}", sa.id.str(), ok.error().message);
  }
  for (const SaSettings& sa : plan.replace) {
    const bool replaced = add_patiently(
        until, "the SA " + sa.id.str(), [&] { return databases_.replace(sa); }, remove);
    if (!replaced) databases_.remove(sa.id);  // its key is not the file's any more
  }
  std::ranges::for_each(plan.add_policies, put);
  std::ranges::for_each(plan.replace_policies, put);
  remove();
  std::erase_if(sas_, [](const auto& one) { return one.second.origin == Origin::configuration; });
  std::erase_if(policies_, [](const auto& one) { return one.second.origin == Origin::configuration; });
  for (const auto& [id, known] : plan.sas) sas_[id] = known;
  for (const auto& [id, known] : plan.policies) policies_[id] = known;
}

}  // namespace sluice::function
