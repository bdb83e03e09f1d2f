#include "lookup/acl/named_set.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "base/file.h"
#include "base/option.h"
#include "base/quote.h"
#include "lookup/line_mistakes.h"

namespace sluice::lookup::acl {
namespace {

Number number_of(const packet::IpAddress& address) {
  Number number = 0;
  for (unsigned i = 0; i < address.bits() / 8; ++i) number = number << 8 | address.bytes[i];
  return number;
}

packet::IpAddress address_of(int family, Number number) {
  packet::IpAddress address;
  address.family = static_cast<std::uint8_t>(family);
  for (unsigned i = address.bits() / 8; i-- > 0; number >>= 8) address.bytes[i] = static_cast<std::uint8_t>(number);
  return address;
}

std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() ? std::optional(port) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

Expected<SetEntry> parse_ports(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = port_of(trimmed(text.substr(0, dash)));
  const auto last = dash == std::string_view::npos ? first : port_of(trimmed(text.substr(dash + 1)));
  if (first && last && *first <= *last) return SetEntry{0, *first, *last};
  return make_error("a port from 0 to 65535 or a range of them, the lower first, such as 443 or 1024-65535");
}

Expected<SetEntry> parse_addresses(std::string_view text) {
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto first = packet::IpAddress::parse(trimmed(text.substr(0, dash)));
    const auto last = packet::IpAddress::parse(trimmed(text.substr(dash + 1)));
    if (first && last && first->family == last->family && *first <= *last) {
      return SetEntry{first->family, number_of(*first), number_of(*last)};
    }
    return make_error("a range is two addresses of one family, the lower first, such as 192.0.2.1-192.0.2.9");
  }
  const auto prefix = packet::IpPrefix::parse(text);
  if (!prefix) return tl::unexpected(prefix.error());
  const Interval interval = interval_of(*prefix, prefix->address.family);
  return SetEntry{prefix->address.family, interval.first, interval.last};
}

// The entries of one section, in any order.
std::vector<SetEntry> read_entries(Settings& section, SetType type) {
  std::vector<SetEntry> entries;
  for (const std::string& text : section.values("entries")) {
    const auto entry = parse_set_entry(type, text);
    if (entry) {
      entries.push_back(*entry);
    } else {
      section.error("entries", "\"" + text + "\": " + entry.error().message);
    }
  }
  return entries;
}

// What of a line is entries: without a comment, as lists of others have it with ';', too, and with no blanks within a
// range.
std::string entries_of(std::string_view line) {
  std::string text(line.substr(0, line.find_first_of("#;")));
  const auto is_blank = [&](std::size_t at) { return at < text.size() && (text[at] == ' ' || text[at] == '\t'); };
  for (std::size_t at = text.find('-'); at != std::string::npos; at = text.find('-', at + 1)) {
    while (is_blank(at + 1)) text.erase(at + 1, 1);
    for (; at > 0 && is_blank(at - 1); --at) text.erase(at - 1, 1);
  }
  return text;
}

}  // namespace

std::string_view name_of(SetType type) {
  return type == SetType::addresses ? "addresses" : "ports";
}

std::string SetEntry::str() const {
  if (family == 0) {
    const auto text = [](Number port) { return std::to_string(static_cast<std::uint16_t>(port)); };
    return first == last ? text(first) : text(first) + "-" + text(last);
  }
  if (first == last) return address_of(family, first).str();
  const auto prefixes = prefixes_of(*this);
  return prefixes.size() == 1 ? prefixes.front().str()
                              : address_of(family, first).str() + "-" + address_of(family, last).str();
}

Expected<SetEntry> parse_set_entry(SetType type, std::string_view text) {
  return type == SetType::ports ? parse_ports(trimmed(text)) : parse_addresses(trimmed(text));
}

bool is_good_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), good);
}

void tidy(std::vector<SetEntry>& entries) {
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
}

Expected<std::vector<SetEntry>> read_set_file(const std::string& path, SetType type) {
  const auto text = read_regular_file(path, largest_set_text);
  if (!text) return tl::unexpected(text.error());
  return read_set_text(*text, path, type);
}

Expected<std::vector<SetEntry>> read_set_text(std::string_view text, const std::string& name, SetType type) {
  std::vector<SetEntry> entries;
  LineMistakes mistakes(name);
  constexpr std::string_view between = " \t\r,", byte_order_mark = "\xEF\xBB\xBF";
  unsigned number = 1;
  for (std::size_t at = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = entries_of(text.substr(at, end - at));
    at = end + 1;
    for (std::size_t first = 0; (first = line.find_first_not_of(between, first)) != std::string_view::npos;) {
      const std::size_t last = std::min(line.find_first_of(between, first), line.size());
      const std::string_view word = std::string_view(line).substr(first, last - first);
      const auto entry = parse_set_entry(type, word);
      if (entry) {
        entries.push_back(*entry);
      } else {
        mistakes.add(number, "\"" + printable(word) + "\": " + entry.error().message);
      }
      first = last;
    }
    if (entries.size() > most_set_entries) {
      mistakes.add(number, "more than " + std::to_string(most_set_entries) + " entries");
      break;
    }
  }
  if (auto ok = mistakes.result(); !ok) return tl::unexpected(ok.error());
  return entries;
}

namespace {

struct SetReading {
  NamedSet set;
  const std::vector<NamedSet>* others = nullptr;  // that are there already
};

void read_name(Settings& section, SetReading& to) {
  const std::string& name = to.set.name = section.required_text("name");
  if (!name.empty() && !is_good_name(name)) section.error("name", "allowed is " + std::string(good_name_text));
  if (std::ranges::find(*to.others, name, &NamedSet::name) != to.others->end()) {
    section.error("name", "there is a set of this name already");
  }
}

void read_file(Settings& section, SetReading& to) {
  NamedSet& set = to.set;
  set.file = section.text("file", "");
  if (set.file.empty()) return;
  if (auto more = read_set_file(set.file, set.type)) {
    set.entries.insert(set.entries.end(), more->begin(), more->end());
  } else {
    std::istringstream lines(more.error().message);
    for (std::string line; std::getline(lines, line);) section.error("file", line);
  }
}

// What entries are depends on the type, and those of the file come behind.
const std::vector<Option<SetReading>>& set_settings() {
  static const std::vector<Option<SetReading>> all = option::all_reloadable<SetReading>(
      {Option<SetReading>{"name", "what rules call it, with `@` in front", read_name,
                          [](const SetReading& of) { return option::literal(of.set.name); }}
           .takes(std::string(good_name_text))
           .by_default(option::required),
       option::word<SetReading>(
           "type", [](auto& all) -> auto& { return all.set.type; },
           {{"addresses", SetType::addresses}, {"ports", SetType::ports}}, "what its entries are"),
       Option<SetReading>{
           "entries",
           "IPv4 and IPv6 addresses, both families in one set; or ports",
           [](Settings& section, SetReading& to) { to.set.entries = read_entries(section, to.set.type); },
           {}}
           .takes("list such as `[\"192.0.2.0/24\", \"192.0.2.1-192.0.2.9\"]` or `[80, \"8000-8100\"]`")
           .by_default("none"),
       Option<SetReading>{"file",
                          "a file of more entries: one a line, or several with blanks or commas between; `#` or `;` "
                          "begins a comment. Read at start and at a reload; up to 1,000,000",
                          read_file, [](const SetReading& of) { return option::literal(of.set.file); }}
           .takes("path")});
  return all;
}

}  // namespace

OptionSection set_section(std::string title) {
  return option::section(std::move(title), set_settings(), "A named set of addresses or ports, for rules.");
}

void read_sets(Settings& acl, std::vector<NamedSet>& sets) {
  for (Settings& section : acl.sections("set")) {
    SetReading reading{{}, &sets};
    option::read(set_settings(), section, reading);
    tidy(reading.set.entries);
    section.finish();
    sets.push_back(std::move(reading.set));
  }
}

std::vector<packet::IpPrefix> prefixes_of(const SetEntry& addresses) {
  const unsigned bits = addresses.family == 4 ? 32 : 128;
  std::vector<packet::IpPrefix> prefixes;
  for (Number first = addresses.first;;) {
    // The largest block that begins here and does not go beyond the end.
    unsigned below = 0;
    while (below < bits) {
      const Number size_less_one = below + 1 == 128 ? ~Number{0} : (Number{1} << (below + 1)) - 1;
      if ((first & size_less_one) != 0 || size_less_one > addresses.last - first) break;
      ++below;
    }
    prefixes.push_back(packet::IpPrefix::of(address_of(addresses.family, first), bits - below));
    const Number last = first + (below == 128 ? ~Number{0} : (Number{1} << below) - 1);
    if (last >= addresses.last) return prefixes;
    first = last + 1;
  }
}

}  // namespace sluice::lookup::acl
