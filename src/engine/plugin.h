// What a shared object exports to be a plug-in of Sluice: elements from outside the tree. In one of its sources:
//
//   #include <sluice/plugin.h>
//   SLUICE_PLUGIN("sampler", "1.0", [] { return std::vector<sluice::engine::ElementType>{{.name = "sampler", ...}}; })
//
// [plugins] load in the configuration names the file. docs/write-an-element.md leads through one.
//
// A plug-in is C++ against these headers, so it fits the program that was built with the very same ones:
// SLUICE_CONTRACT is a number of theirs. The program looks for it in the file before it runs any of its code, and
// refuses one of another version.
//
// What it registers at its load, reasons (packet/reason.h), is there while it is in use. A plug-in that was taken stays
// until the program ends.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/contract.h"
#include "engine/element.h"

namespace sluice::engine {

// Nothing is ever taken out of it or moved in it.
struct Plugin {
  const char* contract;  // SLUICE_CONTRACT_MARK
  const char* name;      // snake_case
  const char* version;   // its own
  // Once, on the control thread. Throws nothing.
  std::vector<ElementType> (*elements)();
};

}  // namespace sluice::engine

// "sluice-contract:NUMBER:VERSION;", found in the file.
#define SLUICE_CONTRACT_MARK "sluice-contract:" SLUICE_CONTRACT ":" SLUICE_CONTRACT_VERSION ";"

// The third argument: what Plugin::elements calls, a lambda without captures or a function.
#define SLUICE_PLUGIN(plugin_name, plugin_version, ...)                                              \
  static std::vector<::sluice::engine::ElementType> sluice_plugin_elements() {                       \
    return (__VA_ARGS__)();                                                                          \
  }                                                                                                  \
  extern "C" {                                                                                       \
  extern __attribute__((visibility("default"))) const ::sluice::engine::Plugin sluice_plugin;        \
  }                                                                                                  \
  const ::sluice::engine::Plugin sluice_plugin = {SLUICE_CONTRACT_MARK, plugin_name, plugin_version, \
                                                  sluice_plugin_elements};
