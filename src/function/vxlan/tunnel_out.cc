#include "function/vxlan/tunnel_out.h"

#include <rte_mbuf.h>

#include <algorithm>

#include "packet/vxlan.h"

namespace sluice::function {

using packet::Reason;

Reason why_not(const Remote& remote, const rte_mbuf& frame) {
  if (!remote.resolved) return vxlan_unresolved;
  const bool fits = rte_pktmbuf_pkt_len(&frame) <= remote.most && rte_pktmbuf_headroom(&frame) >= remote.front.bytes();
  return fits ? packet::no_reason : vxlan_too_long;
}

namespace {

struct Inner {
  std::uint8_t* frame;
  std::uint32_t length;
  packet::InnerIp ip;
  std::uint16_t source_port;

  explicit Inner(rte_mbuf& buffer)
      : frame(rte_pktmbuf_mtod(&buffer, std::uint8_t*)),
        length(rte_pktmbuf_pkt_len(&buffer)),
        ip(packet::inner_ip(frame, length)),
        source_port(packet::vxlan_source_port(frame, length)) {}
};

// Puts the headers on; the frame has the capacity.
void wrap(rte_mbuf& buffer, const Inner& inner, const Remote& remote, std::uint16_t ip_id) {
  rte_pktmbuf_prepend(&buffer, static_cast<std::uint16_t>(remote.front.bytes()));
  remote.front.write(inner.frame, inner.length, inner.ip, inner.source_port, ip_id);
}

void count(const Inner& inner, TunnelOut& state) {
  state.frames.add(1);
  state.bytes.add(inner.length);
}

void send(const Inner& inner, const Remote& remote, rte_mbuf* frame, TunnelOut& state, engine::Emitter& out) {
  wrap(*frame, inner, remote, state.ip_id++);
  count(inner, state);
  out.transmit(frame, rte_pktmbuf_pkt_len(frame), remote.port);
}

}  // namespace

void send_into_tunnel(const Remote& remote, rte_mbuf* frame, TunnelOut& state, engine::Emitter& out) {
  send(Inner(*frame), remote, frame, state, out);
}

// The frame itself goes to the last of the remotes that can have it.
Flooded flood_into_tunnel(std::span<const Remote> remotes, rte_mbuf* frame, TunnelOut& state, engine::Emitter& out) {
  Flooded outcome{vxlan_no_remote, ~0U};
  const Remote* last = nullptr;
  unsigned lost = 0;
  const Inner inner(*frame);
  const auto send_copy = [&](const Remote& remote) {
    wrap(*frame, inner, remote, state.ip_id++);
    if (out.clone(frame, remote.port)) {
      count(inner, state);
      state.flooded.add(1);
    } else {
      ++lost;
    }
    rte_pktmbuf_adj(frame, static_cast<std::uint16_t>(remote.front.bytes()));
  };
  for (const Remote& remote : remotes) {
    if (const Reason why = why_not(remote, *frame); why != packet::no_reason) {
      outcome.reason = why;
      if (why == vxlan_too_long) outcome.least = std::min(outcome.least, remote.most);
      ++lost;
      continue;
    }
    if (last != nullptr) send_copy(*last);
    last = &remote;
  }
  if (last == nullptr) return outcome;
  state.copies_lost.add(lost);
  state.flooded.add(1);
  send(inner, *last, frame, state, out);
  return {};
}

}  // namespace sluice::function
