#include "bench/leaving_frames.h"

#include <rte_mbuf.h>
#include <spdlog/fmt/fmt.h>

#include <string>
#include <utility>

#include "bench/router_rig.h"

namespace sluice::cli::bench {

Expected<std::unique_ptr<LeavingFrames>> LeavingFrames::watch(Rig& rig, const RigOptions& options,
                                                              const RouteReference& reference, unsigned refresh,
                                                              const Tamper& tamper) {
  std::vector<Mac> ports;
  for (unsigned port = 0; port < options.ports; ++port) ports.push_back(rig.engine().port(port).replay()->mac().bytes);
  std::unique_ptr<LeavingFrames> leaving(new LeavingFrames(FrameCheck(std::move(ports), refresh), tamper));
  if (auto added = leaving->add_wires(rig, options, reference); !added) return tl::unexpected(added.error());
  leaving->observe(rig, options);
  return leaving;
}

Expected<void> LeavingFrames::add_wires(Rig& rig, const RigOptions& options, const RouteReference& reference) {
  const unsigned destination_at = 14 + (options.family == 4 ? 16 : 24);
  for (unsigned port = 0; port < options.ports; ++port) {
    port::ReplayPort& replay = *rig.engine().port(port).replay();
    for (unsigned queue = 0; queue < options.lanes; ++queue) {
      first_of_[replay.pool(static_cast<std::uint16_t>(queue))] = wires_.size();
      for (unsigned index = 0; index < options.frames; ++index) {
        Wire wire;
        wire.pristine = &replay.pristine(static_cast<std::uint16_t>(queue), index);
        const auto* gateways =
            reference.find(RouteReference::Address::of(options.family, wire.pristine->data() + destination_at));
        if (gateways == nullptr) {
          return make_error("the file has no route for a frame's destination, not even a default one");
        }
        for (const std::uint8_t g : *gateways) {
          wire.hops.push_back({RouterTable::port_of(g, options.ports), RouterTable::mac_of(g).bytes});
        }
        wires_.push_back(std::move(wire));
      }
    }
  }
  return {};
}

void LeavingFrames::observe(Rig& rig, const RigOptions& options) {
  for (unsigned port = 0; port < options.ports; ++port) {
    // Each queue's frames are one lane's: no two threads meet at a wire.
    rig.engine().port(port).replay()->observe([this, port](const rte_mbuf* frame) {
      Wire& wire = wires_[first_of_.find(frame->pool)->second + port::ReplayPort::frame_index(frame)];
      auto left_by = static_cast<std::uint16_t>(port);
      auto* data = rte_pktmbuf_mtod(frame, std::uint8_t*);
      if (tamper_) tamper_(left_by, data);
      const Fault fault = check_.check(wire, left_by, data, rte_pktmbuf_data_len(frame));
      with_[static_cast<unsigned>(fault)].fetch_add(1, std::memory_order_relaxed);
      ecmp_.fetch_add(wire.hops.size() > 1 ? 1 : 0, std::memory_order_relaxed);
      frames_.fetch_add(1, std::memory_order_relaxed);
    });
  }
}

Expected<void> LeavingFrames::judge() const {
  std::string wrong;
  for (unsigned i = 1; i < faults; ++i) {
    if (const std::uint64_t count = with_[i].load(); count != 0) {
      wrong += fmt::format("{}{} with {}", wrong.empty() ? "" : ", ", count, fault_text(static_cast<Fault>(i)));
    }
  }
  return wrong.empty() ? Expected<void>{} : make_error(fmt::format("of {} frames left {}", frames_.load(), wrong));
}

}  // namespace sluice::cli::bench
