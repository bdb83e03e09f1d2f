// The values of one rule's keys, each as the alternatives of which one has to hold. Steps of acl_settings.h.
//
// Thread-safety: none (control thread).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "lookup/acl/acl_settings.h"

namespace sluice::lookup::acl {

struct AddressChoice {
  packet::IpPrefix prefix;  // family 0: any
  MaskedTags tags;
};
struct PortChoice {
  PortRange ports;
  MaskedTags tags;
};
// Flags go with the protocol: of TCP its flags, of ICMP the type.
struct ProtocolChoice {
  MaskedByte protocol;
  MaskedByte flags;
};

// One key's: as written, without their "!".
struct Values {
  std::vector<std::string> texts;
  bool negated = false;
  bool empty() const { return texts.empty(); }
};

class RuleValues {
 public:
  RuleValues(Settings& rule, const ActionLimits& limits, RuleBook& book) : rule_(rule), limits_(limits), book_(book) {}

  // None: a mistake, which is reported. A key that is not there: one that holds always.
  std::vector<AddressChoice> addresses(std::string_view key, Side side);
  std::vector<PortChoice> ports(std::string_view key, Side side);
  std::vector<ProtocolChoice> protocols();  // with tcp_flags and icmp_type
  std::vector<MaskedTags> gates(std::string_view key, bool leaves);
  // "source=... protocol=...", of the keys that are there, in this order.
  std::string text() const { return text_; }

 private:
  Values read(std::string_view key);
  template <typename... Parts>
  bool mistake(std::string_view key, const Parts&... parts);
  bool take_set(std::string_view key, std::string_view name, SetType type, Side side, std::uint16_t& bit);
  std::vector<MaskedByte> protocol_bytes(const Values& values);
  bool read_tcp_flags(std::vector<ProtocolChoice>& choices);
  bool read_icmp_types(std::vector<ProtocolChoice>& choices);

  Settings& rule_;
  const ActionLimits& limits_;
  RuleBook& book_;
  std::string text_;
};

// Where a file has the sets that the rule can name: beside the rules, or the owner of the rules. "[[acl.set]]" of
// "acl.rule", "[[mirror.set]]" of "mirror.session.rule".
std::string section_of_sets(const Settings& rule);

// Bytes other than these, as few values with masks as there are.
std::vector<MaskedByte> all_bytes_but(const std::vector<std::uint8_t>& bytes);
// Numbers of 0..most that are in none of these.
std::vector<SetEntry> all_but(std::vector<SetEntry> entries, std::uint8_t family, Number most);

}  // namespace sluice::lookup::acl
