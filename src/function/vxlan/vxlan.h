// The element "vxlan": a tunnel end (VTEP) of RFC 7348. Each tunnel is the other side of a port of its own, whose
// device is "vxlan": what comes out of the tunnel has come in by that port for all elements behind, and what leaves by
// the port, of elements and of the host, goes into the tunnel. It stands first in its chain.
//
// In: admit() takes frames to a tunnel's address and UDP port, before others look at them: checks them, takes the outer
// headers off, puts outer fragments together, combines the ECN fields (RFC 6040) and learns who is behind which remote.
// A frame that is wrong, of an unknown network or from an unknown remote is dropped under a name.
//
// Out: leave() finds the remote of a frame's destination, configured or learned; a frame for a group or an unknown
// station goes to all of `remotes`, each a copy (head-end replication). The outer frame leaves by the port and to the
// link address that the kernel's routes and neighbours say (next_hops.h). It is never fragmented (RFC 7348
// section 4.3): of what is too long a bridge notifies the sender, as the kernel's device does where it is a bridge's
// port. The ICMP error comes in the name of the packet's destination, for a bridge has no address.
//
// Elements behind see inner frames alone: in batches, and as hooks of the tunnel's port, which they pass before they
// come here (traits.h, TxHook). Outer frames that Sluice makes are in no batch; hooks of the port that they leave by
// see them.
//
// Thread-safety: as of Element. Cost: for a frame in or out its headers and a look at the FDB, and with UDP checksums a
// pass over it; for each frame that is no tunnel's a comparison of types. Settings, [vxlan]: tunnels.h; docs/vxlan.md.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/counters.h"
#include "engine/element.h"
#include "engine/port_table.h"
#include "engine/self_check.h"
#include "engine/traits.h"
#include "engine/view.h"
#include "function/outer_fragments.h"
#include "function/vxlan/tunnel_out.h"
#include "function/vxlan/tunnels.h"
#include "function/vxlan/vxlan_control.h"

namespace sluice::function {

class Vxlan final : public engine::Element,
                    public engine::Ingress,
                    public engine::TxHook,
                    public engine::Metrics,
                    public engine::SelfCheck,
                    public engine::View,
                    public engine::ChainRule {
 public:
  Vxlan(TunnelSettings settings, const engine::PortTable& ports);

  void* find_trait(std::string_view name) override {
    return engine::offer<engine::Ingress, engine::TxHook, engine::Metrics, engine::SelfCheck, engine::View,
                         engine::ChainRule>(name, this);
  }
  Expected<void> prepare(const engine::Plan& plan) override;
  void admit(engine::Batch& batch, engine::Span span) override;
  void apply(engine::Batch& /*batch*/, engine::Span /*span*/, engine::Emitter& /*out*/) override {}
  bool hooks(std::uint16_t port) const override { return is_tunnel_port(ports_[port]); }
  unsigned leave(std::uint32_t lane, std::uint16_t port, rte_mbuf** frames, unsigned count,
                 engine::Emitter& out) override;
  Expected<Change> reload(Element& fresh) override;
  std::vector<engine::Metric> metrics() const override;
  std::vector<engine::Trouble> troubles() const override {
    return control_ ? control_->troubles() : std::vector<engine::Trouble>();
  }
  // Each tunnel: its remotes and the way to them, learned stations, and inner frames since the start.
  std::string view() const override;
  bool check_chain(const engine::Pipeline& pipeline, Settings& section, bool was_right,
                   const std::function<std::string(std::string_view)>& chain_with) const override;

 private:
  // Of one side of a lane: its thread's.
  struct alignas(64) In {
    engine::Counter frames, bytes, fdb_full, moved, pieces;
    OuterFragments fragments;
  };
  struct alignas(64) Out : TunnelOut {
    engine::Counter answered;
    const VxlanView* view = nullptr;  // while leave() is under way, which may call itself
  };
  void take_out(engine::Batch& batch, std::uint32_t i, const VxlanView& view, packet::VxlanView outer, In& in);
  // Whether the frame is a tunnel's, and is dealt with.
  bool take(engine::Batch& batch, std::uint32_t i, const VxlanView& view, In& in);
  bool take_piece(engine::Batch& batch, std::uint32_t i, const VxlanView& view, packet::VxlanView outer, In& in);
  void learn(const TunnelView& tunnel, const Remote& remote, const std::uint8_t* inner, In& in);
  // Drops the frame, for which `most` bytes are too few; a bridge's sender is notified.
  void refuse_size(const TunnelView& tunnel, rte_mbuf* frame, std::uint32_t most, Out& state, engine::Emitter& out);
  void put_in(const TunnelView& tunnel, rte_mbuf* frame, Out& state, engine::Emitter& out);
  void flood(const TunnelView& tunnel, rte_mbuf* frame, Out& state, engine::Emitter& out);
  // Inner frames and bytes by the tunnel's port, which keeps its index. One writer: the thread of a lane's side.
  struct alignas(64) OfPort {
    std::array<engine::Counter, engine::max_ports> frames, bytes;
  };
  // What leave() is at, and how much of the lane's frames it has counted for ports.
  struct OutOfPort : OfPort {
    std::uint16_t now = engine::no_port;
    std::uint64_t counted_frames = 0, counted_bytes = 0;
  };
  // What has left since the last call is the port's that leave() is at; from now on it is `next`'s.
  static void count_for_port(const Out& state, OutOfPort& of_port, std::uint16_t next);
  template <typename Sides>
  static std::uint64_t sum_of(const Sides& sides, std::array<engine::Counter, engine::max_ports> OfPort::*counter,
                              std::uint16_t port) {
    std::uint64_t all = 0;
    for (const auto& side : sides) all += (side.*counter)[port].get();
    return all;
  }
  // Behind those of in_.
  std::size_t out_reader(std::uint32_t lane) const { return in_.size() + lane; }

  const engine::PortTable ports_;
  TunnelSettings read_;  // of a file that is only checked, too
  std::unique_ptr<VxlanControl> control_;
  bool is_routed_ = true;               // another element ends links
  std::vector<In> in_;                  // Ingress::admit_place()
  std::vector<Out> out_;                // by lane
  std::vector<OfPort> in_of_port_;      // as in_
  std::vector<OutOfPort> out_of_port_;  // as out_
};

}  // namespace sluice::function
