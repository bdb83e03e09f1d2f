#include "port/kernel_rules.h"

#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/netlink_request.h"
#include "port/kernel_tables.h"

namespace sluice::port {
namespace {

std::string text_of(NetlinkBytes payload) {
  const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
  return text.substr(0, text.find('\0'));
}

std::optional<packet::IpPrefix> prefix_of(NetlinkBytes payload, int family, unsigned length) {
  packet::IpAddress address = packet::IpAddress::v4(0);
  if (family == 6) address = packet::IpAddress::from_bytes(6, in6addr_any.s6_addr);
  if (length > address.bits() || (length != 0 && payload.size() != address.bits() / 8)) return std::nullopt;
  if (length != 0) address = packet::IpAddress::from_bytes(family, payload.data());
  return packet::IpPrefix::of(address, length);
}

bool load_ports(NetlinkBytes payload, PortRange& ports) {
  fib_rule_port_range range;
  if (!load_front(payload, range)) return false;
  ports = {range.start, range.end};
  return true;
}

bool load_attribute(int type, NetlinkBytes payload, KernelRule& rule) {
  switch (type) {
    case FRA_PRIORITY:
      return load_front(payload, rule.priority);
    case FRA_TABLE:
      return load_front(payload, rule.table);
    case FRA_GOTO:
      return load_front(payload, rule.target);
    case FRA_IIFNAME:
      rule.iif = text_of(payload);
      return true;
    case FRA_OIFNAME:
      rule.oif = text_of(payload);
      return true;
    case FRA_IP_PROTO:
      return load_front(payload, rule.protocol);
    case FRA_SPORT_RANGE:
      return load_ports(payload, rule.source_ports);
    case FRA_DPORT_RANGE:
      return load_ports(payload, rule.destination_ports);
    case FRA_FWMARK: {
      std::uint32_t mark = 0;
      const bool whole = load_front(payload, mark);
      rule.conditional |= mark != 0;
      return whole;
    }
    case FRA_L3MDEV: {
      std::uint8_t is_of_vrf = 0;
      const bool whole = load_front(payload, is_of_vrf);
      rule.conditional |= is_of_vrf != 0;
      return whole;
    }
    case FRA_TUN_ID:
    case FRA_UID_RANGE:
      rule.conditional = true;
      return true;
    default:
      return true;
  }
}

std::string table_name(std::uint32_t table) {
  switch (table) {
    case RT_TABLE_MAIN:
      return "main";
    case RT_TABLE_DEFAULT:
      return "default";
    case RT_TABLE_LOCAL:
      return "local";
    default:
      return std::to_string(table);
  }
}

}  // namespace

std::optional<KernelRule> parse_rule(NetlinkBytes body) {
  fib_rule_hdr head;
  if (!load_front(body, head) || (head.family != AF_INET && head.family != AF_INET6)) return std::nullopt;
  KernelRule rule;
  rule.family = head.family == AF_INET ? 4 : 6;
  rule.action = head.action;
  rule.table = head.table;
  rule.inverted = (head.flags & FIB_RULE_INVERT) != 0;
  const NetlinkBytes attributes = behind(body, sizeof head);
  if (!each_netlink_attribute(attributes,
                              [&](int type, NetlinkBytes payload) { return load_attribute(type, payload, rule); })) {
    return std::nullopt;
  }
  const auto from = prefix_of(find_netlink_attribute(attributes, FRA_SRC), rule.family, head.src_len);
  const auto to = prefix_of(find_netlink_attribute(attributes, FRA_DST), rule.family, head.dst_len);
  if (!from || !to) return std::nullopt;
  rule.from = *from;
  rule.to = *to;
  return rule;
}

std::string KernelRule::str() const {
  std::string text = std::to_string(priority) + ":" + (inverted ? " not" : "");
  text += " from " + (from.length == 0 ? "all" : from.str());
  if (to.length != 0) text += " to " + to.str();
  if (!iif.empty()) text += " iif " + iif;
  switch (action) {
    case FR_ACT_TO_TBL:
      return text + " lookup " + table_name(table);
    case FR_ACT_GOTO:
      return text + " goto " + std::to_string(target);
    case FR_ACT_BLACKHOLE:
      return text + " blackhole";
    case FR_ACT_UNREACHABLE:
      return text + " unreachable";
    default:
      return text + " prohibit";
  }
}

namespace {

// Of a dump that was complete, those that it had, or what was there until it failed. Nothing: it was interrupted, and
// may have rules twice or lack some.
std::optional<std::vector<KernelRule>> dump_rules(int fd, int family) {
  std::vector<KernelRule> rules;
  constexpr std::size_t most_of_an_answer = 65536;
  fib_rule_hdr wanted{};
  wanted.family = family == 4 ? AF_INET : AF_INET6;
  wanted.action = FR_ACT_TO_TBL;
  if (!send_request(fd, NetlinkRequest(RTM_GETRULE, NLM_F_DUMP, wanted))) return rules;
  bool interrupted = false;
  std::vector<std::byte> answer(most_of_an_answer);
  for (bool done = false; !done;) {
    const ssize_t got = recv(fd, answer.data(), answer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const NetlinkBytes messages(answer.data(), static_cast<std::size_t>(got));
    each_netlink_message(messages, [&](const nlmsghdr& head, NetlinkBytes body) {
      interrupted = interrupted || (head.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      done = head.nlmsg_type == NLMSG_DONE || head.nlmsg_type == NLMSG_ERROR;
      if (const auto rule = head.nlmsg_type == RTM_NEWRULE ? parse_rule(body) : std::nullopt) rules.push_back(*rule);
      return !done;
    });
  }
  if (interrupted) return std::nullopt;
  return rules;
}

}  // namespace

void each_rule(int fd, int family, const std::function<void(const KernelRule&)>& f) {
  constexpr unsigned tries = 5;
  for (unsigned i = 0; i < tries; ++i) {
    if (const auto rules = dump_rules(fd, family)) {
      std::ranges::for_each(*rules, f);
      return;
    }
  }
}

bool leads_elsewhere(const KernelRule& rule, std::span<const std::uint32_t> own_tables) {
  const bool of_others = (rule.conditional && !rule.inverted) || rule.iif == "lo" || !rule.oif.empty();
  if (of_others || rule.action == FR_ACT_NOP || rule.action == FR_ACT_GOTO) return false;
  const bool usual = rule.table == RT_TABLE_MAIN || rule.table == RT_TABLE_LOCAL || rule.table == RT_TABLE_DEFAULT;
  return rule.action != FR_ACT_TO_TBL || (!usual && std::ranges::find(own_tables, rule.table) == own_tables.end());
}

std::vector<std::string> find_rules_that_lead_elsewhere(std::span<const std::uint32_t> own_tables) {
  std::vector<std::string> found;
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return found;
  const timeval patience{2, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  for (const int family : {4, 6}) {
    std::vector<KernelRule> rules;
    each_rule(fd, family, [&](const KernelRule& rule) {
      if (leads_elsewhere(rule, own_tables)) rules.push_back(rule);
    });
    std::erase_if(rules, [&](const KernelRule& rule) {
      return rule.action == FR_ACT_TO_TBL && leads_as_main(family, rule.table);
    });
    for (const KernelRule& rule : rules) found.push_back((family == 4 ? "ip rule " : "ip -6 rule ") + rule.str());
  }
  close(fd);
  return found;
}

}  // namespace sluice::port
