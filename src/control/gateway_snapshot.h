// What the engine and a table of routes know, in the shape of the API (snapshot.h).
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "control/config.h"
#include "control/netlink/mirror.h"
#include "control/snapshot.h"
#include "engine/engine.h"
#include "function/routing.h"

namespace sluice::control {

// Reads the counters until they add up but for `slack` frames a lane, a bounded number of times: lanes run on while
// they are read, and whoever reads may be kept from it between two of them. False: they never did.
bool read_consistent(const std::function<engine::EngineStats()>& read, std::size_t slack, engine::EngineStats& stats);

Snapshot take_snapshot(engine::Engine& engine, const engine::Options& options);

MirrorSnapshot mirror_snapshot(const MirrorStats& stats);

RouteTable list_routes(const function::RouteTable& table, const engine::PortTable& ports, const RouteQuery& query);

// A line for each setting that differs and that only a start can change, to be placed in `wanted`; empty: none.
std::string needs_restart(const Config& running, const Config& wanted);

}  // namespace sluice::control
