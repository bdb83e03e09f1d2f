#include "function/route/route.h"

#include <rte_prefetch.h>

#include <algorithm>
#include <cstring>

#include "engine/emitter.h"
#include "engine/pipeline.h"
#include "function/route/answered_reasons.h"
#include "function/route/route_batch.h"
#include "function/route/route_settings.h"
#include "function/routing_reasons.h"
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
const Reason unreachable =
    packet::register_reason("unreachable", "an unreachable or prohibit route, and no twin answers for it");
const Reason blackholed = packet::register_reason("blackholed", "a blackhole route", packet::DroppedBy::purpose);
const Reason own_frame =
    packet::register_reason("own_frame", "a frame that this port's interface sent itself", packet::DroppedBy::purpose);
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
constexpr unsigned ahead = 16;  // frames whose headers are fetched before they are rewritten

std::uint32_t destination_of(const std::uint8_t* ipv4_frame) {
  std::uint32_t destination;
  std::memcpy(&destination, ipv4_frame + ethernet + 16, sizeof destination);
  return packet::be32(destination);
}

// How many keys there are then.
std::uint32_t add_key6(const RouteArea& a, const engine::Batch& batch, std::uint32_t i, std::uint32_t next_key) {
  std::memcpy(a.keys6[next_key], batch.data(i) + ethernet + 24, key6_bytes);
  if (next_key == 0) std::fill_n(a.has_key6, (batch.capacity + 31) / 32, 0U);
  a.has_key6[i / 32] |= 1U << i % 32;
  a.argument[i] = next_key;
  return next_key + 1;
}

// A frame for the kernel that need not be its own traffic, so that a flood of such must leave space for ARP and routing
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
}  // admit() let nothing else through

// Its own traffic, or what it is to forward.
void give_to_host(engine::Batch& batch, std::uint32_t i, bool is_transit) {
  if (is_transit) {
    batch.to_host(i);
  } else {
    batch.punt(i);
  }
}

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

Expected<void> Router::prepare(const engine::Plan& plan) {
  const bool has_departures = plan.pipeline != nullptr && plan.pipeline->first<engine::Departure>() != nullptr;
  cores_look_up_ = options_.look_up == LookUp::cores || (options_.look_up == LookUp::automatic && has_departures);
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
  table_->set_lanes(plan.lanes);
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

Expected<engine::Element::Change> Router::reload(Element& fresh) {
  const auto& router = static_cast<const Router&>(fresh);
  const RouterOptions& options = router.options_;
  std::string fixed = option::fixed("[route]", route_settings(), options_, options, "the router runs: restart it");
  if (!fixed.empty()) {
    return make_error(std::move(fixed));
  }
  if (auto applied = load(router, progress_of(loading_routes)); !applied) {
    return tl::unexpected(applied.error());
  }
  any_mac_.store(options.any_mac, std::memory_order_relaxed);
  if (statics_.size() != 0) {
    return Change{std::to_string(statics_.size()) + " routes from the configuration are in force", {}};
  }
  return Change{options_.kernel
                    ? "the configuration is in force; it has no routes of its own, and the kernel's need no reload"
                    : "the configuration is in force; it has no routes",
                {}};
}

// A frame that is not of the usual kind, or not for this port's address: dropped or punted here (host), or to be
// forwarded after all.
packet::FrameKind Router::look_closer(engine::Batch& batch, std::uint32_t i, const IngressTable::Port* port) const {
  const std::uint8_t* const data = batch.data(i);
  const std::uint64_t own_mac = table_->ingress().mac(batch.row[i].port);
  const bool any_mac = any_mac_.load(std::memory_order_relaxed);
  FrameView view;
  if (const Reason reason = packet::parse_frame(data, batch.length[i], view); reason != packet::no_reason) {
    batch.drop(i, reason);
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
      batch.to_host(i);
    } else {
      batch.drop(i, other_host);
    }
  } else if (packet::mac_word(data + 6) == port_macs_[batch.row[i].port]) {
    // A packet socket also sees what the kernel sends out of the interface under the port. To the twin, which has the
    // same address, the interface's last neighbour solicitation would look like another host with its IPv6 address.
    batch.drop(i, own_frame);
  } else if (is_link_local_unicast(data) && !may_be_for_host(data)) {
    // The kernel would forward it.
    batch.drop(i, link_local);
  } else if ((any_mac || packet::mac_word(data) == own_mac) && is_own_with_options(data, view.kind)) {
    if (view.kind == FrameKind::ipv4 && packet::has_source_route(data + ethernet)) {
      batch.drop(i, source_route);
      return FrameKind::host;
    }
    return view.kind;
  } else {
    give_to_host(batch, i, is_transit(data));
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

// Where no element is in front classify() does it, in one go.
void Router::admit(engine::Batch& batch, engine::Span span) {
  if (!is_first()) admit_all(batch, span);
}

void Router::admit_all(engine::Batch& batch, engine::Span span) {
  for (engine::Span part{span.first, 0}; part.first < span.end(); part = {part.end(), 0}) {
    const std::uint16_t port = batch.row[part.first].port;
    while (part.end() < span.end() && batch.row[part.end()].port == port) ++part.count;
    admit_port<false>(batch, part);
  }
}

template <bool described>
void Router::admit_port(engine::Batch& batch, engine::Span span) {
  const IngressTable& ingress = table_->ingress();
  const std::uint16_t port_index = batch.row[span.first].port;
  if (ingress.is_plain(port_index)) [[likely]] {
    admit_rows<false, described>(batch, span, nullptr);
    return;
  }
  const auto ports = ingress.read(admit_place(batch));
  const IngressTable::Port& port = (*ports)[port_index];
  if (port.everything) {
    if (described) std::fill_n(area_of(batch).argument + span.first, span.count, 0U);
    give_all_to_host(batch, span);
    return;
  }
  const SourceCheck check(port, ingress.mac(port_index), any_mac_.load(std::memory_order_relaxed), *fib_, *adjacencies_,
                          batch, span);
  admit_rows<true, described>(batch, span, &check);
}

// The kernel does with frames what is not for a router to know: nor are they looked at here.
void Router::give_all_to_host(engine::Batch& batch, engine::Span span) const {
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    const std::uint8_t* const data = batch.data(i);
    if (batch.length[i] < ethernet) {
      batch.drop(i, packet::frame_too_short);
    } else if (packet::mac_word(data + 6) == port_macs_[batch.row[i].port]) {
      batch.drop(i, own_frame);
    } else {
      give_to_host(batch, i, is_unicast_ip(data));
    }
  }
}

// `admitted` is given what each row is; of one that does not go on FrameKind::host.
template <bool checks, bool described, typename Admitted>
void Router::admit_each(engine::Batch& batch, engine::Span span, const SourceCheck* check,
                        const Admitted& admitted) const {
  // The port's own address is a unicast one, so equality says that too.
  const bool any_mac = any_mac_.load(std::memory_order_relaxed);
  const std::uint64_t mac_mask = any_mac ? group_mac_bit : packet::mac_word_mask;
  const std::uint64_t mac = any_mac ? 0 : table_->ingress().mac(batch.row[span.first].port);
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    // An element in front may have decided on it.
    if (!described && !batch.goes_on(i)) [[unlikely]]
      continue;
    const std::uint8_t* const data = batch.data(i);
    const std::uint32_t length = batch.length[i];
    FrameKind kind;
    if (packet::is_plain_ipv4(data, length) && (packet::mac_word(data) & mac_mask) == mac) [[likely]] {
      kind = FrameKind::ipv4;
    } else if (packet::is_plain_ipv6(data, length) && (packet::mac_word(data) & mac_mask) == mac) {
      kind = FrameKind::ipv6;
    } else {
      kind = look_closer(batch, i, checks ? check->port() : nullptr);
    }
    if (checks && kind != FrameKind::host) {
      check->look(batch, i, kind);
      if (!batch.goes_on(i)) kind = FrameKind::host;
    }
    admitted(i, data, kind);
  }
}

// `described`: what goes on is described for the lookup, too. Else the batch may be of a pass in which this element has
// no area.
template <bool checks, bool described>
void Router::admit_rows(engine::Batch& batch, engine::Span span, const SourceCheck* check) {
  if constexpr (!described) {
    admit_each<checks, false>(batch, span, check, [](std::uint32_t, const std::uint8_t*, FrameKind) {});
  } else {
    const RouteArea a = area_of(batch);
    std::uint32_t next_key = a.header->keys6;
    admit_each<checks, true>(batch, span, check, [&](std::uint32_t i, const std::uint8_t* data, FrameKind kind) {
      if (kind == FrameKind::ipv4) [[likely]] {
        a.argument[i] = destination_of(data);
      } else if (kind == FrameKind::ipv6) {
        next_key = add_key6(a, batch, i, next_key);
      } else {
        a.argument[i] = 0;
      }
    });
    a.header->keys6 = next_key;
  }
}

// Rows that go on are IPv4 or IPv6, as admit() has left them; an element in front may have given them another
// destination.
void Router::classify(engine::Batch& batch, engine::Span span) {
  const RouteArea a = area_of(batch);
  if (span.first == 0) a.header->keys6 = 0;
  if (is_first()) {
    admit_port<true>(batch, span);  // a lane's burst is of one port
    return;
  }
  std::uint32_t next_key = a.header->keys6;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    a.argument[i] = 0;
    if (!batch.goes_on(i)) [[unlikely]] {
      continue;
    }
    const std::uint8_t* const data = batch.data(i);
    if (!is_ipv6(data)) [[likely]] {
      a.argument[i] = destination_of(data);
    } else {
      next_key = add_key6(a, batch, i, next_key);
    }
  }
  a.header->keys6 = next_key;
}

void Router::compute(engine::Batch& batch, engine::Span span) {
  const RouteArea a = area_of(batch);
  const std::uint32_t keys6 = a.header->keys6;
  if (span.first == 0 && span.count == batch.count) {
    if (keys6 != batch.count) {
      // An IPv6 frame's argument is looked up like an address too; nobody reads that answer.
      fib_->lookup4(a.argument, a.verdict, batch.count);
    }
    if (keys6 != 0) {
      fib_->lookup6(a.keys6, a.answers6, keys6);
    }
    return;
  }
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    if (keys6 != 0 && (a.has_key6[i / 32] >> i % 32 & 1) != 0) {
      fib_->lookup6(a.keys6 + a.argument[i], a.answers6 + a.argument[i], 1);
    } else {
      fib_->lookup4(a.argument + i, a.verdict + i, 1);
    }
  }
}

void Router::null_result(engine::Batch& batch) {
  const RouteArea a = area_of(batch);
  const lookup::NextHopId id = fib_->find(packet::IpPrefix::of(packet::IpAddress::v4(0), 0));
  std::fill_n(a.verdict, batch.count, id);
  std::fill_n(a.answers6, a.header->keys6, id);
}

void Router::turn_aside(Adjacency adjacency, engine::Batch& batch, std::uint32_t i, engine::Emitter& out) {
  switch (adjacency.kind()) {
    case AdjacencyKind::blackhole:
      batch.drop(i, blackholed);
      break;
    case AdjacencyKind::local:
      batch.punt(i);
      break;
    case AdjacencyKind::awaited:
      // The kernel need not have this route: it would answer "unreachable", or forward another way.
      if (hop_limit(reinterpret_cast<std::uint8_t*>(batch.frame[i])) <= 1) {
        expire(adjacency, batch, i, out);
      } else {
        batch.drop(i, unresolved);
      }
      break;
    case AdjacencyKind::unreachable:
      batch.to_host(i, unreachable);
      break;
    case AdjacencyKind::no_route:
      batch.to_host(i, no_route);
      break;
    default:
      batch.to_host(i, unresolved);
      break;
  }
}

void Router::expire(Adjacency adjacency, engine::Batch& batch, std::uint32_t i, engine::Emitter& out) {
  if (adjacency.own()) {
    answer(batch, i, packet::IcmpErrorKind::time_exceeded, 0, ttl_expired, out);
  } else {
    batch.to_host(i, ttl_expired);
  }
}

void Router::refuse_size(Adjacency adjacency, engine::Batch& batch, std::uint32_t i, engine::Emitter& out) {
  const auto* const frame = reinterpret_cast<const std::uint8_t*>(batch.frame[i]);
  const std::uint32_t mtu = table_->mtu(adjacency.port());
  if (batch.length[i] <= ethernet + mtu || (adjacency.own() && mtu == 0)) {
    batch.drop(i, link_down);
  } else if (!adjacency.own()) {
    batch.to_host(i, too_big);
  } else if (!is_ipv6(frame) && (packet::header_at<packet::Ipv4Header>(frame, ethernet).fragment &
                                 packet::be16(packet::ipv4_dont_fragment)) == 0) {
    batch.drop(i, needs_fragmentation);
  } else {
    answer(batch, i, packet::IcmpErrorKind::too_big, mtu, too_big, out);
  }
}

void Router::apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) {
  const std::uint32_t end = span.end();
  const RouteArea a = area_of(batch);
  engine::SendRun run(batch, span);
  for (std::uint32_t i = span.first; i < end; ++i) {
    if (i + ahead < batch.count) {  // those of the next span, too
      rte_prefetch0(reinterpret_cast<const void*>(batch.frame[i + ahead]));
    }
    if (!batch.goes_on(i)) [[unlikely]] {
      run.other(i);
      continue;
    }
    std::uint8_t* const frame = batch.data(i);
    const bool v6 = is_ipv6(frame);
    const lookup::NextHopId id = v6 ? a.answers6[a.argument[i]] : a.verdict[i];
    Adjacency adjacency = adjacencies_->at(id);
    if (adjacency.kind() == AdjacencyKind::group) {
      FrameView view;
      packet::parse_frame(frame, batch.length[i], view);
      adjacency =
          adjacencies_->at(adjacencies_->member(adjacency.group(), packet::flow_hash(frame, batch.length[i], view)));
    }
    if (adjacency.kind() != AdjacencyKind::forward) [[unlikely]] {
      run.other(i);
      turn_aside(adjacency, batch, i, out);
      continue;
    }
    const std::uint16_t port = adjacency.port();
    std::uint8_t& ttl = frame[ethernet + (v6 ? 7 : 8)];
    if (ttl <= 1) [[unlikely]] {
      run.other(i);
      expire(adjacency, batch, i, out);
      continue;
    }
    if (batch.length[i] > ethernet + table_->carries(port)) [[unlikely]] {
      run.other(i);
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
    run.send(i, port);
  }
  run.finish();
}

}  // namespace sluice::function
