// Plug-ins: shared objects that bring elements (engine/plugin.h), named by [plugins] load.
//
// They are loaded while a configuration is read, before its chain is. One that was taken stays: another configuration
// of the process that names it finds its elements there. One that is refused leaves nothing behind.
//
// Thread-safety: the thread that reads configurations, one at a time; first before lanes start. Cost: of dlopen().
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/option.h"

namespace sluice::control {

struct PluginOptions {
  std::vector<std::string> load;  // paths
};
const std::vector<Option<PluginOptions>>& plugin_settings();

// The Error begins with the path. Once loaded, nothing happens for that path.
Expected<void> load_plugin(const std::string& path);

// Reads [plugins] and loads what it names; what is wrong goes to the section. False: one was refused.
bool read_plugins(Settings section, PluginOptions& options);

// From now on none is loaded: lanes run, and what counts by reason has its size.
void close_plugins();

// Of files that were loaded: those that are no longer the ones on the disk, a line each.
std::vector<std::string> plugin_notes();

}  // namespace sluice::control
