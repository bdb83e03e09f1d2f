// The chains that `bench choice` puts on cores, on a GPU and on whichever is better, that `bench loss` takes the GPU
// from, and that `bench changes` changes while they run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/rig.h"

namespace sluice::cli::bench {

// A gateway that runs, for the time of its measurements.
class ChoiceRun {
 public:
  virtual ~ChoiceRun() = default;
  virtual Rig& rig() = 0;
  // Once more what the chain's `changes` are (live_changes.h), while it runs; one thread at a time. What becomes of a
  // frame stays the same. An Error: it is as before.
  virtual Expected<void> change() = 0;
  // Ends it. An Error when counters do not add up, or frames that were right were dropped. Not behind change(), by
  // which SAs are gone with what they had counted.
  virtual Expected<void> finish() = 0;
};

struct ChoiceChain {
  std::string name;     // "acl + route"
  std::string traffic;  // "64 B"
  std::string changes;  // "reloads", what change() makes
  // On "cpu", "cuda:N" or "auto", with as many lanes on each. `change`: the last one of the gateway; it may be empty.
  std::function<Expected<std::unique_ptr<ChoiceRun>>(const std::string& device, const RigChange& change)> run;
};

// Those that --only names, by parts of their names; else all. What they stand on lives as long as this object does.
class ChoiceBeds {
 public:
  // The EAL runs. `ceiling`: GB/s of the link, for the sizes of queues; 0: there is no GPU.
  static Expected<std::unique_ptr<ChoiceBeds>> make(const BenchOptions& options, double ceiling);
  virtual ~ChoiceBeds() = default;
  virtual std::vector<ChoiceChain> chains() = 0;

  // Of those that `only` names, or of all: before anything is loaded. None when one of its names is no chain's.
  static std::vector<std::string> names(const std::string& only);
};

}  // namespace sluice::cli::bench
