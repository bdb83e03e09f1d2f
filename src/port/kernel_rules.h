// Rules of the kernel's routing (`ip rule`).
//
// Bytes of rtnetlink in (linux/fib_rules.h), sentences out. Any bytes are safe to read. Thread-safety: no state.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/netlink.h"
#include "packet/ip_address.h"

namespace sluice::port {

struct PortRange {
  std::uint16_t first = 0, last = 65535;
};

struct KernelRule {
  int family = 4;
  std::uint32_t priority = 0;
  std::uint8_t action = 0;              // FR_ACT_*
  std::uint32_t table = 0, target = 0;  // of a jump
  bool inverted = false;
  std::string iif, oif;
  packet::IpPrefix from, to;
  std::uint8_t protocol = 0;  // 0: any
  PortRange source_ports, destination_ports;
  bool conditional = false;  // on what a frame that comes in does not have: a mark, a user, a VRF, a tunnel

  // As `ip rule` says it: "100: from all to 10.2.0.0/24 lookup main".
  std::string str() const;
};

// What follows the header of an RTM_NEWRULE; nothing: cut short, or of another family.
std::optional<KernelRule> parse_rule(NetlinkBytes body);

// Calls f with each rule of the family, in the kernel's order; of a dump that fails, with some. One that rules changed
// under is begun again, five times at most, behind which f is not called. `fd`: a blocking socket
// of rtnetlink that nothing else waits on.
void each_rule(int fd, int family, const std::function<void(const KernelRule&)>& f);

// Whether frames that the host forwards may leave by it in another way than its main table says, or one of
// `own_tables`, as far as the rule alone says. What rules say of marks, users and VRFs is not known of a frame, and
// passed over, but where they are inverted.
bool leads_elsewhere(const KernelRule& rule, std::span<const std::uint32_t> own_tables);

// Those rules of the calling thread's network namespace, each as `ip rule` says it, behind "ip" or "ip -6". Not those
// whose tables lead as main does (kernel_tables.h), as the empty table 220 of strongSwan's charon.
std::vector<std::string> find_rules_that_lead_elsewhere(std::span<const std::uint32_t> own_tables);

}  // namespace sluice::port
