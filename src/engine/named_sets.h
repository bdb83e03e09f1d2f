// The trait of an element with named sets of addresses or ports that rules ask for, changed while lanes run.
//
// A change is whole or not at all: every entry is checked first, an Error names the one that cannot be, and frames that
// are collected from the next burst on see all of the change. What is there already is added, and what is not there is
// removed, without a mistake.
//
// Thread-safety: any thread, one call at a time, while lanes run and no reload is at work (the caller sees to both).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::engine {

class NamedSets {
 public:
  static constexpr std::string_view trait_name = "named_sets";
  virtual ~NamedSets() = default;

  struct Entry {
    std::string name;
    std::string type;                  // "addresses" or "ports"
    std::uint64_t count = 0;           // of entries
    std::uint64_t uses = 0;            // rules that ask for it
    bool changed = false;              // otherwise than as configured
    std::string file;                  // that entries were read from; empty: none
    std::vector<std::string> entries;  // the first ones, in ascending order
  };
  // All sets, or the one of that name, which is an Error where there is none; of each the first `limit` entries.
  virtual Expected<std::vector<Entry>> list_sets(std::string_view name, std::uint32_t limit) const = 0;
  // One sentence on what is different now. `entries`: as a set's file writes them.
  virtual Expected<std::string> add_to_set(std::string_view name, const std::vector<std::string>& entries) = 0;
  virtual Expected<std::string> remove_from_set(std::string_view name, const std::vector<std::string>& entries) = 0;
};

}  // namespace sluice::engine
