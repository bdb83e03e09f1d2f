// Named sets of addresses or of ports, for rules: `source = "@blocked"`. As a configuration writes them:
//
//     [[acl.set]]
//     name    = "blocked"
//     type    = "addresses"                 # or "ports"; default "addresses"
//     entries = ["192.0.2.0/24", "198.51.100.1-198.51.100.9", "2001:db8::/32"]
//     file    = "blocked.txt"               # more: one a line, or several with blanks or commas between;
//                                           # a comment begins with # or ;
//
// An entry is an address, a prefix or a range of addresses (both families in one set), or a port or a range of ports.
//
// Plain values. Mistakes go to the Settings' Diagnostics; those of a file have its name and line. Thread-safety: none
// (control thread). Cost: reading some microseconds a thousand entries; a file has most_set_entries at most.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/option_facts.h"
#include "base/settings.h"
#include "lookup/acl/partition.h"

namespace sluice::lookup::acl {

enum class SetType : std::uint8_t { addresses, ports };
std::string_view name_of(SetType type);

inline constexpr std::size_t most_set_entries = 1'000'000;
// The largest file, and the largest change of the API: space for as many of the longest, which is a range of IPv6 (79
// characters, in JSON 82; 91 with the last four bytes as those of IPv4), a line each.
inline constexpr std::size_t largest_set_text = std::size_t{96} << 20;
static_assert(largest_set_text >= most_set_entries * 96);

// first <= number <= last, of one family.
struct SetEntry {
  std::uint8_t family = 0;  // 4 or 6; 0: ports
  Number first = 0;
  Number last = 0;
  auto operator<=>(const SetEntry&) const = default;

  // As parse_set_entry() takes it: a prefix where it is one.
  std::string str() const;
};
Expected<SetEntry> parse_set_entry(SetType type, std::string_view text);

struct NamedSet {
  std::string name;
  SetType type = SetType::addresses;
  std::vector<SetEntry> entries;  // ascending, each once
  std::string file;               // that some come from; empty: none
};

// Letters, digits, '_', '-' and '.', 1 to 32 of them.
bool is_good_name(std::string_view name);
inline constexpr std::string_view good_name_text = "1 to 32 letters, digits, '_', '-' or '.'";

// Sorts, and leaves each once.
void tidy(std::vector<SetEntry>& entries);

// The entries of a file. The Error has a line for each of the first mistakes, "FILE:LINE: ...".
Expected<std::vector<SetEntry>> read_set_file(const std::string& path, SetType type);
// The same of a text, which the Error calls `name`.
Expected<std::vector<SetEntry>> read_set_text(std::string_view text, const std::string& name, SetType type);

// The sets of an [acl] section, behind those that `sets` has, whose names they may not have.
void read_sets(Settings& acl, std::vector<NamedSet>& sets);
// Their keys; `title` as the file has it.
OptionSection set_section(std::string title);

// The prefixes, ascending, that together are all of first..last; at most 62 of IPv4, 254 of IPv6.
std::vector<packet::IpPrefix> prefixes_of(const SetEntry& addresses);

}  // namespace sluice::lookup::acl
