#include "function/route/route.h"

#include <rte_prefetch.h>

#include <algorithm>
#include <cstring>

#include "engine/batch_writer.h"
#include "engine/burst.h"
#include "engine/emitter.h"
#include "function/route/drop_reasons.h"
#include "function/route/route_batch.h"
#include "packet/checksum.h"
#include "packet/flow_hash.h"
#include "packet/headers.h"
#include "packet/parse.h"

namespace sluice::function {
namespace {

using packet::FrameKind;
using packet::FrameView;
using packet::Reason;

const Reason no_route =
    packet::register_reason("no_route", "no route matches the destination, and no twin answers for it");
const Reason ttl_expired =
    packet::register_reason("ttl_expired", "TTL or hop limit ran out, and no ICMP error answers it");
const Reason too_big =
    packet::register_reason("too_big", "larger than the next link's MTU, and no ICMP error answers it");
const Reason unresolved = packet::register_reason(
    "unresolved",
    "the next hop's link address is not known yet, or no twin asks for it, or the gateway is on no link: ctl routes");
const Reason unreachable =
    packet::register_reason("unreachable", "an unreachable or prohibit route, and no twin answers for it");
const Reason blackholed = packet::register_reason("blackholed", "a blackhole route");
const Reason own_frame = packet::register_reason("own_frame", "a frame that this port's interface sent itself");
const Reason link_local = packet::register_reason(
    "link_local", "an IPv4 link-local source or destination, which stays on its link");  // RFC 3927 section 7
const Reason source_route = packet::register_reason(
    "source_route", "an IPv4 source route, on a route that only Sluice has");  // RFC 7126 sections 4.3 and 4.4
const Reason needs_fragmentation = packet::register_reason(
    "needs_fragmentation", "larger than the next link's MTU without DF, on a route that only Sluice has");
const Reason link_down = packet::register_reason("link_down", "the next hop's port has no link");

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
constexpr std::uint32_t max_next_hops = 1U << 17;
constexpr std::uint32_t max_groups = 4096;
constexpr std::uint64_t group_mac_bit = 1;  // of a link address as packet::mac_word
constexpr std::string_view loading_routes = "routes";
constexpr unsigned ahead = 8;  // frames whose headers are fetched before they are rewritten

// A frame for the kernel that need not be its own traffic, so that a flood of such must leave room for ARP and routing
// protocols: unicast with a VLAN tag, IPv4 options, or hop-by-hop options.
bool is_transit(const std::uint8_t* frame) {
  if ((frame[0] & 1) != 0) {
    return false;
  }
  switch (packet::be16(packet::header_at<packet::EthernetHeader>(frame, 0).ethertype)) {
    case packet::ethertype_vlan:
    case packet::ethertype_qinq:
    case packet::ethertype_old_qinq:
      return true;
    case packet::ethertype_ipv4:
      return (frame[ethernet] & 0xf) != 5;
    case packet::ethertype_ipv6:
      return frame[ethernet + 6] == packet::protocol_hop_by_hop;
    default:
      return false;
  }
}

// A unicast frame that holds IP, or may hold it behind a tag.
bool is_unicast_ip(const std::uint8_t* frame) {
  switch (packet::be16(packet::header_at<packet::EthernetHeader>(frame, 0).ethertype)) {
    case packet::ethertype_ipv4:
    case packet::ethertype_ipv6:
    case packet::ethertype_vlan:
    case packet::ethertype_qinq:
    case packet::ethertype_old_qinq:
      return (frame[0] & 1) == 0;
    default:
      return false;
  }
}

// A well-formed frame of IPv4 from or to 169.254.0.0/16 that is neither broadcast nor multicast.
bool is_link_local_unicast(const std::uint8_t* frame) {
  if (packet::be16(packet::header_at<packet::EthernetHeader>(frame, 0).ethertype) != packet::ethertype_ipv4) {
    return false;
  }
  const auto& ip = packet::header_at<packet::Ipv4Header>(frame, ethernet);
  const std::uint32_t source = packet::be32(ip.source);
  const std::uint32_t destination = packet::be32(ip.destination);
  return (frame[0] & 1) == 0 && destination >> 28 < 0xe && (source >> 16 == 0xa9fe || destination >> 16 == 0xa9fe);
}

bool is_ipv6(const std::uint8_t* frame) {
  return frame[12] == 0x86;
}  // collect() let nothing else through

std::uint8_t hop_limit(const std::uint8_t* frame) {
  return frame[ethernet + (is_ipv6(frame) ? 7 : 8)];
}

}  // namespace

Router::Router(RouterOptions options, const engine::PortTable& ports)
    : options_(std::move(options)), any_mac_(options_.any_mac) {
  for (std::size_t port = 0; port < ports.size(); ++port) {
    port_macs_.push_back(ports[port].mac.word());
    port_mtus_.push_back(ports[port].mtu);
  }
}

Router::~Router() = default;

Expected<void> Router::prepare() {
  // Tables of this size take a moment to make, too.
  if (progress_ && !progress_(loading_routes, 0, statics_read_ ? statics_read_->size() : 0)) {
    return make_error("interrupted before tables were made");
  }
  lookup::Fib::Options fib_options;
  fib_options.name = "route";
  fib_options.max_routes4 = options_.max_ipv4;
  fib_options.max_routes6 = options_.max_ipv6;
  auto fib = lookup::Fib::create(fib_options);
  if (!fib) {
    return tl::unexpected(fib.error());
  }
  fib_ = std::move(*fib);
  adjacencies_ = std::make_unique<AdjacencyTable>(max_next_hops, max_groups, [this] { return settled(); });
  table_ = std::make_unique<RouteTable>(*fib_, *adjacencies_, port_macs_.size(), port_macs_);
  for (std::size_t port = 0; port < port_mtus_.size(); ++port) {
    table_->set_link(static_cast<PortIndex>(port), true, port_mtus_[port]);
  }
  bool stopped = false;
  Expected<void> loaded = load(*this, [&](std::size_t done, std::size_t total) {
    stopped = progress_ && !progress_(loading_routes, done, total);
    return !stopped;
  });
  if (stopped) {
    fib_->leave_to_eal();
  }
  statics_read_.reset();
  return loaded;
}

Expected<void> Router::prepare_lanes(const engine::LanePlan& plan) {
  table_->ingress().set_lanes(plan.lanes);
  return {};
}

engine::Tables::Memory Router::memory() const {
  return {lookup::Fib::memory_needed(4, options_.max_ipv4) + lookup::Fib::memory_needed(6, options_.max_ipv6),
          {"max_ipv4", "max_ipv6"}};
}

void Router::take_read(engine::Tables& checked) {
  statics_read_ = std::move(static_cast<Router&>(checked).statics_read_);
}

LoadProgress Router::progress_of(std::string_view what) const {
  if (!progress_) {
    return {};
  }
  return [this, what](std::size_t done, std::size_t total) { return progress_(what, done, total); };
}

Expected<void> Router::read() {
  auto routes =
      StaticRoutes::read(options_.statics, {options_.max_ipv4, options_.max_ipv6}, progress_of("reading routes"));
  if (!routes) {
    return tl::unexpected(routes.error());
  }
  statics_read_ = std::move(*routes);
  return {};
}

Expected<void> Router::load(const Router& from, const LoadProgress& progress) {
  const StaticOptions& options = from.options_.statics;
  if (from.statics_read_) {
    return statics_.apply(*from.statics_read_, options.neighbours, *table_, progress);
  }
  auto routes = StaticRoutes::read(options, {options_.max_ipv4, options_.max_ipv6}, progress);
  if (!routes) {
    return tl::unexpected(routes.error());
  }
  return statics_.apply(*routes, options.neighbours, *table_, progress);
}

Expected<std::string> Router::reconfigure(engine::Function& fresh) {
  const auto& router = static_cast<const Router&>(fresh);
  const RouterOptions& options = router.options_;
  std::string fixed;
  for (const auto& [key, differs] : {std::pair{"max_ipv4", options.max_ipv4 != options_.max_ipv4},
                                     std::pair{"max_ipv6", options.max_ipv6 != options_.max_ipv6},
                                     std::pair{"kernel", options.kernel != options_.kernel},
                                     std::pair{"verify", options.verify != options_.verify}}) {
    if (differs) {
      fixed += (fixed.empty() ? "" : "\n") + ("[route] " + std::string(key)) +
               " cannot change while the router runs: restart it";
    }
  }
  if (!fixed.empty()) {
    return make_error(fixed);
  }
  if (auto applied = load(router, progress_of(loading_routes)); !applied) {
    return tl::unexpected(applied.error());
  }
  any_mac_.store(options.any_mac, std::memory_order_relaxed);
  if (statics_.size() != 0) return std::to_string(statics_.size()) + " routes from the configuration are in force";
  return options_.kernel ? "the configuration is in force; it has no routes of its own, and the kernel's need no reload"
                         : "the configuration is in force; it has no routes";
}

engine::BatchLayout Router::layout() const {
  return {route_extra_per_frame};
}

// A frame that is not of the usual kind, or not for this port's address: dropped or punted here (host), or to be
// forwarded after all.
packet::FrameKind Router::look_closer(engine::Burst& burst, unsigned i, const IngressTable::Port* port) const {
  const std::uint8_t* const data = burst.data(i);
  const std::uint64_t own_mac = table_->ingress().mac(burst.port());
  const bool any_mac = any_mac_.load(std::memory_order_relaxed);
  FrameView view;
  if (const Reason reason = packet::parse_frame(data, burst.length(i), view); reason != packet::no_reason) {
    burst.drop(i, reason);
    return FrameKind::host;
  }
  if (view.kind != FrameKind::host) {
    // A promiscuous port and a hub show frames for others; routing those would double them.
    if (any_mac || packet::mac_word(data) == own_mac) {
      return view.kind;
    }
    if (port != nullptr && port->find(packet::mac_word(data)) != nullptr) {
      return view.kind;
    }
    if (port != nullptr && port->other_hosts) {
      burst.punt(i, true);
    } else {
      burst.drop(i, other_host);
    }
  } else if (packet::mac_word(data + 6) == port_macs_[burst.port()]) {
    // A packet socket also sees what the kernel sends out of the interface under the port. To the twin, which has the
    // same address, the interface's last neighbour solicitation would look like another host with its IPv6 address.
    burst.drop(i, own_frame);
  } else if (is_link_local_unicast(data) && !may_be_for_host(data)) {
    // The kernel would forward it.
    burst.drop(i, link_local);
  } else if ((any_mac || packet::mac_word(data) == own_mac) && is_own_with_options(data, view.kind)) {
    if (view.kind == FrameKind::ipv4 && packet::has_source_route(data + ethernet)) {
      burst.drop(i, source_route);
      return FrameKind::host;
    }
    return view.kind;
  } else {
    burst.punt(i, is_transit(data));
  }
  return FrameKind::host;
}

// Whether the destination is an address of the host, or one that only the kernel knows.
bool Router::may_be_for_host(const std::uint8_t* ipv4_frame) const {
  const std::uint32_t destination =
      packet::be32(packet::header_at<packet::Ipv4Header>(ipv4_frame, ethernet).destination);
  lookup::NextHopId id;
  fib_->lookup4(&destination, &id, 1);
  const AdjacencyKind kind = adjacencies_->at(id).kind();
  return kind == AdjacencyKind::local || kind == AdjacencyKind::no_route;
}

void Router::collect(engine::Burst& burst, engine::BatchWriter& writer) {
  const IngressTable& ingress = table_->ingress();
  if (ingress.is_plain(burst.port())) [[likely]] {
    collect_frames<false>(burst, writer, nullptr);
    return;
  }
  const auto ports = ingress.read(writer.batch().lane);
  const IngressTable::Port& port = (*ports)[burst.port()];
  if (port.everything) {
    give_all_to_host(burst);
    return;
  }
  const SourceCheck check(port, ingress.mac(burst.port()), any_mac_.load(std::memory_order_relaxed), *fib_,
                          *adjacencies_, burst);
  collect_frames<true>(burst, writer, &check);
}

// The kernel does with frames what is not for a router to know: nor are they looked at here.
void Router::give_all_to_host(engine::Burst& burst) const {
  for (unsigned i = 0; i < burst.size(); ++i) {
    const std::uint8_t* const data = burst.data(i);
    if (burst.length(i) < ethernet) {
      burst.drop(i, packet::frame_too_short);
    } else if (packet::mac_word(data + 6) == port_macs_[burst.port()]) {
      burst.drop(i, own_frame);
    } else {
      burst.punt(i, is_unicast_ip(data));
    }
  }
}

template <bool checks>
void Router::collect_frames(engine::Burst& burst, engine::BatchWriter& writer, const SourceCheck* check) const {
  engine::Batch& batch = writer.batch();
  engine::BatchRows rows(batch);
  Key6* const keys = keys6(batch);
  std::uint32_t* const has_key = has_key6(batch);
  std::uint32_t next_key = batch.extra_count;
  // The port's own address is a unicast one, so equality says that too.
  const bool any_mac = any_mac_.load(std::memory_order_relaxed);
  const std::uint64_t mac_mask = any_mac ? group_mac_bit : packet::mac_word_mask;
  const std::uint64_t mac = any_mac ? 0 : table_->ingress().mac(burst.port());
  const unsigned size = burst.size();
  for (unsigned i = 0; i < size; ++i) {
    const std::uint8_t* const data = burst.data(i);
    const std::uint32_t length = burst.length(i);
    FrameKind kind;
    if (packet::is_plain_ipv4(data, length) && (packet::mac_word(data) & mac_mask) == mac) [[likely]] {
      kind = FrameKind::ipv4;
    } else if (packet::is_plain_ipv6(data, length) && (packet::mac_word(data) & mac_mask) == mac) {
      kind = FrameKind::ipv6;
    } else {
      kind = look_closer(burst, i, checks ? check->port() : nullptr);
    }
    if (checks && kind != FrameKind::host && check->refuses(burst, i, kind)) {
      continue;
    }
    if (kind == FrameKind::ipv4) [[likely]] {
      std::uint32_t destination;
      std::memcpy(&destination, data + ethernet + 16, sizeof destination);
      rows.append(burst.frame(i), data, length, packet::be32(destination));
    } else if (kind == FrameKind::ipv6) {
      std::memcpy(keys[next_key], data + ethernet + 24, key6_bytes);
      if (next_key == 0) std::fill_n(has_key, (batch.capacity + 31) / 32, 0U);
      const std::uint32_t at = rows.append(burst.frame(i), data, length, next_key++);
      has_key[at / 32] |= 1U << at % 32;
    }
  }
  batch.extra_count = next_key;
}

void Router::readdress(const engine::Batch& batch, std::uint32_t i) {
  const auto* const frame = reinterpret_cast<const std::uint8_t*>(batch.frame[i]);
  if (is_ipv6(frame)) {
    std::memcpy(keys6(batch)[batch.argument[i]], frame + ethernet + 24, key6_bytes);
  } else {
    std::uint32_t destination;
    std::memcpy(&destination, frame + ethernet + 16, sizeof destination);
    batch.argument[i] = packet::be32(destination);
  }
}

void Router::compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) {
  if (first == 0 && count == batch.count) {
    if (batch.extra_count != batch.count) {
      // An IPv6 frame's argument is looked up like an address too; nobody reads that answer.
      fib_->lookup4(batch.argument, batch.verdict, batch.count);
    }
    if (batch.extra_count != 0) {
      fib_->lookup6(keys6(batch), answers6(batch), batch.extra_count);
    }
    return;
  }
  for (std::uint32_t i = first; i < first + count; ++i) {
    if (is_ipv6(reinterpret_cast<const std::uint8_t*>(batch.frame[i]))) {
      fib_->lookup6(keys6(batch) + batch.argument[i], answers6(batch) + batch.argument[i], 1);
    } else {
      fib_->lookup4(batch.argument + i, batch.verdict + i, 1);
    }
  }
}

void Router::stand_in(engine::Batch& batch) {
  const lookup::NextHopId id = fib_->find(packet::IpPrefix::of(packet::IpAddress::v4(0), 0));
  std::fill_n(batch.verdict, batch.count, id);
  std::fill_n(answers6(batch), batch.extra_count, id);
}

void Router::turn_aside(Adjacency adjacency, engine::Batch& batch, std::uint32_t i, engine::Emitter& out) {
  switch (adjacency.kind()) {
    case AdjacencyKind::blackhole:
      out.drop(batch, i, blackholed);
      break;
    case AdjacencyKind::local:
      out.punt(batch, i);
      break;
    case AdjacencyKind::awaited:
      // The kernel need not have this route: it would answer "unreachable", or forward another way.
      if (hop_limit(reinterpret_cast<std::uint8_t*>(batch.frame[i])) <= 1) {
        expire(adjacency, batch, i, out);
      } else {
        out.drop(batch, i, unresolved);
      }
      break;
    case AdjacencyKind::unreachable:
      out.punt(batch, i, true, unreachable);
      break;
    case AdjacencyKind::no_route:
      out.punt(batch, i, true, no_route);
      break;
    default:
      out.punt(batch, i, true, unresolved);
      break;
  }
}

void Router::expire(Adjacency adjacency, engine::Batch& batch, std::uint32_t i, engine::Emitter& out) {
  if (adjacency.own()) {
    answer(batch, i, packet::IcmpErrorKind::time_exceeded, 0, ttl_expired, out);
  } else {
    out.punt(batch, i, true, ttl_expired);
  }
}

void Router::refuse_size(Adjacency adjacency, engine::Batch& batch, std::uint32_t i, engine::Emitter& out) {
  const auto* const frame = reinterpret_cast<const std::uint8_t*>(batch.frame[i]);
  const std::uint32_t mtu = table_->mtu(adjacency.port());
  if (batch.length[i] <= ethernet + mtu || (adjacency.own() && mtu == 0)) {
    out.drop(batch, i, link_down);
  } else if (!adjacency.own()) {
    out.punt(batch, i, true, too_big);
  } else if (!is_ipv6(frame) && (packet::header_at<packet::Ipv4Header>(frame, ethernet).fragment &
                                 packet::be16(packet::ipv4_dont_fragment)) == 0) {
    out.drop(batch, i, needs_fragmentation);
  } else {
    answer(batch, i, packet::IcmpErrorKind::too_big, mtu, too_big, out);
  }
}

void Router::forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) {
  const std::uint32_t end = first + count;
  const lookup::NextHopId* const answer6 = answers6(batch);
  for (std::uint32_t i = first; i < end; ++i) {
    if (i + ahead < end) {
      rte_prefetch0(reinterpret_cast<const void*>(batch.frame[i + ahead]));
    }
    auto* frame = reinterpret_cast<std::uint8_t*>(batch.frame[i]);
    const bool v6 = is_ipv6(frame);
    const lookup::NextHopId id = v6 ? answer6[batch.argument[i]] : batch.verdict[i];
    Adjacency adjacency = adjacencies_->at(id);
    if (adjacency.kind() == AdjacencyKind::group) {
      FrameView view;
      packet::parse_frame(frame, batch.length[i], view);
      adjacency =
          adjacencies_->at(adjacencies_->member(adjacency.group(), packet::flow_hash(frame, batch.length[i], view)));
    }
    if (adjacency.kind() != AdjacencyKind::forward) [[unlikely]] {
      turn_aside(adjacency, batch, i, out);
      continue;
    }
    const std::uint16_t port = adjacency.port();
    std::uint8_t& ttl = frame[ethernet + (v6 ? 7 : 8)];
    if (ttl <= 1) [[unlikely]] {
      expire(adjacency, batch, i, out);
      continue;
    }
    if (batch.length[i] > ethernet + table_->carries(port)) [[unlikely]] {
      refuse_size(adjacency, batch, i, out);
      continue;
    }
    const std::uint64_t own_mac = table_->ingress().mac(port);
    const std::uint64_t both_macs = adjacency.mac_word() | own_mac << 48;
    const auto rest = static_cast<std::uint32_t>(own_mac >> 16);
    std::memcpy(frame, &both_macs, sizeof both_macs);
    std::memcpy(frame + sizeof both_macs, &rest, sizeof rest);
    if (v6) {
      --ttl;
    } else {
      packet::decrement_ttl(*reinterpret_cast<packet::Ipv4Header*>(frame + ethernet));
    }
    out.transmit(batch, i, port);
  }
}

}  // namespace sluice::function
