// A snapshot in Prometheus' text exposition format, version 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/): names sluice_*, base units (seconds, bytes), counters
// that end in _total, HELP and TYPE once for each family.
#pragma once

#include <string>
#include <string_view>

#include "control/snapshot.h"

namespace sluice::control {

inline constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

std::string metrics_text(const Snapshot& snapshot);

}  // namespace sluice::control
