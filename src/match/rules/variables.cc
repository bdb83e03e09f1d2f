#include "match/rules/variables.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

constexpr std::size_t longest_text = 64 << 10;
constexpr unsigned deepest = 16;  // groups and variables within each other

constexpr auto usual = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"HOME_NET", "any"},
    {"EXTERNAL_NET", "any"},
    {"HTTP_SERVERS", "$HOME_NET"},
    {"SMTP_SERVERS", "$HOME_NET"},
    {"SQL_SERVERS", "$HOME_NET"},
    {"DNS_SERVERS", "$HOME_NET"},
    {"TELNET_SERVERS", "$HOME_NET"},
    {"SSH_SERVERS", "$HOME_NET"},
    {"FTP_SERVERS", "$HOME_NET"},
    {"SIP_SERVERS", "$HOME_NET"},
    {"SNMP_SERVERS", "$HOME_NET"},
    {"AIM_SERVERS", "$EXTERNAL_NET"},
    {"DC_SERVERS", "$HOME_NET"},
    {"DNP3_SERVER", "$HOME_NET"},
    {"DNP3_CLIENT", "$HOME_NET"},
    {"MODBUS_CLIENT", "$HOME_NET"},
    {"MODBUS_SERVER", "$HOME_NET"},
    {"ENIP_CLIENT", "$HOME_NET"},
    {"ENIP_SERVER", "$HOME_NET"},
    {"HTTP_PORTS", "80"},
    {"SHELLCODE_PORTS", "!80"},
    {"ORACLE_PORTS", "1521"},
    {"SSH_PORTS", "22"},
    {"DNP3_PORTS", "20000"},
    {"MODBUS_PORTS", "502"},
    {"FILE_DATA_PORTS", "[$HTTP_PORTS,110,143]"},
    {"FTP_PORTS", "21"},
    {"SIP_PORTS", "[5060,5061]"},
    {"GTP_PORTS", "[2123,2152,3386]"},
    {"GENEVE_PORTS", "6081"},
    {"VXLAN_PORTS", "4789"},
    {"TEREDO_PORTS", "3544"},
});

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Expected<void> check(std::string_view name, std::string_view text) {
  if (!is_name(name)) {
    return make_error(in_quotes(name) + " is no name of a variable: write letters, digits and _");
  }
  text = trimmed(text);
  if (text.empty()) return make_error("the variable " + std::string(name) + " is given no value");
  if (text.size() > longest_text) return make_error("the variable " + std::string(name) + " is longer than 64 KiB");
  return {};
}

// One evaluation of a text to an AddressSet or a PortSet.
template <typename Set>
class Evaluation {
 public:
  using Parse = Expected<Set> (*)(std::string_view);
  Evaluation(const Variables& variables, Parse parse) : variables_(variables), parse_(parse) {}

  Expected<Set> of(std::string_view text, unsigned depth = 0) {
    if (depth > deepest) {
      return make_error("variables or groups are within each other more than " + std::to_string(deepest) +
                        " deep: does one contain itself?");
    }
    if (++steps_ > most_steps) return make_error("variables and groups unfold to more than 100000 members");
    if (text.starts_with('!')) {
      const auto set = of(trimmed(text.substr(1)), depth + 1);
      return set ? Expected<Set>(set->complement()) : set;
    }
    if (text.starts_with('[')) return group(text, depth);
    if (text.starts_with('$')) return variable(text.substr(1), depth);
    return parse_(text);
  }

 private:
  static constexpr unsigned most_steps = 100'000;

  using Ranges = std::vector<std::remove_cvref_t<decltype(std::declval<Set>().ranges()[0])>>;

  Expected<Set> group(std::string_view text, unsigned depth) {
    if (!text.ends_with(']')) return make_error(in_quotes(text) + " has no closing ]");
    Ranges included;
    Ranges excluded;
    bool has_included = false;
    for (const std::string_view member : split_group(text.substr(1, text.size() - 2))) {
      if (member.empty()) return make_error(in_quotes(text) + " has an empty member");
      const bool negated = member.starts_with('!');
      auto set = of(negated ? trimmed(member.substr(1)) : member, depth + 1);
      if (!set) return set;
      Ranges& ranges = negated ? excluded : included;
      ranges.insert(ranges.end(), set->ranges().begin(), set->ranges().end());
      has_included = has_included || !negated;
    }
    return (has_included ? Set(std::move(included)) : Set::any()).intersection(Set(std::move(excluded)).complement());
  }

  Expected<Set> variable(std::string_view name, unsigned depth) {
    const std::string* const text = variables_.find(name);
    if (text == nullptr) {
      return make_error("the variable " + in_quotes(name) +
                        " is not set: give it a value with ipvar, portvar or --var");
    }
    auto set = of(*text, depth + 1);
    if (!set && depth == 0) return make_error("$" + std::string(name) + ": " + set.error().message);
    return set;
  }

  const Variables& variables_;
  Parse parse_;
  unsigned steps_ = 0;
};

template <typename Set>
Expected<Set> not_empty(Expected<Set> set, std::string_view text) {
  if (set && set->empty()) return make_error(in_quotes(text) + " leaves nothing: the rule could never match");
  return set;
}

}  // namespace

Variables Variables::defaults() {
  Variables variables;
  for (const auto& [name, text] : usual) variables.texts_.emplace(name, text);
  return variables;
}

Expected<Variables> Variables::from_map(const std::map<std::string, std::string>& texts) {
  Variables variables = defaults();
  for (const auto& [name, text] : texts) {
    if (const auto ok = variables.set(name, text); !ok) return tl::unexpected(ok.error());
  }
  return variables;
}

Expected<void> Variables::set(std::string_view name, std::string_view text) {
  if (auto ok = check(name, text); !ok) return ok;
  if (!fixed_.contains(name)) texts_.insert_or_assign(std::string(name), std::string(trimmed(text)));
  return {};
}

Expected<void> Variables::fix(std::string_view name, std::string_view text) {
  if (auto ok = check(name, text); !ok) return ok;
  fixed_.erase(std::string(name));
  auto ok = set(name, text);
  fixed_.emplace(name);
  return ok;
}

const std::string* Variables::find(std::string_view name) const {
  const auto at = texts_.find(name);
  return at == texts_.end() ? nullptr : &at->second;
}

Expected<AddressSet> Variables::addresses(std::string_view text) const {
  return not_empty(Evaluation<AddressSet>(*this, parse_address).of(text), text);
}

Expected<PortSet> Variables::ports(std::string_view text) const {
  return not_empty(Evaluation<PortSet>(*this, parse_port).of(text), text);
}

}  // namespace sluice::match
