#include "control/api_queries.h"

#include "engine/api.h"

namespace sluice::control {
Expected<RouteQuery> read_query(const httplib::Request& request) {
  RouteQuery query;
  for (const auto& [key, value] : request.params) {
    if (key == "prefix") {
      const auto prefix = packet::IpPrefix::parse(value);
      if (!prefix) return make_error("prefix=" + value + ": " + prefix.error().message);
      query.prefix = *prefix;
    } else if (key == "limit") {
      const auto limit = engine::read_limit(value);
      if (!limit) return tl::unexpected(limit.error());
      query.limit = *limit;
    } else {
      return engine::unknown_parameter(key, {"prefix", "limit"});
    }
  }
  return query;
}

}  // namespace sluice::control
