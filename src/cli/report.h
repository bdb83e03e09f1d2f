// What the API answers, as text for people. Pure functions of their arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/snapshot.h"

namespace sluice::cli {

std::string stats_report(const control::Snapshot& snapshot);
// `label` and why the gateway is degraded, as /healthz says it; empty: it is well.
std::string degraded_line(const control::Snapshot& snapshot, std::string_view label);
// "up", "down" or "deleted".
std::string link_text(const control::PortSnapshot& port);
std::string ports_report(const std::vector<control::PortSnapshot>& ports);
std::string routes_report(const control::RouteTable& table);
std::string neighbours_report(const std::vector<control::NeighbourRow>& neighbours);

class Rates;  // top_rates.h
// What top says of the gateway as a whole, a line each; one fact from the next by three spaces.
std::string top_head(const control::Snapshot& now, const Rates& rates);
// A report of top for pipes and files: rates between two snapshots (`before` null: since start).
std::string top_report(const control::Snapshot& now, const control::Snapshot* before);

}  // namespace sluice::cli
