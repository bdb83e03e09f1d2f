// The trait of an element that does work besides the packet path: threads and sockets of its own, periodic work.
//
// Thread-safety: metrics() and troubles() are called by any thread at any time; all else by the control thread.
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
  std::vector<std::string> twins;        // the twin's interface, by index of the port; empty: the port has none
  std::chrono::nanoseconds deadline{0};  // the engine's
  StreamAdmission* admission = nullptr;  // outlives the element; null: there is no [profile]
};

// As Metric (traits.h), but with texts that are made while the program runs.
struct ServiceMetric {
  std::string name, text;
  std::uint64_t value = 0;
  bool counts = true;
};

class Service {
 public:
  static constexpr std::string_view trait_name = "service";
  virtual ~Service() = default;
  // Called when all elements are prepared and the kernel's tables are mirrored, before lanes start and the API answers.
  // An Error ends the start; the element then leaves nothing open.
  virtual Expected<void> open(const ServicePlan& plan) = 0;
  // Called while lanes still run. It may be called twice, and without open().
  virtual void close() = 0;
  // Called about once a second between open() and close().
  virtual void tick(std::chrono::steady_clock::time_point /*now*/) {}
  virtual std::vector<ServiceMetric> metrics() const { return {}; }
  // What keeps the element from its work, as SelfCheck (self_check.h).
  virtual std::vector<Trouble> troubles() const { return {}; }
  // The kernel's routing tables that the element itself writes to.
  virtual std::vector<std::uint32_t> kernel_tables() const { return {}; }
};

}  // namespace sluice::engine
