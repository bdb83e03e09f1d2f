#include "ipsec/xfrm/policy_message.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "ipsec/security_association.h"
#include "ipsec/xfrm/sa_message.h"

namespace sluice::ipsec::xfrm {
namespace {

constexpr std::size_t most_templates = 6;  // XFRM_MAX_DEPTH

constexpr std::initializer_list<Attributes::Unwanted> unwanted = {{XFRMA_MARK, "marks"},
                                                                  {XFRMA_IF_ID, "interface ids"},
                                                                  {XFRMA_SEC_CTX, "security contexts"},
                                                                  {XFRMA_OFFLOAD_DEV, "offloads to a device"}};

Result<Way> way_of(unsigned direction) {
  if (direction == XFRM_POLICY_IN) return Way::in;
  if (direction == XFRM_POLICY_OUT) return Way::out;
  if (direction == XFRM_POLICY_FWD) return Way::forward;
  return refuse(EINVAL, "a policy's direction " + std::to_string(direction) + " is none");
}

Result<void> read_type(const Attributes& attributes) {
  const auto type = attributes.value<xfrm_userpolicy_type>(XFRMA_POLICY_TYPE);
  if (type && type->type != XFRM_POLICY_TYPE_MAIN) return refuse(EINVAL, "sub-policies are not supported");
  return attributes.refuse_any(unwanted);
}

Result<Template> read_template(const xfrm_user_tmpl& bytes, int policy_family) {
  if (bytes.id.proto != IPPROTO_ESP && bytes.id.proto != IPPROTO_AH) {
    return refuse(EPROTONOSUPPORT, "a template is neither of ESP nor of AH");
  }
  if (bytes.mode != XFRM_MODE_TRANSPORT && bytes.mode != XFRM_MODE_TUNNEL) {
    return refuse(EOPNOTSUPP, "a template's mode is neither tunnel nor transport");
  }
  const int family = bytes.family == 0 ? policy_family : ip_family(bytes.family);
  if (family == 0) return refuse(EINVAL, "a template is neither of IPv4 nor of IPv6");
  Template read{};
  read.protocol = bytes.id.proto == IPPROTO_ESP ? Protocol::esp : Protocol::ah;
  read.mode = bytes.mode == XFRM_MODE_TUNNEL ? Mode::tunnel : Mode::transport;
  read.source = address_of(bytes.saddr, family);
  read.destination = address_of(bytes.id.daddr, family);
  read.reqid = bytes.reqid;
  read.spi = ntohl(bytes.id.spi);
  read.optional = bytes.optional != 0;
  return read;
}

Result<void> read_templates(NetlinkBytes payload, int family, Policy& policy) {
  const std::size_t count = payload.size() / sizeof(xfrm_user_tmpl);
  if (count > most_templates) return refuse(EINVAL, "a policy has more than six templates");
  for (std::size_t i = 0; i < count; ++i) {
    xfrm_user_tmpl bytes;
    load_front(payload.subspan(i * sizeof bytes), bytes);
    auto read = read_template(bytes, family);
    if (!read) return tl::unexpected(read.error());
    policy.templates.push_back(*read);
  }
  return {};
}

Result<void> read_action(const xfrm_userpolicy_info& info, Policy& policy) {
  if (info.action != XFRM_POLICY_ALLOW && info.action != XFRM_POLICY_BLOCK) {
    return refuse(EINVAL, "a policy's action " + std::to_string(info.action) + " is none");
  }
  if (info.action == XFRM_POLICY_BLOCK) {
    policy.templates.clear();
    policy.action = Action::discard;
  } else {
    policy.action = policy.templates.empty() ? Action::bypass : Action::protect;
  }
  return {};
}

Result<void> refuse_lifetime(const xfrm_lifetime_cfg& limits) {
  const std::uint64_t amounts[] = {limits.soft_byte_limit, limits.hard_byte_limit, limits.soft_packet_limit,
                                   limits.hard_packet_limit};
  const std::uint64_t times[] = {limits.soft_add_expires_seconds, limits.hard_add_expires_seconds,
                                 limits.soft_use_expires_seconds, limits.hard_use_expires_seconds};
  bool limited = false;
  for (const std::uint64_t amount : amounts) limited = limited || (amount != XFRM_INF && amount != 0);
  for (const std::uint64_t time : times) limited = limited || time != 0;
  if (limited) return refuse(EOPNOTSUPP, "lifetimes of policies are not supported");
  return {};
}

}  // namespace

Result<PolicyRequest> read_policy(NetlinkBytes body) {
  xfrm_userpolicy_info info;
  if (!load_front(body, info)) return refuse(EINVAL, "the message is too short");
  const auto attributes = Attributes::read(behind(body, sizeof info));
  if (!attributes) return tl::unexpected(attributes.error());
  auto done = read_type(*attributes);
  if (done) done = refuse_lifetime(info.lft);
  if (!done) return tl::unexpected(done.error());
  if ((info.flags & ~XFRM_POLICY_LOCALOK) != 0) {
    return refuse(EOPNOTSUPP, "a policy's flags (ICMP errors of a flow pass with it) are not supported");
  }
  const auto way = way_of(info.dir);
  if (!way) return tl::unexpected(way.error());
  const int family = ip_family(info.sel.family);
  const auto selector = read_selector(info.sel, family);
  if (!selector) return tl::unexpected(selector.error());
  PolicyRequest request{*way, {}, info.index};
  request.policy.direction = *way == Way::out ? Direction::out : Direction::in;
  request.policy.selector = *selector;
  request.policy.priority = info.priority;
  done = read_templates(attributes->payload(XFRMA_TMPL), family, request.policy);
  if (done) done = read_action(info, request.policy);
  if (!done) return tl::unexpected(done.error());
  return request;
}

Result<PolicyName> read_policy_name(NetlinkBytes body) {
  xfrm_userpolicy_id id;
  if (!load_front(body, id)) return refuse(EINVAL, "the message is too short");
  const auto attributes = Attributes::read(behind(body, sizeof id));
  if (!attributes) return tl::unexpected(attributes.error());
  if (const auto done = read_type(*attributes); !done) return tl::unexpected(done.error());
  const auto way = way_of(id.dir);
  if (!way) return tl::unexpected(way.error());
  if (id.index != 0) return PolicyName{*way, {}, id.index};
  const auto selector = read_selector(id.sel, ip_family(id.sel.family));
  if (!selector) return tl::unexpected(selector.error());
  return PolicyName{*way, *selector, 0};
}

xfrm_user_tmpl template_bytes(const Template& wanted, int family) {
  xfrm_user_tmpl bytes{};
  bytes.id.daddr = bytes_of(wanted.destination);
  bytes.id.spi = htonl(wanted.spi);
  bytes.id.proto = static_cast<std::uint8_t>(wanted.protocol);
  bytes.family = wanted.destination.empty() ? static_cast<std::uint16_t>(family == 4 ? AF_INET : AF_INET6)
                                            : address_family(wanted.destination);
  bytes.saddr = bytes_of(wanted.source);
  bytes.reqid = wanted.reqid;
  bytes.mode = wanted.mode == Mode::tunnel ? XFRM_MODE_TUNNEL : XFRM_MODE_TRANSPORT;
  bytes.optional = wanted.optional ? 1 : 0;
  bytes.aalgos = bytes.ealgos = bytes.calgos = ~0U;
  return bytes;
}

xfrm_userpolicy_info policy_info(const Policy& policy, Way way, const PolicyFacts& facts) {
  xfrm_userpolicy_info info{};
  info.sel = selector_bytes(policy.selector);
  info.lft.soft_byte_limit = info.lft.hard_byte_limit = XFRM_INF;
  info.lft.soft_packet_limit = info.lft.hard_packet_limit = XFRM_INF;
  info.curlft.add_time = facts.added_at;
  info.curlft.use_time = facts.last_used_at;
  info.priority = policy.priority;
  info.index = facts.index;
  info.dir = static_cast<std::uint8_t>(way);
  info.action = policy.action == Action::discard ? XFRM_POLICY_BLOCK : XFRM_POLICY_ALLOW;
  info.share = XFRM_SHARE_ANY;
  return info;
}

void write_policy(Message& message, const Policy& policy, Way way, const PolicyFacts& facts) {
  message.body(policy_info(policy, way, facts));
  message.attribute(XFRMA_POLICY_TYPE, xfrm_userpolicy_type{});  // XFRM_POLICY_TYPE_MAIN
  if (policy.templates.empty()) return;
  xfrm_user_tmpl templates[most_templates];
  std::size_t count = 0;
  for (const Template& one : policy.templates) {
    if (count < most_templates) templates[count++] = template_bytes(one, policy.selector.source.address.family);
  }
  message.attribute(XFRMA_TMPL, templates, count * sizeof templates[0]);
}

}  // namespace sluice::ipsec::xfrm
