// Routes of the API: rules with their counters, and named sets.
#include <utility>

#include "base/json_text.h"
#include "engine/counted_rules.h"
#include "engine/named_sets.h"
#include "function/acl/acl_rows.h"
#include "function/acl/acl_type.h"
#include "lookup/acl/named_set.h"

namespace sluice::function {
namespace {

using engine::ApiAnswer;
using engine::ApiRequest;
using engine::bad_request;
using engine::conflict;
using engine::refused;

AclRow row_of(std::uint64_t number, const engine::CountedRule& rule) {
  return {number, rule.action, rule.match, rule.frames, rule.bytes, rule.name, rule.comment};
}

ApiAnswer list_rules(engine::Element& element, const ApiRequest& request) {
  std::uint32_t limit = engine::usual_rows;
  for (const auto& [key, value] : request.parameters) {
    const Expected<std::uint32_t> read =
        key == "limit" ? engine::read_limit(value) : engine::unknown_parameter(key, {"limit"});
    if (!read) return refused(bad_request, read.error().message);
    limit = *read;
  }
  const engine::CountedRules::Listing listing = element.trait<engine::CountedRules>()->list(limit);
  AclTable table;
  for (const engine::CountedRule& rule : listing.rules) table.rules.push_back(row_of(table.rules.size() + 1, rule));
  table.count = listing.count;
  table.unmatched = row_of(0, listing.unmatched);
  return {.text = to_json_text(table)};
}

ApiAnswer list_sets(engine::Element& element, const ApiRequest& request) {
  std::string name;
  std::uint32_t limit = engine::usual_rows;
  for (const auto& [key, value] : request.parameters) {
    if (key == "name") {
      name = value;
      continue;
    }
    const Expected<std::uint32_t> read =
        key == "limit" ? engine::read_limit(value) : engine::unknown_parameter(key, {"name", "limit"});
    if (!read) return refused(bad_request, read.error().message);
    limit = *read;
  }
  auto found = element.trait<engine::NamedSets>()->list_sets(name, limit);
  if (!found) return refused(conflict, found.error().message);
  std::vector<AclSetRow> rows;
  for (auto& one : *found) {
    rows.push_back({std::move(one.name), std::move(one.type), one.count, one.uses, one.changed, std::move(one.file),
                    std::move(one.entries)});
  }
  return {.text = to_json_text(rows)};
}

// {"set": "blocked", "entries": ["192.0.2.1", 443]}
struct SetChange {
  std::string set;
  std::vector<std::string> entries;
};

Expected<SetChange> read_set_change(std::string_view body) {
  nlohmann::json json = nlohmann::json::parse(body, nullptr, false);
  const auto wrong = [] {
    return make_error("the body is {\"set\": \"NAME\", \"entries\": [\"ENTRY\", ...]}, with one entry at least");
  };
  if (!json.is_object() || json.size() != 2 || !json.contains("set") || !json.contains("entries")) return wrong();
  nlohmann::json& entries = json["entries"];
  if (!json["set"].is_string() || !entries.is_array() || entries.empty()) return wrong();
  SetChange change{json["set"].get<std::string>(), {}};
  change.entries.reserve(entries.size());
  for (nlohmann::json& entry : entries) {
    if (entry.is_string()) {
      change.entries.push_back(std::move(entry.get_ref<std::string&>()));
    } else if (entry.is_number_unsigned()) {
      change.entries.push_back(entry.dump());
    } else {
      return wrong();
    }
  }
  return change;
}

using Make = Expected<std::string> (engine::NamedSets::*)(std::string_view, const std::vector<std::string>&);

ApiAnswer change_set(engine::Element& element, const ApiRequest& request, Make make) {
  const auto wanted = read_set_change(request.body);
  if (!wanted) return refused(bad_request, wanted.error().message);
  const auto done = (element.trait<engine::NamedSets>()->*make)(wanted->set, wanted->entries);
  if (!done) return refused(conflict, done.error().message);
  return {.text = to_json_text(nlohmann::json{{"done", *done}})};
}

engine::ApiRoute changes_set(const char* path, Make make) {
  return {.path = path,
          .change = true,
          .what = "sets of ACL rules",
          .answer = [make](auto& element, const auto& request) { return change_set(element, request, make); },
          .largest_body = lookup::acl::largest_set_text,
          .waits_for_reload = true};
}

}  // namespace

const std::vector<engine::ApiRoute>& acl_routes() {
  // A set's change is one request, whole or not at all, and a set may have a million entries.
  static const std::vector<engine::ApiRoute> all = {
      {.path = "", .what = "ACL rules", .answer = list_rules},
      {.path = "/sets", .what = "sets of ACL rules", .answer = list_sets},
      changes_set("/sets/add", &engine::NamedSets::add_to_set),
      changes_set("/sets/remove", &engine::NamedSets::remove_from_set),
  };
  return all;
}

}  // namespace sluice::function
