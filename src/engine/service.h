// The trait of an element that runs something besides the packet path: threads and sockets of its own, work of every
// second.
//
// Thread-safety: metrics() and troubles() any thread, at any time; all else the control thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/self_check.h"
#include "engine/stream_admission.h"

namespace sluice::engine {

struct ServicePlan {
  std::vector<std::string> twins;        // of all ports, by index; empty: it has none
  std::chrono::nanoseconds deadline{0};  // the engine's
  StreamAdmission* admission = nullptr;  // outlives the element; null: there is no [profile]
};

// As Metric (traits.h), of a name that is made up.
struct ServiceMetric {
  std::string name, text;
  std::uint64_t value = 0;
  bool counts = true;
};

class Service {
 public:
  static constexpr std::string_view trait_name = "service";
  virtual ~Service() = default;
  // When all elements are prepared and the kernel's tables are mirrored, before lanes start and the API answers. An
  // Error ends the start, and nothing is left half-open.
  virtual Expected<void> open(const ServicePlan& plan) = 0;
  // While lanes still run; also of one that was not opened, and twice.
  virtual void close() = 0;
  // About once a second in between.
  virtual void tick(std::chrono::steady_clock::time_point /*now*/) {}
  virtual std::vector<ServiceMetric> metrics() const { return {}; }
  // As SelfCheck (self_check.h).
  virtual std::vector<Trouble> troubles() const { return {}; }
  // Routing tables of the kernel's that it fills itself.
  virtual std::vector<std::uint32_t> kernel_tables() const { return {}; }
};

}  // namespace sluice::engine
