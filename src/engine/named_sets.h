// The trait of an element with named sets of addresses or ports that rules use. The sets can change while lanes run.
//
// A change is made completely or not at all. Every entry is checked first; an Error names the wrong one. All bursts
// that are received after the change see all of it. It is no mistake to add an entry that is there, or to remove one
// that is not.
//
// Thread-safety: any thread, while lanes run. The caller ensures one call at a time, and no reload meanwhile.
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
    std::uint64_t count = 0;           // number of entries
    std::uint64_t uses = 0;            // number of rules that use it
    bool changed = false;              // it differs from the configuration
    std::string file;                  // the file that entries were read from; empty: none
    std::vector<std::string> entries;  // the first ones, in ascending order
  };
  // All sets (`name` empty), or the one of that name, with the first `limit` entries of each. An Error: no such set.
  virtual Expected<std::vector<Entry>> list_sets(std::string_view name, std::uint32_t limit) const = 0;
  // Return a sentence on what has changed. `entries`: as in the file of a set.
  virtual Expected<std::string> add_to_set(std::string_view name, const std::vector<std::string>& entries) = 0;
  virtual Expected<std::string> remove_from_set(std::string_view name, const std::vector<std::string>& entries) = 0;
};

}  // namespace sluice::engine
