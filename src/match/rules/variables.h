// Variables of rule headers ($HOME_NET, $HTTP_PORTS) and the address and port texts that use them.
//
// A variable's text is that of a rule: an address, a port or a group of them, with other variables in it; what it means
// is decided where it is used. Thread-safety: none while it is changed.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "match/rules/address_set.h"
#include "match/rules/port_set.h"

namespace sluice::match {

class Variables {
 public:
  // Those of the usual snort.conf and suricata.yaml. HOME_NET and EXTERNAL_NET are `any` (snort.conf): no rule fails to
  // see traffic because nobody set them. docs/rules.md lists all.
  static Variables defaults();
  // A map of names to texts, over the defaults. An Error names the variable.
  static Expected<Variables> from_map(const std::map<std::string, std::string>& texts);

  // A name without its $, of letters, digits and _. The text must be neither empty nor longer than 64 KiB.
  Expected<void> set(std::string_view name, std::string_view text);
  // The same for whoever runs the rules, whose word stands before that of their files: from now on set() checks what it
  // is given for this name, and changes nothing.
  Expected<void> fix(std::string_view name, std::string_view text);
  const std::set<std::string, std::less<>>& fixed() const { return fixed_; }
  // nullptr: there is none.
  const std::string* find(std::string_view name) const;

  // A group's members that are not negated are united, then those that are negated are taken out; a group of negated
  // members only is everything but those. Errors: an unknown variable, one that contains itself, a text that is no
  // address (port), and a set that is empty.
  Expected<AddressSet> addresses(std::string_view text) const;
  Expected<PortSet> ports(std::string_view text) const;

 private:
  std::map<std::string, std::string, std::less<>> texts_;
  std::set<std::string, std::less<>> fixed_;
};

}  // namespace sluice::match
