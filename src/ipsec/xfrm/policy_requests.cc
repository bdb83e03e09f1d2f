// What concerns policies.
#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <utility>

#include "ipsec/xfrm/requests.h"

namespace sluice::ipsec::xfrm {
namespace {

// The rows of Linux's hash tables that hold whole addresses; charon asks, and sets what it does not find.
constexpr xfrmu_spdhthresh whole_ipv4{32, 32}, whole_ipv6{128, 128};

tl::unexpected<Refusal> no_policy() {
  return refuse(ENOENT, "there is no such policy");
}

// Whether the template is of those that move; then it has.
bool move_template(const Move& move, Template& one) {
  const bool same = one.protocol == move.protocol && one.mode == move.mode &&
                    (move.reqid == 0 || one.reqid == 0 || one.reqid == move.reqid);
  if (!same || one.mode == Mode::transport) return same;
  if (one.source != move.old_source || one.destination != move.old_destination) return false;
  one.source = move.new_source;
  one.destination = move.new_destination;
  return true;
}

}  // namespace

Result<void> Requests::new_policy(const Request& request) {
  return read_policy(request.body).and_then([&](const PolicyRequest& read) {
    return policies_.add(read, request.header.nlmsg_type == XFRM_MSG_UPDPOLICY, around_.now());
  });
}

Result<void> Requests::delete_policy(const Request& request) {
  return read_policy_name(request.body).and_then([&](const PolicyName& name) -> Result<void> {
    if (!policies_.remove(name)) return no_policy();
    return {};
  });
}

// Of the SAs that have been made for it: daemons look at a policy to know whether a peer is alive.
std::uint64_t Requests::last_use(const Policy& policy) const {
  std::uint64_t last = 0;
  for (const Template& one : policy.templates) {
    if (one.reqid == 0) continue;
    const auto [first, end] = by_reqid_.equal_range(one.reqid);
    for (auto sa = first; sa != end; ++sa) {
      const auto status = database_.sa(sa->second);
      if (status && status->settings.direction == policy.direction)
        last = std::max(last, status->counters.last_used_at);
    }
  }
  return last;
}

Result<void> Requests::get_policy(const Request& request) {
  return read_policy_name(request.body).and_then([&](const PolicyName& name) -> Result<void> {
    const auto* const found = policies_.find(name);
    if (found == nullptr) return no_policy();
    PolicyFacts facts = found->facts;
    facts.last_used_at = last_use(found->policy);
    Message message = request.reply(XFRM_MSG_NEWPOLICY);
    write_policy(message, found->policy, found->way, facts);
    request.answer.messages.push_back(std::move(message));
    return {};
  });
}

Result<void> Requests::dump_policies(const Request& request) {
  auto all = std::make_shared<std::vector<KeptPolicies::Kept>>(policies_.all());
  for (const Policy& policy : database_.policies(std::numeric_limits<std::size_t>::max())) {
    if (policy.name.empty()) continue;
    all->push_back({policy, policy.direction == Direction::out ? Way::out : Way::in, {}});
  }
  request.answer.dump = [this, all, next = std::size_t{0}, header = request.header,
                         port = request.port]() mutable -> std::optional<Message> {
    Answer none;
    const Request asked{header, {}, port, none};
    if (next > all->size()) return std::nullopt;
    const std::size_t index = next++;
    const bool ends = index == all->size();
    Message message = asked.reply(ends ? NLMSG_DONE : XFRM_MSG_NEWPOLICY, NLM_F_MULTI);
    if (ends) {
      message.body(int{0});
      return message;
    }
    auto& one = (*all)[index];
    one.facts.last_used_at = last_use(one.policy);
    write_policy(message, one.policy, one.way, one.facts);
    return message;
  };
  return {};
}

Result<void> Requests::expire_policy(const Request& request) {
  xfrm_user_polexpire expire;
  if (!load_front(request.body, expire)) return refuse(EINVAL, "the message is too short");
  if (expire.pol.dir > XFRM_POLICY_FWD) return refuse(EINVAL, "a policy's direction is none");
  PolicyName name{static_cast<Way>(expire.pol.dir), {}, expire.pol.index};
  if (name.index == 0) {
    const auto selector = read_selector(expire.pol.sel, ip_family(expire.pol.sel.family));
    if (!selector) return tl::unexpected(selector.error());
    name.selector = *selector;
  }
  const auto* const found = policies_.find(name);
  if (found == nullptr) return no_policy();
  expire.pol = policy_info(found->policy, found->way, found->facts);
  Message message(XFRM_MSG_POLEXPIRE, 0, 0, 0);
  message.body(expire);
  if (expire.hard != 0) policies_.remove(name);
  request.answer.told.push_back({std::move(message), group_bit(XFRMNLGRP_EXPIRE)});
  return {};
}

Result<void> Requests::get_spd_info(const Request& request) {
  std::uint32_t flags = 0;
  if (!load_front(request.body, flags)) return refuse(EINVAL, "the message is too short");
  const auto count = [&](Way way) { return static_cast<std::uint32_t>(policies_.count(way)); };
  xfrmu_spdinfo info{};
  info.incnt = count(Way::in);
  info.outcnt = count(Way::out);
  info.fwdcnt = count(Way::forward);
  Message message = request.reply(XFRM_MSG_NEWSPDINFO);
  message.body(flags);
  message.attribute(XFRMA_SPD_INFO, info);
  message.attribute(XFRMA_SPD_HINFO, xfrmu_spdhinfo{});
  message.attribute(XFRMA_SPD_IPV4_HTHRESH, whole_ipv4);
  message.attribute(XFRMA_SPD_IPV6_HTHRESH, whole_ipv6);
  request.answer.messages.push_back(std::move(message));
  return {};
}

Result<void> Requests::migrate(const Request& request) {
  const auto read = read_migrate(request.body);
  if (!read) return tl::unexpected(read.error());
  const auto* const found = policies_.find(read->policy);
  if (found == nullptr) return no_policy();
  PolicyRequest moved{found->way, found->policy, 0};
  bool any = false;
  for (const Move& move : read->moves) {
    for (Template& one : moved.policy.templates) any = move_template(move, one) || any;
  }
  if (!any) return refuse(ENODATA, "no template of the policy is to be moved");
  // SAs first: no packet finds the new addresses and no SA.
  for (const Move& move : read->moves) {
    auto done = move_sas(move, read->udp);
    if (!done) return done;
  }
  auto done = policies_.add(moved, true, around_.now());
  if (!done) return done;
  request.answer.told.push_back(migrate_message(request.body));
  return {};
}

}  // namespace sluice::ipsec::xfrm
