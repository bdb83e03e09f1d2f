// Rules as a configuration writes them: [[acl.rule]], in match order but for their priorities.
//
//     [[acl.rule]]
//     name             = "no-ssh"           # default: none; no two the same
//     comment          = "as of ticket 12"
//     source           = "192.0.2.0/24"     # default: any
//     destination      = ["198.51.100.7", "@servers"]
//     source_port      = "1024-65535"       # or one port; default: any; with protocols that have ports, or none
//     destination_port = 443
//     protocol         = "tcp"              # tcp, udp, icmp, icmpv6, sctp, gre, esp, ah, or a number
//     tcp_flags        = "syn,!ack"         # set and not set; with protocol tcp only
//     icmp_type        = "echo-request"     # or a number; with protocol icmp or icmpv6 only
//     ingress          = "lan"              # the port that the frame comes in by
//     egress           = "!wan"             # the port that it leaves by
//     priority         = 10                 # higher ones are matched first; default 0
//     action           = "police"           # permit, deny, reject, mark, police; must be there
//     mark             = 7                  # of action mark
//     rate             = 10_000_000         # of action police: bits per second
//     burst            = "64K"              # of action police: bytes
//     log              = true               # default false
//
// Of addresses, ports, protocol, icmp_type, ingress and egress there may be lists: one of them holds. With "!" before
// each: none of them holds. "@name" is a set (named_set.h), for addresses and for ports; it takes a tag of the key
// (tag_plan.h). All other lists are multiplied out, to most_of_one_rule rules at most, which share one RuleText.
//
// Mistakes go to the Settings' Diagnostics, each with its file, line and key. Thread-safety: none (control thread).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/option_facts.h"
#include "base/settings.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/acl/named_set.h"
#include "lookup/acl/tag_plan.h"

namespace sluice::lookup::acl {

inline constexpr std::size_t most_of_one_rule = 4096;

// What the reader's user can do; anything else is a mistake in the file.
struct ActionLimits {
  std::uint32_t most_mark = 0xffff'ffff;
  std::uint64_t least_burst = 0;
  std::vector<std::string> ports = {};  // that ingress and egress may name
};

// What is written as one rule.
struct RuleText {
  std::string name, comment;
  std::string match;  // "source=@blocked destination_port=22,80 protocol=tcp"; empty: match_text() of its one rule
};

// All that a configuration says of rules.
struct RuleBook {
  std::vector<AclRule> rules;  // as they came: in_match_order() is the caller's
  std::vector<RuleText> texts;
  std::vector<NamedSet> sets;
  TagPlan plan;
};

// Adds the sets and the rules of an [acl] section. After a mistake (diagnostics not ok()) they are not to be used.
void read_rules(Settings& acl, const ActionLimits& limits, RuleBook& book);
// Adds the [[rule]] sections of an owner that only asks whether one matches: rules without an action, and without
// ports, which are the owner's.
void read_matches(Settings& owner, RuleBook& book);
// The keys of a rule, and of one that only matches; `title` as the file has it.
OptionSection rule_section(std::string title);
OptionSection match_section(std::string title);
// Of a file that has [[acl.rule]] and [[acl.set]] and nothing else. The Error has a line for each mistake.
Expected<void> read_rules_file(const std::string& path, const ActionLimits& limits, RuleBook& book);

// The rules alone, in match order: for those who make no keys with tags.
std::vector<AclRule> read_rules(Settings& acl, const ActionLimits& limits = {});
// An Error for those that ask for sets or ports.
Expected<std::vector<AclRule>> read_rules_file(const std::string& path, ActionLimits limits = {});

}  // namespace sluice::lookup::acl
