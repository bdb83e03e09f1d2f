// Whether a router's live table, after all its changes, answers as one built from scratch.
#pragma once

#include <cstdint>
#include <map>

#include "base/error.h"
#include "bench/router_rig.h"
#include "function/route/route.h"

namespace sluice::cli::bench {

// The first and the last address of each prefix of `updates` (what was announced last; 0: withdrawn), of as many of the
// file's, and their neighbours, looked up in the live table and in a RouteReference of the file with the updates over
// it. Answers with how many addresses were compared. While nothing changes the table.
Expected<std::uint64_t> verify_table(function::Router& router, const RouterTable& table,
                                     const std::map<packet::IpPrefix, std::uint8_t>& updates);

}  // namespace sluice::cli::bench
