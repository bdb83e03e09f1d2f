// Rules and sets of the element "acl" as the API has them (docs/api.md): the gateway writes these, `sluice ctl acl`
// reads them. In JSON fields have the members' names; one that is absent keeps its default.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sluice::function {

// A rule, and the frames that it decided.
struct AclRow {
  std::uint64_t number = 0;  // its place in match order, from 1; 0: frames that no rule matches
  std::string action, match;
  std::uint64_t frames = 0, bytes = 0;
  std::string name = {}, comment = {};
};

struct AclTable {
  std::vector<AclRow> rules;  // the first ones, as many as were asked for
  std::uint64_t count = 0;    // how many there are
  AclRow unmatched;
};

// A named set.
struct AclSetRow {
  std::string name, type;
  std::uint64_t entries = 0, rules = 0;  // how many it has; how many ask for it
  bool changed = false;                  // otherwise than as configured
  std::string file = {};                 // that entries were read from
  std::vector<std::string> first = {};   // the first entries, as many as were asked for
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(AclRow, number, action, match, frames, bytes, name, comment)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(AclTable, rules, count, unmatched)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(AclSetRow, name, type, entries, rules, changed, file, first)

// For people.
std::string acl_report(const AclTable& table);
std::string acl_sets_report(const std::vector<AclSetRow>& sets);

}  // namespace sluice::function
