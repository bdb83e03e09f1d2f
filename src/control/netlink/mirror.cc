#include "control/netlink/mirror.h"

#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace sluice::control {

using namespace netlink;

namespace {

constexpr std::uint32_t link_state = IFF_UP | IFF_LOWER_UP;
constexpr std::uint32_t least_ipv6_mtu = 1280;  // RFC 8200 section 5
constexpr unsigned max_stage_tries = 4;
constexpr std::size_t probes_per_tick = 64;
constexpr std::size_t refused_per_tick = 64;
constexpr int answer_timeout_ms = 10000;
constexpr unsigned max_requests_at_start = 40;  // that the kernel does not take: ten seconds

// Never routed, whatever a table says (RFC 4291 2.5.6, RFC 1812 5.3.5): always the host's.
const char* const host_prefixes[] = {"224.0.0.0/4", "255.255.255.255/32", "fe80::/10", "ff00::/8"};

bool in_host_prefix(const packet::IpPrefix& prefix) {
  const auto& bytes = prefix.address.bytes;
  if (prefix.address.family == 4) {
    const std::uint32_t first = prefix.address.v4_host_order();
    return (prefix.length >= 4 && first >> 28 == 0xe) || first == 0xffffffffU;
  }
  return (prefix.length >= 10 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) ||
         (prefix.length >= 8 && bytes[0] == 0xff);
}

}  // namespace

// Next-hop objects before the routes that name them, links before everything that lies on them.
const NetlinkMirror::Stage NetlinkMirror::stages[] = {
    {"links", RTM_GETLINK, AF_UNSPEC, true},           {"addresses", RTM_GETADDR, AF_UNSPEC, true},
    {"IPv4 settings", RTM_GETNETCONF, AF_INET, true},  {"IPv6 settings", RTM_GETNETCONF, AF_INET6, true},
    {"link addresses", RTM_GETNEIGH, AF_BRIDGE, true}, {"next hops", RTM_GETNEXTHOP, AF_UNSPEC},
    {"neighbours", RTM_GETNEIGH, AF_UNSPEC},           {"IPv4 routes", RTM_GETROUTE, AF_INET},
    {"IPv6 routes", RTM_GETROUTE, AF_INET6},
};

NetlinkMirror::NetlinkMirror(MirrorOptions options, function::ControlPlane& plane, Socket socket)
    : options_(std::move(options)),
      plane_(plane),
      socket_(std::move(socket)),
      routes_(plane),
      neighbours_(plane, routes_.hops()),
      addresses_(plane, routes_.hops()),
      ingress_(plane, routes_.hops(), addresses_) {}

Expected<std::unique_ptr<NetlinkMirror>> NetlinkMirror::open(MirrorOptions options, function::ControlPlane& plane) {
  auto socket = Socket::open(options.receive_buffer);
  if (!socket) return tl::unexpected(socket.error());
  return std::unique_ptr<NetlinkMirror>(new NetlinkMirror(std::move(options), plane, std::move(*socket)));
}

Expected<void> NetlinkMirror::start() {
  for (const char* prefix : host_prefixes) routes_.pin_local(packet::IpPrefix::parse(prefix).value());
  resync();
  if (auto begun = begin_resync(Clock::now()); !begun) return begun;
  while (dumps_ == 0) {
    pollfd ready{socket_.fd(), POLLIN, 0};
    if (dumping()) {
      if (poll(&ready, 1, answer_timeout_ms) == 0) return make_error("rtnetlink: the kernel does not answer");
    } else {
      if (unsent_ == max_requests_at_start) {
        return make_error("rtnetlink: the kernel has no memory for a request: free some and start again");
      }
      std::this_thread::sleep_for(options_.resync_pause);
    }
    if (auto done = process(); !done) return done;
    if (stopped_) return make_error("interrupted while the kernel's tables were read");
  }
  options_.progress = nullptr;
  for (const auto& twin : options_.twins) {
    const bool exists = std::ranges::any_of(links_, [&](const auto& link) { return link.second.name == twin.name; });
    if (!exists) {
      return make_error("there is no interface '" + twin.name + "', the TAP twin of port " + std::to_string(twin.port));
    }
  }
  return {};
}

Expected<void> NetlinkMirror::process(std::size_t max_messages) {
  const std::uint64_t last = messages_ + max_messages;
  while (messages_ < last && !stopped_) {
    const auto received = socket_.receive();
    if (!received) return tl::unexpected(received.error());
    if (received->lost) {
      ++overruns_;
      resync();
    }
    if (received->bytes.empty() && !received->lost) break;
    decode(received->bytes, *this);
    if (!stage_done_) continue;
    end_stage(stage_error_);
    if (dumping()) {
      if (auto begun = begin_stage(); !begun) return begun;
    }
  }
  routes_.settle();
  addresses_.settle();
  ingress_.settle();
  return begin_due_resync(Clock::now());
}

Expected<void> NetlinkMirror::begin_due_resync(Clock::time_point now) {
  if (now >= std::min(verify_due_, routes_.next_expiry())) {
    verify_due_ = Clock::time_point::max();
    routes_.forget_expiries();
    resync();
  }
  if (due_ == Scope::nothing || dumping() || now < resync_allowed_) return {};
  return begin_resync(now);
}

Expected<void> NetlinkMirror::tick(Clock::time_point now) {
  bool taken = true;  // the rest has no better chance than the first that is not
  for (const auto& neighbour : neighbours_.due(now, options_.probe_interval, probes_per_tick)) {
    taken = taken && socket_.probe(neighbour.ifindex, neighbour.address, Socket::Neighbour::known).value_or(false);
    if (!taken) neighbours_.not_probed(neighbour);
    ++(taken ? probes_ : unsent_);
  }
  routes_.retry_refused(refused_per_tick);
  neighbours_.retry_refused(refused_per_tick);
  return begin_due_resync(now);
}

Expected<bool> NetlinkMirror::resolve(function::PortIndex port, const packet::IpAddress& address) {
  for (const auto& [ifindex, link] : links_) {
    if (routes_.hops().port(ifindex) == port) {
      auto sent = socket_.probe(ifindex, address, Socket::Neighbour::may_be_new);
      if (sent && !*sent) ++unsent_;
      return sent;
    }
  }
  return false;
}

Expected<void> NetlinkMirror::begin_resync(Clock::time_point now) {
  running_ = std::exchange(due_, Scope::nothing);
  resync_began_ = now;
  stage_ = 0;
  stage_tries_ = 0;
  return begin_stage();
}

Expected<void> NetlinkMirror::begin_stage() {
  const Stage& stage = stages[stage_];
  stage_done_ = stage_doubtful_ = false;
  stage_messages_ = 0;
  ++stage_tries_;
  if (stage.request == RTM_GETLINK) ++link_generation_;
  if (stage.request == RTM_GETADDR) addresses_.begin_dump();
  if (stage.request == RTM_GETNEXTHOP) routes_.nexthops().begin_dump();
  if (stage.request == RTM_GETNEIGH && stage.of_links) ingress_.begin_link_addresses();
  if (stage.request == RTM_GETNEIGH && !stage.of_links) neighbours_.begin_dump();
  if (stage.request == RTM_GETROUTE) routes_.begin_dump(stage.address_family == AF_INET ? 4 : 6);
  const auto sent = socket_.request_dump(stage.request, stage.address_family, ++sequence_);
  if (!sent) return tl::unexpected(sent.error());
  if (!*sent) {
    // Begun again from the first dump, a while later.
    ++unsent_;
    stage_ = -1;
    due_ = std::max(due_, running_);
    resync_allowed_ = Clock::now() + options_.resync_pause;
  }
  return {};
}

// On to the next dump, or to the same one once more. A kind that this kernel does not have is left as it is.
void NetlinkMirror::end_stage(int error) {
  stage_done_ = false;
  if (stage_doubtful_ && stage_tries_ < max_stage_tries) return;
  if (error == 0) sweep();
  report();
  stage_tries_ = 0;
  const bool more = ++stage_ < static_cast<int>(std::size(stages));
  if (more && (running_ == Scope::everything || stages[stage_].of_links)) return;
  stage_ = -1;
  // A link that flaps all the time must not keep the control thread busy with dumps.
  const auto now = Clock::now();
  const auto took = now - resync_began_;
  resync_allowed_ = now + std::max<Clock::duration>(options_.resync_pause, 3 * took);
  if (running_ != Scope::everything) return;
  // Last, so that the routes of an object that is gone have gone before it.
  routes_.nexthops().end_dump();
  ++dumps_;
  ingress_.moved();  // log_martians
  if (options_.verify_interval.count() != 0) {
    verify_due_ = now + std::max<Clock::duration>(verify_interval(), 49 * took);
  }
}

NetlinkMirror::Clock::duration NetlinkMirror::verify_interval() const {
  const Clock::duration interval = options_.verify_interval;
  return routes_.has_advertised() ? std::min<Clock::duration>(interval, options_.advertised_interval) : interval;
}

void NetlinkMirror::sweep() {
  const Stage& stage = stages[stage_];
  if (stage.request == RTM_GETADDR) {
    addresses_.end_dump();
    ingress_.moved();
  }
  if (stage.request == RTM_GETNEIGH && stage.of_links) ingress_.end_link_addresses();
  routes_.count_as_found(dumps_ != 0);
  neighbours_.count_as_found(dumps_ != 0);
  if (stage.request == RTM_GETNEIGH && !stage.of_links) neighbours_.end_dump();
  if (stage.request == RTM_GETROUTE) {
    routes_.settle();
    routes_.end_dump(stage.address_family == AF_INET ? 4 : 6);
  }
  routes_.count_as_found(false);
  neighbours_.count_as_found(false);
  if (stage.request == RTM_GETLINK) {
    std::vector<int> gone;
    for (const auto& [ifindex, link] : links_) {
      if (link.generation != link_generation_) gone.push_back(ifindex);
    }
    for (const int ifindex : gone) forget_link(ifindex);
  }
}

bool NetlinkMirror::is_dump(const Header& header) const {
  return dumping() && (header.flags & NLM_F_MULTI) != 0 && header.sequence == sequence_ &&
         header.port_id == socket_.port_id();
}

void NetlinkMirror::count_message(const Header& header) {
  ++messages_;
  if (!is_dump(header)) return;
  ++stage_messages_;
  if ((header.flags & NLM_F_DUMP_INTR) != 0) stage_doubtful_ = true;
  if (stage_messages_ % 16384 == 0) report();
}

void NetlinkMirror::report() {
  if (options_.progress && !options_.progress(stages[stage_].what, stage_messages_)) stopped_ = true;
}

void NetlinkMirror::on_link(const Header& header, const LinkMessage& message) {
  count_message(header);
  if (message.removed) return forget_link(message.ifindex);
  const bool is_new = !links_.contains(message.ifindex);
  Link& link = links_[message.ifindex];
  const Link before =
      std::exchange(link, {message.name, message.flags & link_state, message.operstate, message.mtu, link_generation_});
  // With a link, the kernel's IPv4 side takes routes away and brings them back without a word. The operational state
  // follows a lost carrier up to a second later, and the routes with it.
  if (!is_new && (before.state != link.state || before.operstate != link.operstate)) resync();
  ingress_.apply(message);
  // What lies on a twin changes its filter of link addresses, and its promiscuity, without a word.
  if (!is_dump(header) && routes_.hops().port(message.lower != 0 ? message.lower : message.ifindex)) look_at_links();
  const bool was_twin = routes_.hops().port(message.ifindex).has_value();
  const auto port = twin_port(message);
  if (!port) return;
  set_twin(message.ifindex, port);
  const auto has_ipv6 = [](const Link& one) { return (one.state & IFF_UP) != 0 && one.mtu >= least_ipv6_mtu; };
  if (options_.gets_ipv6 && !is_new && !has_ipv6(before) && has_ipv6(link)) options_.gets_ipv6(*port);
  if (is_new || !was_twin || before.state != link.state || before.mtu != link.mtu) {
    plane_.set_link(*port, link.state == link_state, link.mtu);
  }
}

// A twin that is renamed stays it, for its frames go on; another interface that takes its name is none before it has
// gone.
std::optional<function::PortIndex> NetlinkMirror::twin_port(const LinkMessage& message) const {
  if (const auto port = routes_.hops().port(message.ifindex)) return port;
  const auto twin = std::ranges::find(options_.twins, message.name, &MirrorOptions::Twin::name);
  if (twin == options_.twins.end()) return std::nullopt;
  const bool taken = std::ranges::any_of(
      links_, [&](const auto& link) { return routes_.hops().port(link.first) == std::optional(twin->port); });
  return taken ? std::nullopt : std::optional(twin->port);
}

void NetlinkMirror::forget_link(int ifindex) {
  if (links_.erase(ifindex) == 0) return;
  ingress_.forget(ifindex);
  resync();
  set_twin(ifindex, std::nullopt);
}

void NetlinkMirror::set_twin(int ifindex, std::optional<function::PortIndex> port) {
  const auto before = routes_.hops().port(ifindex);
  if (before == port) return;
  if (before) plane_.set_link(*before, false, 0);
  routes_.hops().set_port(ifindex, port);
  neighbours_.moved(ifindex, before);
  addresses_.moved();
  ingress_.moved();
}

void NetlinkMirror::on_address(const Header& header, const AddressMessage& message) {
  count_message(header);
  // With an address, routes go without a word: IPv4's that prefer it as their source or whose interface has no other,
  // and IPv6's where skip_notify_on_dev_down says so. With the first one of an interface hops come back.
  if (!is_dump(header)) resync();
  addresses_.apply(message);
  ingress_.moved();
}

void NetlinkMirror::on_link_address(const Header& header, const LinkAddressMessage& message) {
  count_message(header);
  ingress_.apply(message);
}

void NetlinkMirror::on_interface_settings(const Header& header, const InterfaceSettingsMessage& message) {
  count_message(header);
  if (!is_dump(header)) {
    // Interfaces without an address follow the default, without a word; hops of links that are down die or return.
    if (message.ifindex == InterfaceSettingsMessage::initial) look_at_links();
    if (message.ignores_routes_with_linkdown) resync();
  }
  ingress_.apply(message);
}

void NetlinkMirror::on_neighbour(const Header& header, const NeighbourMessage& message) {
  count_message(header);
  neighbours_.count_as_found(dumps_ != 0 && is_dump(header));
  neighbours_.apply(message);
  neighbours_.count_as_found(false);
}

void NetlinkMirror::on_nexthop(const Header& header, const NexthopMessage& message) {
  count_message(header);
  // Its routes go with it, the IPv4 ones without a word.
  if (message.removed && routes_.nexthops().in_use(message.id)) resync();
  routes_.nexthops().apply(message);
}

void NetlinkMirror::on_route(const Header& header, const RouteMessage& message) {
  count_message(header);
  if (message.table != RT_TABLE_MAIN && message.table != RT_TABLE_LOCAL) {
    ++other_tables_;
    return;
  }
  if ((message.flags & RTM_F_CLONED) != 0 || in_host_prefix(message.prefix)) return;
  const int family = message.prefix.address.family;
  if (message.removed) {
    // IPv6 dumps continue by position: what is removed before it makes them skip routes.
    if (dumping() && family == 6 && stages[stage_].address_family == AF_INET6) stage_doubtful_ = true;
    return routes_.remove(message);
  }
  const bool dumped = is_dump(header);
  routes_.count_as_found(dumped && dumps_ != 0);
  routes_.add(message, dumped ? RouteShadow::Join::dumped : RouteShadow::join_of(header.flags, family));
  if (!dumped && message.protocol == RTPROT_RA && verify_due_ != Clock::time_point::max()) {
    verify_due_ = std::min(verify_due_, Clock::now() + verify_interval());
  }
  routes_.count_as_found(false);
}

void NetlinkMirror::on_answer(const Header& header, int error) {
  count_message(header);
  if (!dumping() || header.sequence != sequence_ || header.port_id != socket_.port_id()) return;
  stage_done_ = true;
  stage_error_ = error;
}

void NetlinkMirror::on_malformed(const Header& header) {
  count_message(header);
  ++malformed_;
}

MirrorStats NetlinkMirror::stats() const {
  MirrorStats stats;
  stats.prefixes = routes_.prefixes();
  stats.routes = routes_.prefixes_announced();
  stats.neighbours = neighbours_.announced();
  stats.messages = messages_;
  stats.malformed = malformed_;
  stats.overruns = overruns_;
  stats.resyncs = dumps_ > 0 ? dumps_ - 1 : 0;
  stats.mended = routes_.found() + neighbours_.found();
  if (routes_.found() != 0) stats.last_mended = routes_.last_found().str();
  stats.probes = probes_;
  stats.unsent = unsent_;
  stats.refused = routes_.refused() + neighbours_.refused();
  stats.refusals = routes_.refusals() + neighbours_.refusals();
  stats.shortened = routes_.hops().shortened();
  stats.other_tables = other_tables_;
  stats.last_refusal = routes_.last_refusal().empty() ? neighbours_.last_refusal() : routes_.last_refusal();
  return stats;
}

}  // namespace sluice::control
