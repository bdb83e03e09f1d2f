// What the kernel checks before it routes a frame, for rows of a batch that came in by a port where it does. That is
// that the interface whose link address they have is one that routes, and that there is a way back to their IPv4 source
// (rp_filter: ip-sysctl.rst, fib_validate_source() of net/ipv4/fib_frontend.c; RFC 3704).
//
//                    way back: by the interface   by another   by none, blackhole, …   only the kernel knows
//   strict                          fine             dropped        dropped              punted
//   loose                           fine             fine           dropped              fine, or punted
//   loose, no IPv4 address          fine             dropped        dropped              punted
//
// A source that is verified (engine/frame_marks.h) is fine.
//
// A source that is an address of the host, or a broadcast, is punted: the kernel drops it, unless accept_local is set.
// Where it logs martians, it is shown what is dropped here.
//
// Thread-safety: one lane's. Cost: one look-up for each IPv4 frame ; of next hops of a group, in strict mode,
// up to 64 loads.
#pragma once

#include <array>

#include "engine/pipeline.h"
#include "function/route/adjacency.h"
#include "function/route/ingress_table.h"
#include "lookup/fib.h"
#include "packet/parse.h"

namespace sluice::function {

class SourceCheck {
 public:
  // Everything must outlive the check. `any_mac`: all link addresses are the twin's.
  SourceCheck(const IngressTable::Port& port, std::uint64_t own_mac, bool any_mac, const lookup::Fib& fib,
              const AdjacencyTable& adjacencies, const engine::Batch& batch, engine::Span span);

  const IngressTable::Port* port() const { return &port_; }
  // Drops frame `i`, which the router would take, or gives it to the host, where the kernel would.
  void look(engine::Batch& batch, std::uint32_t i, packet::FrameKind kind) const;

 private:
  enum class Verdict : std::uint8_t { fine, refused, kernel_knows };
  Verdict judge(lookup::NextHopId back, PortIndex port, const Ingress& ingress) const;
  bool leaves_by(Adjacency back, PortIndex port) const;

  const IngressTable::Port& port_;
  const std::uint64_t own_mac_;
  const bool any_mac_;
  const AdjacencyTable& adjacencies_;
  const std::uint32_t first_;
  std::array<lookup::NextHopId, engine::most_classified> back_;  // by row, from first_ on; of IPv4
};

}  // namespace sluice::function
