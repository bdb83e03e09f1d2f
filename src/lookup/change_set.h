// Changes of a trie on their way to a mirror: runs of slots with their new values, in memory that a GPU reads.
// A plain header, for host and device code.
#pragma once

#include <cstdint>

namespace sluice::lookup {

struct Run {
  std::uint32_t slot;  // the first
  std::uint32_t count;
  std::uint32_t value;  // of every slot, or where the run's values begin in ChangeSet::values
  std::uint32_t fill;   // 1: one value for all, 0: values of their own
};

// Runs [0, born) fill new blocks, which no reader can reach yet; runs [born, runs) change slots that readers use. A
// mirror applies the first kind, and only when all of it is visible the second; within a kind in any order, each slot
// by one store.
struct ChangeSet {
  Run* run = nullptr;
  std::uint32_t* values = nullptr;
  std::uint32_t run_capacity = 0;
  std::uint32_t value_capacity = 0;

  std::uint32_t born = 0;
  std::uint32_t runs = 0;
  std::uint32_t values_used = 0;
  std::uint64_t slots = 0;  // that the runs write
  bool complete = false;    // nothing was left to send
};

}  // namespace sluice::lookup
