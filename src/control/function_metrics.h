// The metrics of a chain's functions (engine/traits.h, Metrics; engine/service.h), for everything that shows them.
//
// Those of plug-ins are of other people's making: one whose name is none, or whose name does not begin with its
// function's, is left out, and a metrics() that throws is taken for one without metrics. The log says so once.
//
// Thread-safety: any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/snapshot.h"
#include "engine/pipeline.h"

namespace sluice::control {

// Of the prepared elements of the functions in `chain`, in order: an Error names the first metric that would be left
// out, its function and its file. Before lanes start.
Expected<void> check_metrics(const engine::Pipeline& pipeline, std::span<const std::string> chain);

// What elements count, in the order of the chain.
std::vector<MetricSnapshot> element_metrics(const engine::Pipeline& pipeline, std::span<const std::string> chain);
// What their services count.
std::vector<MetricSnapshot> service_metrics(const engine::Pipeline& pipeline, std::span<const std::string> chain);

// A warning in the log, the first time that one is said about this.
void warn_once(const std::string& line, const std::string& about);

}  // namespace sluice::control
