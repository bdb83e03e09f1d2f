// Every frame that leaves the ports of a router's rig, looked at as it does (frame_check.h), with the next hops that
// RouteReference names for its destination.
//
//   auto leaving = LeavingFrames::watch(**rig, rig_options, reference, rig_options.refresh);  // before the rig starts
//   ...                                                                                       // it runs, and ends
//   if (auto right = (*leaving)->judge(); !right) ...
//
// The rig's router has a link address of its own for each gateway (RouterTable::settings_on_ports).
//
// Thread-safety: counts from any thread. Cost: a copy of nothing, some 50 ns a frame, and 100 B for each that the ports
// come round with.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/error.h"
#include "bench/frame_check.h"
#include "bench/rig.h"
#include "bench/route_reference.h"

struct rte_mempool;

namespace sluice::cli::bench {

class LeavingFrames {
 public:
  // For tests: what is done to a frame and its port just before they are looked at.
  using Tamper = std::function<void(std::uint16_t& port, std::uint8_t* frame)>;

  // `refresh`: as FrameCheck's; 1 where not every frame leaves each time that it has come. Outlives the
  // rig's run. Errors: a destination without a route in `reference`.
  static Expected<std::unique_ptr<LeavingFrames>> watch(Rig& rig, const RigOptions& options,
                                                        const RouteReference& reference, unsigned refresh,
                                                        const Tamper& tamper = {});

  const std::atomic<std::uint64_t>& frames() const { return frames_; }
  // Of these, such as had a choice of next hops.
  std::uint64_t ecmp_frames() const { return ecmp_; }
  // Every frame of every queue of every port, in this order.
  const std::vector<Wire>& wires() const { return wires_; }
  // An Error says how many left with which fault.
  Expected<void> judge() const;

 private:
  LeavingFrames(const FrameCheck& check, const Tamper& tamper) : check_(check), tamper_(tamper) {}
  Expected<void> add_wires(Rig& rig, const RigOptions& options, const RouteReference& reference);
  void observe(Rig& rig, const RigOptions& options);

  const FrameCheck check_;
  const Tamper tamper_;
  std::vector<Wire> wires_;
  std::map<const rte_mempool*, std::size_t> first_of_;  // of a queue's frames, in wires_
  std::atomic<std::uint64_t> frames_{0}, ecmp_{0};
  std::array<std::atomic<std::uint64_t>, faults> with_{};
};

}  // namespace sluice::cli::bench
