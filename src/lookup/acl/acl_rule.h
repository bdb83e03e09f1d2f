// What a classifier is given and what it answers: rules over the 5-tuple and the TCP flags, and the keys of packets.
//
// Rules stand in a list, and the first one that matches decides. Their place in the list is their order, unless they
// have priorities: in_match_order() puts the higher ones first. Every classifier and every reader of this folder counts
// a rule by its index in that list.
//
// A rule matches a packet of its own family when all of these hold:
//   source, destination   the address lies in the prefix
//   source_port, …        first <= port <= last; a packet without ports (ICMP, a later fragment) has port 0
//   protocol              (protocol & mask) == value; IPv6: that of the last header the parser reached
//   flags                 (flags & mask) == value; TCP: the flags byte of the header (FIN 0x01 … CWR 0x80), ICMP and
//                         ICMPv6: the type, as ClassBench has it; others: 0
//   tags                  (tags & mask) == value; what the bits say is the matter of who makes the keys: members of
//                         named sets, the port that a frame came in by (tag_plan.h)
// A rule without a source and without a destination is of both families.
//
// Plain values; no function here keeps state. Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "packet/ip_address.h"

namespace sluice::lookup::acl {

// Index of a rule in the list that the classifier was made of.
using RuleIndex = std::uint32_t;
inline constexpr RuleIndex no_match = 0xffff'ffff;
// A list has no more rules than this (rte_acl's priorities and the GPU's records have space for no more).
inline constexpr std::uint32_t max_rules = 1U << 24;

struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0xffff;
  bool contains(std::uint16_t port) const { return first <= port && port <= last; }
  bool contains(const PortRange& other) const { return first <= other.first && other.last <= last; }
  bool operator==(const PortRange&) const = default;
};

// Bits of `value` outside `mask` are 0 (check() sees to that).
struct MaskedByte {
  std::uint8_t value = 0;
  std::uint8_t mask = 0;
  bool contains(std::uint8_t byte) const { return (byte & mask) == value; }
  // Every byte that `other` contains.
  bool contains(const MaskedByte& other) const {
    return (mask & ~other.mask) == 0 && ((value ^ other.value) & mask) == 0;
  }
  bool operator==(const MaskedByte&) const = default;
};

// The same of the key's 16 tags.
struct MaskedTags {
  std::uint16_t value = 0;
  std::uint16_t mask = 0;
  bool contains(std::uint16_t tags) const { return (tags & mask) == value; }
  bool contains(const MaskedTags& other) const {
    return (mask & ~other.mask) == 0 && ((value ^ other.value) & mask) == 0;
  }
  bool operator==(const MaskedTags&) const = default;
};

// reject: deny, and the sender is notified.
enum class ActionKind : std::uint8_t { permit, deny, mark, police, reject };
inline constexpr std::size_t action_kinds = 5;
// The frame does not go on, whatever the moment.
constexpr bool drops(ActionKind kind) {
  return kind == ActionKind::deny || kind == ActionKind::reject;
}

struct Action {
  ActionKind kind = ActionKind::permit;
  std::uint32_t mark = 0;         // mark: the value
  std::uint64_t rate_bits = 0;    // police: bits per second of whole frames
  std::uint64_t burst_bytes = 0;  // police: depth of the bucket
  bool log = false;               // a line for frames that it decides
  bool operator==(const Action&) const = default;
};

struct AclRule {
  packet::IpPrefix source;       // family 0: any address
  packet::IpPrefix destination;  // of the source's family, or 0
  PortRange source_port;
  PortRange destination_port;
  MaskedByte protocol;
  MaskedByte flags;
  MaskedTags tags;
  std::int32_t priority = 0;  // higher ones are matched first
  Action action;
  std::uint32_t line = 0;  // of the file that it comes from; 0: none
  // What is written as one rule may be several here, one behind the other: all name the same one of a list that the
  // reader keeps (acl_settings.h).
  static constexpr std::uint32_t no_text = 0xffff'ffff;
  std::uint32_t text = no_text;

  // 4 or 6; 0: both.
  int family() const { return source.address.family != 0 ? source.address.family : destination.address.family; }
  bool is_of(int wanted) const { return family() == 0 || family() == wanted; }
  bool operator==(const AclRule&) const = default;
};

// The keys, 16 bytes for IPv4 and 40 for IPv6, with the fields as they lie in a frame (network order), so that a parser
// copies them. `tags` is in the order of this machine and of the GPU, the lower byte first; it may hold anything where
// no rule asks for it.
struct alignas(16) Key4 {
  std::uint8_t source[4];
  std::uint8_t destination[4];
  std::uint8_t source_port[2];
  std::uint8_t destination_port[2];
  std::uint8_t protocol;
  std::uint8_t flags;
  std::uint8_t tags[2];
};
struct alignas(8) Key6 {
  std::uint8_t source[16];
  std::uint8_t destination[16];
  std::uint8_t source_port[2];
  std::uint8_t destination_port[2];
  std::uint8_t protocol;
  std::uint8_t flags;
  std::uint8_t tags[2];
};
static_assert(sizeof(Key4) == 16 && sizeof(Key6) == 40);

// TCP, UDP, UDP-Lite, DCCP, SCTP; a value and mask that stand for several: one of them.
bool has_ports(const MaskedByte& protocol);
// It names ports, and its protocol has none: it matches nothing, or, where both ranges have 0 in them, whatever the
// ports that were meant.
bool names_ports_in_vain(const AclRule& rule);

// Stable: rules of one priority stay in their order.
std::vector<AclRule> in_match_order(std::vector<AclRule> rules);

// An Error for what no rule can be (families that differ, a range that ends before it begins, a value outside its mask,
// host bits), or for too many rules; it names the rule by its line, else by its index.
Expected<void> check(std::span<const AclRule> rules);

}  // namespace sluice::lookup::acl
