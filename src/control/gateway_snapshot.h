// What the engine and the router know, in the shape of the API (snapshot.h).
#pragma once

#include <string>

#include "control/snapshot.h"
#include "engine/engine.h"
#include "function/route/route_table.h"

namespace sluice::control {

Snapshot take_snapshot(engine::Engine& engine, const engine::Options& options);

RouteTable list_routes(const function::RouteTable& table, const engine::PortTable& ports, const RouteQuery& query);

// Which part of the configuration differs that only a restart can change; empty: none.
std::string needs_restart(const engine::Options& running, const engine::Options& wanted);

}  // namespace sluice::control
