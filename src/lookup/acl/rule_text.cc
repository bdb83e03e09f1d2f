#include "lookup/acl/rule_text.h"

#include <array>
#include <cstdio>
#include <string_view>

#include "lookup/acl/acl_names.h"

namespace sluice::lookup::acl {
namespace {

std::string ports_text(const PortRange& ports) {
  const std::string first = std::to_string(ports.first);
  return ports.first == ports.last ? first : first + "-" + std::to_string(ports.last);
}

std::string masked_text(const MaskedByte& byte) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%02x/0x%02x", byte.value, byte.mask);
  return text.data();
}

std::string protocol_text(const MaskedByte& protocol) {
  if (protocol.mask != 0xff) return masked_text(protocol);
  for (const NamedByte& name : protocol_names) {
    if (name.value == protocol.value) return std::string(name.text);
  }
  return std::to_string(protocol.value);
}

std::string tcp_flags_text(const MaskedByte& flags) {
  std::string text;
  for (const NamedByte& name : flag_names) {
    if ((flags.mask & name.value) == 0) continue;
    text.append(text.empty() ? "" : ",").append((flags.value & name.value) != 0 ? "" : "!").append(name.text);
  }
  return text;
}

}  // namespace

std::string match_text(const AclRule& rule) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    text.append(text.empty() ? "" : " ").append(key).append("=").append(value);
  };
  if (!rule.source.address.empty()) add("source", rule.source.str());
  if (!rule.destination.address.empty()) add("destination", rule.destination.str());
  if (rule.source_port != PortRange{}) add("source_port", ports_text(rule.source_port));
  if (rule.destination_port != PortRange{}) add("destination_port", ports_text(rule.destination_port));
  if (rule.protocol.mask != 0) add("protocol", protocol_text(rule.protocol));
  if (rule.flags.mask != 0) {
    const bool icmp =
        rule.protocol == MaskedByte{protocol_icmp, 0xff} || rule.protocol == MaskedByte{protocol_icmpv6, 0xff};
    if (rule.protocol == MaskedByte{protocol_tcp, 0xff}) {
      add("tcp_flags", tcp_flags_text(rule.flags));
    } else if (icmp && rule.flags.mask == 0xff) {
      add("icmp_type", std::to_string(rule.flags.value));
    } else {
      add("flags", masked_text(rule.flags));
    }
  }
  return text.empty() ? "any" : text;
}

std::string action_text(const Action& action) {
  switch (action.kind) {
    case ActionKind::permit:
      break;
    case ActionKind::deny:
      return "deny";
    case ActionKind::reject:
      return "reject";
    case ActionKind::mark:
      return "mark " + std::to_string(action.mark);
    case ActionKind::police:
      return "police " + std::to_string(action.rate_bits) + " bit/s, burst " + std::to_string(action.burst_bytes) +
             " bytes";
  }
  return "permit";
}

}  // namespace sluice::lookup::acl
