// What a shared object exports to be a plug-in: a file with elements from outside the tree. In one of its sources:
//
//   #include <sluice/plugin.h>
//   SLUICE_PLUGIN("sampler", "1.0", [] { return std::vector<sluice::engine::ElementType>{{.name = "sampler", ...}}; })
//
// [plugins] load in the configuration names the file. docs/write-an-element.md leads through one.
//
// A plug-in fits only a program that was built with the same headers. SLUICE_CONTRACT is a hash of their text. The
// program looks for it in the file before it runs any of the plug-in's code, and refuses a plug-in with another one.
//
// A plug-in registers its reasons for drops (packet/reason.h) when it is loaded. A plug-in that was accepted stays
// loaded until the program ends.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/contract.h"
#include "engine/element.h"

namespace sluice::engine {

// The exported symbol. No member is ever removed or moved.
struct Plugin {
  const char* contract;  // SLUICE_CONTRACT_MARK
  const char* name;      // snake_case
  const char* version;   // of the plug-in
  // Called once, by the control thread. Throws nothing.
  std::vector<ElementType> (*elements)();
};

}  // namespace sluice::engine

// "sluice-contract:NUMBER:VERSION;", found in the file.
#define SLUICE_CONTRACT_MARK "sluice-contract:" SLUICE_CONTRACT ":" SLUICE_CONTRACT_VERSION ";"

// The third argument makes the element types: a function, or a lambda without captures.
#define SLUICE_PLUGIN(plugin_name, plugin_version, ...)                                              \
  static std::vector<::sluice::engine::ElementType> sluice_plugin_elements() {                       \
    return (__VA_ARGS__)();                                                                          \
  }                                                                                                  \
  extern "C" {                                                                                       \
  extern __attribute__((visibility("default"))) const ::sluice::engine::Plugin sluice_plugin;        \
  }                                                                                                  \
  const ::sluice::engine::Plugin sluice_plugin = {SLUICE_CONTRACT_MARK, plugin_name, plugin_version, \
                                                  sluice_plugin_elements};
