// The source of `bench ipsec`, in front of the chain: makes what a memory replay port hands out packets that the
// element ipsec protects, or opens, each time anew, whatever they became the time before.
//
//   out  Its headers are written, 42 bytes, to a tunnel that is drawn at random. The payload is what the element has
//        left there.
//   in   A packet that OpenSSL has sealed beforehand is written into it. Long ones that nobody looks at get new ends
//        alone (sealed_packets.h).
//
// While it checks, it keeps what goes in, and looks at all that leaves (ipsec_check.h).
//
// Threads: as of engine::Element; set() and check() at any time. Cost, in `collecting` of the lane: 15 ns a frame
// outbound, and inbound what is copied; own_ns() has what it was.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/ipsec_check.h"
#include "bench/ipsec_tunnels.h"
#include "bench/sealed_packets.h"
#include "engine/element.h"
#include "engine/traits.h"
#include "port/replay_port.h"

namespace sluice::cli::bench {

class IpsecSource final : public engine::Element, public engine::Ingress {
 public:
  // `sealed`: null where nothing goes in. Both outlive it.
  IpsecSource(const IpsecTunnels& tunnels, const SealedPackets* sealed, unsigned lanes, unsigned frames);
  ~IpsecSource() override;

  // Which way frames go from now on; before that, out.
  void set(ipsec::Direction direction) { in_.store(direction == ipsec::Direction::in, std::memory_order_relaxed); }

  // Of a port whose frames these are, before lanes run. It checks from then on.
  void watch(port::ReplayPort& port);
  void check(bool on);
  // Once no frame is under way that came while it checked, so that it costs nothing any more.
  void rest() { watching_.store(false, std::memory_order_relaxed); }
  IpsecCheck& checks() { return check_; }

  // Since the last call, of a frame on a lane's core: what the source itself took.
  double own_ns(double ticks_per_ns);

  void* find_trait(std::string_view name) override { return engine::offer<engine::Ingress>(name, this); }
  void admit(engine::Batch& batch, engine::Span span) override;
  void apply(engine::Batch& /*batch*/, engine::Span /*span*/, engine::Emitter& /*out*/) override {}

 private:
  struct Lane;
  void write_clear(Lane& lane, rte_mbuf& frame);
  void write_sealed(Lane& lane, std::uint32_t lane_index, rte_mbuf& frame, bool whole);
  static void keep(Lane& lane, const rte_mbuf& frame, bool in);

  const IpsecTunnels& tunnels_;
  const SealedPackets* const sealed_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  IpsecCheck check_;
  std::atomic<bool> in_{false}, checking_{false}, watching_{false};
  std::uint64_t seen_ticks_ = 0, seen_frames_ = 0;
};

}  // namespace sluice::cli::bench
