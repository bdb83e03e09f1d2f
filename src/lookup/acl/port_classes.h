// Classes of (source port, destination port, protocol and flags): two such are of one class when the same of the given
// rules match them. Steps in building tables (tables.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "lookup/acl/acl_rule.h"

namespace sluice::lookup::acl {

struct PortClasses {
  // An Error when the cross-product tables would have more than `max_entries`, or take too long.
  static Expected<PortClasses> make(std::span<const AclRule> rules, std::span<const RuleIndex> of,
                                    std::size_t max_entries);

  std::vector<std::uint32_t> source_ports;       // class of each port
  std::vector<std::uint32_t> destination_ports;  // class of each port
  std::vector<std::uint32_t> protocol_flags;     // class of each protocol << 8 | flags
  std::uint32_t destination_port_classes = 0;
  std::uint32_t protocol_classes = 0;
  std::vector<std::uint32_t> pairs;    // class of a source port class * destination_port_classes + that of the other
  std::vector<std::uint32_t> classes;  // class of a pair class * protocol_classes + that of protocol and flags
  std::uint32_t count = 0;

  // By place in `of`: the classes that the rule matches.
  std::vector<std::vector<std::uint32_t>> covered;
};

}  // namespace sluice::lookup::acl
