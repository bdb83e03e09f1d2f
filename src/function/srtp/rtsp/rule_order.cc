#include "function/srtp/rtsp/rule_order.h"

#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include <algorithm>

namespace sluice::function::rtsp {
namespace {

using port::KernelRule;
using port::PortRange;

bool overlap(const packet::IpPrefix& a, const packet::IpPrefix& b) {
  if (a.address.family != b.address.family) return false;
  return a.length <= b.length ? a.contains(b.address) : b.contains(a.address);
}

bool has(const PortRange& ports, std::uint16_t port) {
  return ports.first <= port && port <= ports.last;
}

}  // namespace

bool comes_first(const KernelRule& rule, const function::RtspOptions& options, const std::vector<std::string>& twins) {
  if (rule.priority > options.priority || rule.action == FR_ACT_NOP) return false;
  if (rule.action == FR_ACT_GOTO && rule.target <= options.priority) return false;
  // The kernel's own, of the host's addresses, and the proxy's.
  const bool harmless = rule.table == RT_TABLE_LOCAL || rule.table == options.table;
  if (rule.action == FR_ACT_TO_TBL && harmless) return false;
  const auto concerns = [&](const packet::IpPrefix& servers) {
    if (servers.address.family != rule.family) return false;
    if (rule.inverted) return true;
    return std::ranges::any_of(options.ports, [&](std::uint16_t port) {
      return (overlap(rule.to, servers) && has(rule.destination_ports, port)) ||
             (overlap(rule.from, servers) && has(rule.source_ports, port));
    });
  };
  if (!std::ranges::any_of(options.servers, concerns)) return false;
  if (rule.inverted) return true;
  if (rule.conditional || !rule.oif.empty()) return false;
  if (rule.protocol != 0 && rule.protocol != IPPROTO_TCP) return false;
  return rule.iif.empty() || std::ranges::find(twins, rule.iif) != twins.end();
}

}  // namespace sluice::function::rtsp
