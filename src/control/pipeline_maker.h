// The pipeline of a configuration's chain, each element made from its section of the file.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "control/config.h"
#include "engine/pipeline.h"
#include "engine/port_table.h"
#include "engine/tables.h"

namespace sluice::control {

// type.make(). Not empty: what is wrong with the function itself, such as a plug-in whose make throws or returns
// nothing, in words with its file; what it has made of the section is worth nothing then. What a built-in one throws
// goes on.
std::string try_make(const engine::ElementType& type, Settings& section, const engine::PortTable& ports,
                     Expected<std::unique_ptr<engine::Element>>& made);

// Everything that is wrong with the sections, unknown keys too, goes into config.diagnostics(); the Error is then those
// lines.
Expected<std::unique_ptr<engine::Pipeline>> make_pipeline(Config& config, const engine::PortTable& ports);

// The same, and with everything that `sluice run` would read later on read and checked now: the files of elements'
// tables as a whole, and whether the tables can fit into the memory. Needs no DPDK. `progress`: asked while a big file
// is read, which it ends by false.
Expected<std::unique_ptr<engine::Pipeline>> make_checked_pipeline(Config& config, const engine::PortTable& ports,
                                                                  const engine::TableProgress& progress = {});

// The ports as the file describes them, before any is opened: enough to check elements' sections.
engine::PortTable described_ports(const engine::Options& options);

// The same ports with the addresses that a changed file has for them: those alone may change while ports are open.
engine::PortTable with_addresses(const engine::PortTable& ports, const engine::Options& changed);

}  // namespace sluice::control
