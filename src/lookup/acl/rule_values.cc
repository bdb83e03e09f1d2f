#include "lookup/acl/rule_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "base/spelling.h"
#include "lookup/acl/acl_names.h"

namespace sluice::lookup::acl {
namespace {

constexpr std::string_view protocols_text = "tcp, udp, icmp, icmpv6, sctp, gre, esp, ah, or a number from 0 to 255";

std::optional<std::uint8_t> named(std::span<const NamedByte> names, std::string_view text) {
  for (const NamedByte& name : names) {
    if (name.text == text) return name.value;
  }
  return std::nullopt;
}

std::optional<std::uint8_t> byte_of(std::string_view text) {
  std::uint8_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                                   : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

bool is(const MaskedByte& protocol, std::uint8_t number) {
  return protocol == MaskedByte{number, 0xff};
}

std::span<const NamedByte> type_names(const MaskedByte& protocol) {
  if (is(protocol, protocol_icmp)) return icmp_names;
  return is(protocol, protocol_icmpv6) ? std::span<const NamedByte>(icmpv6_names) : std::span<const NamedByte>();
}

// The prefixes of the addresses that are in none of the entries, of both families.
std::vector<packet::IpPrefix> prefixes_but(const std::vector<SetEntry>& entries) {
  std::vector<packet::IpPrefix> prefixes;
  for (const auto& [family, most] : {std::pair<std::uint8_t, Number>{4, 0xffff'ffff}, {6, ~Number{0}}}) {
    for (const SetEntry& entry : all_but(entries, family, most)) {
      const auto more = prefixes_of(entry);
      prefixes.insert(prefixes.end(), more.begin(), more.end());
    }
  }
  return prefixes;
}

// Bits [first, 8) free: the bytes of one aligned block.
void bytes_but(const std::vector<std::uint8_t>& bytes, unsigned first, unsigned size, std::vector<MaskedByte>& out) {
  const auto in_block = [&](std::uint8_t byte) { return byte >= first && byte < first + size; };
  if (std::none_of(bytes.begin(), bytes.end(), in_block)) {
    const auto mask = static_cast<std::uint8_t>(~(size - 1));
    out.push_back({static_cast<std::uint8_t>(first & mask), mask});
  } else if (size > 1) {
    bytes_but(bytes, first, size / 2, out);
    bytes_but(bytes, first + size / 2, size / 2, out);
  }
}

}  // namespace

std::vector<MaskedByte> all_bytes_but(const std::vector<std::uint8_t>& bytes) {
  std::vector<MaskedByte> out;
  bytes_but(bytes, 0, 256, out);
  return out;
}

std::vector<SetEntry> all_but(std::vector<SetEntry> entries, std::uint8_t family, Number most) {
  tidy(entries);
  std::vector<SetEntry> rest;
  Number next = 0;
  for (const SetEntry& entry : entries) {
    if (entry.family != family) continue;
    if (entry.first > next) rest.push_back({family, next, entry.first - 1});
    if (entry.last == most) return rest;
    next = std::max(next, entry.last + 1);
  }
  rest.push_back({family, next, most});
  return rest;
}

// Reports it; false.
template <typename... Parts>
bool RuleValues::mistake(std::string_view key, const Parts&... parts) {
  std::string text;
  (text.append(parts), ...);
  rule_.error(key, text);
  return false;
}

Values RuleValues::read(std::string_view key) {
  Values values;
  std::size_t negated = 0;
  std::string all;
  for (const std::string& text : rule_.values(key)) {
    std::string_view value = trimmed(text);
    if (value.starts_with('!')) {
      ++negated;
      value = trimmed(value.substr(1));
    }
    all.append(all.empty() ? "" : ",").append(negated != 0 ? "!" : "").append(value);
    values.texts.emplace_back(value);
  }
  if (negated != 0 && negated != values.texts.size()) {
    mistake(key, "\"!\" is before each value of a list or before none");
    return {};
  }
  values.negated = negated != 0;
  if (!values.empty()) text_.append(text_.empty() ? "" : " ").append(key).append("=").append(all);
  return values;
}

std::string section_of_sets(const Settings& rule) {
  const std::string& name = rule.name();
  return "[[" + name.substr(0, name.find('.')) + ".set]]";
}

// The tag of "@name".
bool RuleValues::take_set(std::string_view key, std::string_view name, SetType type, Side side, std::uint16_t& bit) {
  std::vector<std::string> known;
  for (std::uint32_t s = 0; s < book_.sets.size(); ++s) {
    const NamedSet& set = book_.sets[s];
    known.push_back(set.name);
    if (set.name != name) continue;
    if (set.type != type) {
      return mistake(key, "the set \"", name, "\" is of ", name_of(set.type), ", and ", name_of(type),
                     " are asked for");
    }
    const auto of_set = book_.plan.bit_of(s, side);
    if (!of_set) {
      return mistake(key, "there is no tag left for this set: all rules together have ", std::to_string(TagPlan::bits),
                     ", one for each set as source and one as destination, and some for ingress and egress; put sets "
                     "that have the same rules into one");
    }
    bit = *of_set;
    return true;
  }
  return mistake(key, "there is no set \"", name, "\"",
                 known.empty() ? ": write it as " + section_of_sets(rule_) + " before the rules"
                               : spelling_hint(std::string(name), known));
}

std::vector<AddressChoice> RuleValues::addresses(std::string_view key, Side side) {
  const Values values = read(key);
  if (!rule_.has(key)) return {{}};
  std::vector<AddressChoice> choices;
  std::vector<SetEntry> entries;
  MaskedTags none_of;
  for (const std::string& text : values.texts) {
    if (text.starts_with('@')) {
      std::uint16_t bit = 0;
      if (!take_set(key, std::string_view(text).substr(1), SetType::addresses, side, bit)) return {};
      none_of.mask |= bit;
      choices.push_back({{}, {bit, bit}});
      continue;
    }
    const auto entry = parse_set_entry(SetType::addresses, text);
    if (!entry) {
      mistake(key, values.texts.size() > 1 ? "\"" + text + "\": " : std::string(), entry.error().message);
      return {};
    }
    entries.push_back(*entry);
    for (const packet::IpPrefix& prefix : prefixes_of(*entry)) choices.push_back({prefix, {}});
  }
  if (!values.negated) return choices;
  if (entries.empty()) return {{{}, none_of}};
  choices.clear();
  for (const packet::IpPrefix& prefix : prefixes_but(entries)) choices.push_back({prefix, none_of});
  if (choices.empty()) mistake(key, "no address is left");
  return choices;
}

std::vector<PortChoice> RuleValues::ports(std::string_view key, Side side) {
  const Values values = read(key);
  if (!rule_.has(key)) return {{}};
  std::vector<PortChoice> choices;
  std::vector<SetEntry> entries;
  MaskedTags none_of;
  const auto range = [](const SetEntry& entry) {
    return PortRange{static_cast<std::uint16_t>(entry.first), static_cast<std::uint16_t>(entry.last)};
  };
  for (const std::string& text : values.texts) {
    if (text.starts_with('@')) {
      std::uint16_t bit = 0;
      if (!take_set(key, std::string_view(text).substr(1), SetType::ports, side, bit)) return {};
      none_of.mask |= bit;
      choices.push_back({{}, {bit, bit}});
      continue;
    }
    const auto entry = parse_set_entry(SetType::ports, text);
    if (!entry) {
      mistake(key, values.texts.size() > 1 ? "\"" + text + "\": " : std::string(), entry.error().message);
      return {};
    }
    entries.push_back(*entry);
    choices.push_back({range(*entry), {}});
  }
  if (!values.negated) return choices;
  choices.clear();
  for (const SetEntry& entry : all_but(entries, 0, 0xffff)) choices.push_back({range(entry), none_of});
  if (choices.empty()) mistake(key, "no port is left");
  return choices;
}

std::vector<MaskedByte> RuleValues::protocol_bytes(const Values& values) {
  std::vector<std::uint8_t> bytes;
  for (const std::string& text : values.texts) {
    auto value = named(protocol_names, text);
    value = value ? value : byte_of(text);
    if (!value) {
      mistake("protocol", values.texts.size() > 1 ? "\"" + text + "\": " : std::string(), protocols_text);
      return {};
    }
    bytes.push_back(*value);
  }
  if (values.negated) return all_bytes_but(bytes);
  std::vector<MaskedByte> protocols;
  for (const std::uint8_t byte : bytes) protocols.push_back({byte, 0xff});
  return protocols;
}

std::vector<ProtocolChoice> RuleValues::protocols() {
  std::vector<ProtocolChoice> choices;
  const Values values = read("protocol");
  if (rule_.has("protocol")) {
    for (const MaskedByte& protocol : protocol_bytes(values)) choices.push_back({protocol, {}});
    if (choices.empty()) return {};
  } else {
    choices.push_back({});
  }
  if (!read_tcp_flags(choices) || !read_icmp_types(choices)) return {};
  return choices;
}

bool RuleValues::read_tcp_flags(std::vector<ProtocolChoice>& choices) {
  const std::string text = rule_.text("tcp_flags", "");
  if (!rule_.has("tcp_flags")) return true;
  if (choices.size() != 1 || !is(choices[0].protocol, protocol_tcp)) {
    return mistake("tcp_flags", "only with protocol = \"tcp\"");
  }
  text_.append(" tcp_flags=").append(text);
  MaskedByte& flags = choices[0].flags;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    std::string_view name = trimmed(std::string_view(text).substr(from, comma - from));
    from = comma + 1;
    const bool is_set = !name.starts_with('!');
    name.remove_prefix(is_set ? 0 : 1);
    const auto bit = named(flag_names, name);
    if (!bit || (flags.mask & *bit) != 0) {
      return mistake("tcp_flags",
                     "fin, syn, rst, psh, ack, urg, ece, cwr, each once at most, with ! for one that is not set, such "
                     "as \"syn,!ack\"");
    }
    flags.mask |= *bit;
    flags.value |= is_set ? *bit : std::uint8_t{0};
  }
  return true;
}

// A name is of those protocols of the rule that have it.
bool RuleValues::read_icmp_types(std::vector<ProtocolChoice>& choices) {
  const Values values = read("icmp_type");
  if (!rule_.has("icmp_type")) return true;
  for (const ProtocolChoice& choice : choices) {
    if (type_names(choice.protocol).empty()) {
      return mistake("icmp_type", "only with protocol = \"icmp\" or \"icmpv6\"");
    }
  }
  if (values.empty()) return false;
  std::vector<ProtocolChoice> all;
  std::vector<bool> is_known(values.texts.size());
  for (const ProtocolChoice& choice : choices) {
    std::vector<std::uint8_t> types;
    for (std::size_t v = 0; v < values.texts.size(); ++v) {
      auto type = named(type_names(choice.protocol), values.texts[v]);
      type = type ? type : byte_of(values.texts[v]);
      if (!type) continue;
      is_known[v] = true;
      types.push_back(*type);
    }
    if (values.negated) {
      for (const MaskedByte& rest : all_bytes_but(types)) all.push_back({choice.protocol, rest});
    } else {
      for (const std::uint8_t type : types) all.push_back({choice.protocol, {type, 0xff}});
    }
  }
  for (std::size_t v = 0; v < is_known.size(); ++v) {
    if (is_known[v]) continue;
    std::vector<std::string> known;
    for (const ProtocolChoice& choice : choices) {
      for (const NamedByte& name : type_names(choice.protocol)) known.emplace_back(name.text);
    }
    return mistake("icmp_type", values.texts.size() > 1 ? "\"" + values.texts[v] + "\": " : std::string(),
                   "allowed is a type's name or a whole number from 0 to 255", spelling_hint(values.texts[v], known));
  }
  choices = std::move(all);
  return true;
}

std::vector<MaskedTags> RuleValues::gates(std::string_view key, bool leaves) {
  const Values values = read(key);
  if (!rule_.has(key)) return {{}};
  std::vector<bool> is_named(limits_.ports.size());
  for (const std::string& text : values.texts) {
    const auto found = std::find(limits_.ports.begin(), limits_.ports.end(), text);
    if (found == limits_.ports.end()) {
      mistake(key, "there is no port \"", text, "\"", spelling_hint(text, limits_.ports));
      return {};
    }
    is_named[static_cast<std::size_t>(found - limits_.ports.begin())] = true;
  }
  std::vector<MaskedTags> gates;
  for (std::size_t p = 0; p < is_named.size() && !values.empty(); ++p) {
    if (is_named[p] == values.negated) continue;
    const auto port = static_cast<std::uint16_t>(p);
    const auto tags = leaves ? book_.plan.egress(port, is_named.size()) : book_.plan.ingress(port, is_named.size());
    if (!tags) {
      mistake(key, "there is no tag left for ports: all rules together have ", std::to_string(TagPlan::bits),
              ", which sets take, too");
      return {};
    }
    gates.push_back(*tags);
  }
  if (gates.empty() && !values.empty()) mistake(key, "no port is left");
  return gates;
}

}  // namespace sluice::lookup::acl
