// The trait of an element that forwards by routes: the kernel's routes are mirrored into its table (control_plane.h),
// and the API, the log and the metrics show it.
//
// Thread-safety: any thread, while the function lives and after its prepare().
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "function/route/route_table.h"

namespace sluice::function {

class Routing {
 public:
  static constexpr std::string_view trait_name = "routing";
  virtual ~Routing() = default;
  virtual RouteTable& table() = 0;
  // How many routes of a family (4, 6) the table holds at most.
  virtual std::uint32_t capacity(int family) const = 0;
  // Whether the kernel's routes are wanted in it.
  virtual bool follows_kernel() const = 0;
  // How often they are compared with the kernel's without an occasion; 0: never.
  virtual std::chrono::seconds verify_interval() const = 0;
};

}  // namespace sluice::function
