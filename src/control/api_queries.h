// What a request of the API asks of the routes (docs/api.md).
//
// Errors name the parameter and what is allowed. Thread-safety: any thread.
#pragma once

#include <httplib.h>

#include "base/error.h"
#include "control/api.h"

namespace sluice::control {

Expected<RouteQuery> read_query(const httplib::Request& request);

}  // namespace sluice::control
