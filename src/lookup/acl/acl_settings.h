// Rules as a configuration writes them: [[acl.rule]], in match order but for their priorities.
//
//     [[acl.rule]]
//     source           = "192.0.2.0/24"     # default: any
//     destination      = "198.51.100.7"
//     source_port      = "1024-65535"       # or one port; default: any; with a protocol that has ports, or none
//     destination_port = "443"
//     protocol         = "tcp"              # tcp, udp, icmp, icmpv6, sctp, gre, esp, ah, or a number in quotes
//     tcp_flags        = "syn,!ack"         # set and not set; with protocol tcp only
//     icmp_type        = 8                  # with protocol icmp or icmpv6 only
//     priority         = 10                 # higher ones are matched first; default 0
//     action           = "police"           # permit, deny, mark, police; must be there
//     mark             = 7                  # of action mark
//     rate             = 10_000_000         # of action police: bits per second
//     burst            = "64K"              # of action police: bytes
//
// Mistakes go to the Settings' Diagnostics, each with its file, line and key. Thread-safety: none (control thread).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/settings.h"
#include "lookup/acl/acl_rule.h"

namespace sluice::lookup::acl {

// What the reader's user can do with actions; anything else is a mistake in the file.
struct ActionLimits {
  std::uint32_t most_mark = 0xffff'ffff;
  std::uint64_t least_burst = 0;
};

// The rules of an [acl] section, in match order. After a mistake (diagnostics not ok()) they are not to be used.
std::vector<AclRule> read_rules(Settings& acl, const ActionLimits& limits = {});

// Of a file that has [[acl.rule]] and nothing else. The Error has a line for each mistake.
Expected<std::vector<AclRule>> read_rules_file(const std::string& path, const ActionLimits& limits = {});

}  // namespace sluice::lookup::acl
