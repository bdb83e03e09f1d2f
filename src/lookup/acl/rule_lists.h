// Lists of rules in order that grow at their ends, each stored once: a list is the list before it and one more rule.
// Steps in building tables (tables.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lookup/acl/acl_rule.h"

namespace sluice::lookup::acl {

class RuleLists {
 public:
  using Id = std::uint32_t;
  static constexpr Id empty = 0;

  explicit RuleLists(std::span<const AclRule> rules) : rules_(rules) {}

  // `list` with `rule` behind it, or `list` itself where nothing of the rule's ports, protocol, flags and tags is left
  // for it. Rules must come in ascending order: all calls for one, then all for the next.
  Id append(Id list, RuleIndex rule);

  std::uint32_t length(Id list) const { return nodes_[list].length; }
  // First rule first.
  std::vector<RuleIndex> rules(Id list) const;
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    Id before = empty;
    RuleIndex rule = no_match;
    std::uint32_t length = 0;
    bool complete = false;          // its last rule matches all ports, protocols, flags and tags
    RuleIndex appended = no_match;  // the last rule that append() was asked for, and its answer
    Id answer = empty;
  };
  bool hidden(Id list, const AclRule& rule) const;

  std::span<const AclRule> rules_;
  std::vector<Node> nodes_{Node{}};
};

// Whether `a` wants nothing of ports, protocol, flags and tags that `b` does not want, too.
bool contains_rest(const AclRule& a, const AclRule& b);

}  // namespace sluice::lookup::acl
