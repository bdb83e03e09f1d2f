// Whether the router's frames leave as they must (leaving_frames.h), in a run of its own before anything is measured.
// It is on two replay ports, with a link address of its own for each of the 254 gateways and with ECMP routes among the
// table's, the next hops taken from RouteReference.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/leaving_frames.h"
#include "bench/route_reference.h"
#include "bench/router_rig.h"

namespace sluice::cli::bench {

class FrameVerifier {
 public:
  // Reads the table's file. Takes a second or two for a full one.
  static Expected<FrameVerifier> make(const RouterTable& table);

  struct Verified {
    std::uint64_t frames = 0;        // that left, each looked at
    std::uint64_t ecmp_frames = 0;   // of these, such as had a choice of next hops
    unsigned flows = 0, slowly = 0;  // flows; those whose next hop was also found by looking at every route
  };
  using Tamper = LeavingFrames::Tamper;

  // At least `frames` frames of the family through the device. An Error says how many left with which fault.
  Expected<Verified> verify(const BenchOptions& options, int family, const std::string& device, std::uint64_t frames,
                            const Tamper& tamper = {}) const;

 private:
  struct EcmpRoute {
    std::string prefix;
    RouteReference::Gateways gateways;
  };
  explicit FrameVerifier(const RouterTable& table) : table_(&table) {}
  Expected<void> add_ecmp(Rig& rig) const;
  Expected<unsigned> check_reference(const std::vector<Wire>& wires) const;

  const RouterTable* table_;
  RouteReference reference_;
  std::vector<EcmpRoute> ecmp_;
};

}  // namespace sluice::cli::bench
