// What requests of the API ask for: the parameters of lists, and the bodies of changes of named sets (docs/api.md).
//
// Errors name the parameter and what is allowed. Thread-safety: any thread.
#pragma once

#include <httplib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/api.h"

namespace sluice::control {

struct SetQuery {
  std::string name;
  std::uint32_t limit = RouteQuery().limit;
};

// {"set": "blocked", "entries": ["192.0.2.1", 443]}
struct SetChange {
  std::string set;
  std::vector<std::string> entries;
};

Expected<RouteQuery> read_query(const httplib::Request& request);
Expected<StreamQuery> read_stream_query(const httplib::Request& request);
Expected<SetQuery> read_set_query(const httplib::Request& request);
// How many rows a list without other parameters is to have.
Expected<std::uint32_t> read_rows(const httplib::Request& request);
Expected<SetChange> read_set_change(const std::string& body);

}  // namespace sluice::control
