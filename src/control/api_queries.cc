#include "control/api_queries.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/spelling.h"

namespace sluice::control {
namespace {

constexpr std::uint32_t most_rows = 1'000'000;

Expected<std::uint32_t> read_limit(const std::string& value) {
  std::uint32_t limit = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), limit);
  if (problem != std::errc{} || end != value.data() + value.size() || limit < 1 || limit > most_rows) {
    return make_error("limit=" + value + ": allowed is a number from 1 to " + std::to_string(most_rows));
  }
  return limit;
}

tl::unexpected<Error> unknown_parameter(const std::string& key, const std::vector<std::string>& known) {
  return make_error("unknown parameter \"" + key + "\"" + spelling_hint(key, known));
}

}  // namespace

Expected<RouteQuery> read_query(const httplib::Request& request) {
  RouteQuery query;
  for (const auto& [key, value] : request.params) {
    if (key == "prefix") {
      const auto prefix = packet::IpPrefix::parse(value);
      if (!prefix) return make_error("prefix=" + value + ": " + prefix.error().message);
      query.prefix = *prefix;
    } else if (key == "limit") {
      const auto limit = read_limit(value);
      if (!limit) return tl::unexpected(limit.error());
      query.limit = *limit;
    } else {
      return unknown_parameter(key, {"prefix", "limit"});
    }
  }
  return query;
}

Expected<StreamQuery> read_stream_query(const httplib::Request& request) {
  StreamQuery query;
  for (const auto& [key, value] : request.params) {
    if (key == "address") {
      const auto address = packet::IpAddress::parse(value);
      if (!address) return make_error("address=" + value + ": " + address.error().message);
      query.address = *address;
    } else if (key == "limit") {
      const auto limit = read_limit(value);
      if (!limit) return tl::unexpected(limit.error());
      query.limit = *limit;
    } else {
      return unknown_parameter(key, {"address", "limit"});
    }
  }
  return query;
}

Expected<std::uint32_t> read_rows(const httplib::Request& request) {
  Expected<std::uint32_t> limit = RouteQuery().limit;
  for (const auto& [key, value] : request.params) {
    limit = key == "limit" ? read_limit(value) : unknown_parameter(key, {"limit"});
    if (!limit) break;
  }
  return limit;
}

Expected<SetQuery> read_set_query(const httplib::Request& request) {
  SetQuery query;
  for (const auto& [key, value] : request.params) {
    if (key == "name") {
      query.name = value;
    } else if (key == "limit") {
      const auto limit = read_limit(value);
      if (!limit) return tl::unexpected(limit.error());
      query.limit = *limit;
    } else {
      return unknown_parameter(key, {"name", "limit"});
    }
  }
  return query;
}

Expected<SetChange> read_set_change(const std::string& body) {
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

}  // namespace sluice::control
