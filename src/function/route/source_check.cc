#include "function/route/source_check.h"

#include <rte_mbuf.h>

#include "engine/frame_marks.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {
const packet::Reason rp_filter = packet::register_reason(
    "rp_filter", "the way back to its IPv4 source is not by this interface (strict), or there is none (loose)");
constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
}  // namespace

SourceCheck::SourceCheck(const IngressTable::Port& port, std::uint64_t own_mac, bool any_mac, const lookup::Fib& fib,
                         const AdjacencyTable& adjacencies, const engine::Batch& batch, engine::Span span)
    : port_(port), own_mac_(own_mac), any_mac_(any_mac), adjacencies_(adjacencies), first_(span.first) {
  if (!port.checks_sources) {
    return;
  }
  std::array<std::uint32_t, engine::most_classified> sources;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    const bool fits = batch.length[i] >= ethernet + sizeof(packet::Ipv4Header);
    sources[i - first_] =
        fits ? packet::be32(packet::header_at<packet::Ipv4Header>(batch.data(i), ethernet).source) : 0;
  }
  fib.lookup4(sources.data(), back_.data(), span.count);
}

void SourceCheck::look(engine::Batch& batch, std::uint32_t i, packet::FrameKind kind) const {
  const std::uint64_t mac = packet::mac_word(batch.data(i));
  const Ingress* const ingress = any_mac_ || mac == own_mac_ ? &port_.twin : port_.find(mac);
  if (ingress == nullptr) {
    return;  // it is the port's no more, since these rows were looked at
  }
  if (!(kind == packet::FrameKind::ipv4 ? ingress->routes_ipv4 : ingress->routes_ipv6)) {
    batch.to_host(i);
    return;
  }
  if (kind != packet::FrameKind::ipv4 || ingress->reverse_path == ReversePath::off) {
    return;
  }
  const std::uint64_t verified = engine::frame_marks().source_verified;
  if (verified != 0 && (batch.mbuf[i]->ol_flags & verified) != 0) {
    return;
  }
  const Verdict verdict = judge(back_[i - first_], batch.row[i].port, *ingress);
  if (verdict == Verdict::fine) {
    return;
  }
  if (verdict == Verdict::kernel_knows || ingress->logs_martians) {
    batch.to_host(i, rp_filter);
  } else {
    batch.drop(i, rp_filter);
  }
}

SourceCheck::Verdict SourceCheck::judge(lookup::NextHopId back, PortIndex port, const Ingress& ingress) const {
  const bool any_way = ingress.reverse_path == ReversePath::loose && ingress.has_ipv4;
  const Adjacency adjacency = adjacencies_.at(back);
  switch (adjacency.kind()) {
    case AdjacencyKind::no_route:
    case AdjacencyKind::blackhole:
    case AdjacencyKind::unreachable:
      return Verdict::refused;
    case AdjacencyKind::local:
      return any_way && back == AdjacencyTable::elsewhere_id ? Verdict::fine : Verdict::kernel_knows;
    default:
      return any_way || (ingress.is_twin && leaves_by(adjacency, port)) ? Verdict::fine : Verdict::refused;
  }
}

bool SourceCheck::leaves_by(Adjacency back, PortIndex port) const {
  if (back.kind() != AdjacencyKind::group) {
    return back.port() == port;
  }
  for (std::uint32_t slot = 0; slot < AdjacencyTable::group_slots; ++slot) {
    if (adjacencies_.at(adjacencies_.member(back.group(), slot)).port() == port) {
      return true;
    }
  }
  return false;
}

}  // namespace sluice::function
