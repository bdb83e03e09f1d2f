// Why a running gateway is less than well: what /healthz, /readyz, /metrics, ctl and top say.
//
// Each cause is one check of the table in health.cc: a name, a sentence for the documentation, and a pure function of
// the snapshot. What only time shows is watched by who can see it, and put into the snapshot. docs/monitoring.md lists
// the names.
//
// Thread-safety: any thread. Cost: a walk over the snapshot.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/snapshot.h"

namespace sluice::control {

// Something that is wrong now.
struct Ailment {
  std::string_view check;  // name of the check that found it
  std::string what;        // "port lan: its twin sl-lan is down"
  std::string remedy;      // "ip link set sl-lan up"; empty: nothing that a user can do at once
};

class Findings {
 public:
  explicit Findings(std::string_view check) : check_(check) {}
  void add(std::string what, std::string remedy = {}) {
    found_.push_back({check_, std::move(what), std::move(remedy)});
  }
  std::vector<Ailment> take() { return std::move(found_); }

 private:
  const std::string_view check_;
  std::vector<Ailment> found_;
};

struct HealthCheck {
  std::string_view name;  // snake_case; a label of /metrics
  std::string_view text;  // when it is found
  void (*look)(const Snapshot&, Findings&);
};

std::span<const HealthCheck> health_checks();

// In the order of the checks.
std::vector<Ailment> find_ailments(const Snapshot& snapshot);

// All of them with what to do, on one line; empty: all is well.
std::string ailments(const Snapshot& snapshot);

}  // namespace sluice::control
