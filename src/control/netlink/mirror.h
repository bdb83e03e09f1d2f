// Mirrors the host kernel's links, neighbours and routes into the router: whatever `ip`, FRR or BIRD put into the
// kernel is what Sluice forwards by.
//
//   kernel                                              announced to the control plane
//   route of the main table, all hops out of twins      unicast, with ports and gateways (connected: no gateway); of
//                                                       more than 64 the first 64
//   route with a hop out of any other interface         local: the kernel forwards it
//   addresses, broadcasts, multicast, fe80::/10         local
//   blackhole / unreachable, prohibit, throw            blackhole / unreachable
//   neighbour on a twin, valid / given up               add_neighbour / remove_neighbour
//   twin up and with carrier, MTU                       set_link
//   addresses of twins, and for ports without of others  set_source (address_shadow.h)
//   what lies on a twin, rp_filter                      set_ingress (ingress_shadow.h)
//
// One netlink socket carries dumps and notifications, so both arrive in the order in which the kernel changed things.
// When the kernel dropped notifications, or removes routes without any (IPv4 does when a link goes down), everything is
// dumped again and only differences are announced: forwarding goes on. So it is now and then without an occasion.
//
// Thread-safety: none; everything runs on the control thread, which polls fd() and calls process() when it is readable
// and tick() at least once a second. Cost: docs/control-plane.md has measurements.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "control/netlink/address_shadow.h"
#include "control/netlink/decoder.h"
#include "control/netlink/ingress_shadow.h"
#include "control/netlink/neighbour_shadow.h"
#include "control/netlink/route_shadow.h"
#include "control/netlink/socket.h"
#include "function/control_plane.h"

namespace sluice::control {

struct MirrorOptions {
  struct Twin {
    function::PortIndex port = 0;
    std::string name;  // of the TAP interface, at first: it may be renamed
  };
  std::vector<Twin> twins;
  std::size_t receive_buffer = 32 << 20;        // bytes; about 30,000 notifications
  std::chrono::seconds probe_interval{30};      // how often a stale neighbour is verified
  std::chrono::milliseconds resync_pause{250};  // at least, between two full dumps
  // How often everything is compared with the kernel without an occasion; 0: never. Less often where that took long:
  // a comparison takes 2 % of the time at most.
  std::chrono::seconds verify_interval{60};
  // The same while there are routes that a router has advertised: the next advertisement changes their lifetime and
  // preference without a message.
  std::chrono::milliseconds advertised_interval{5000};
  // Called during start(), every 16,384 messages and at the end of each kind: "routes", how many so far. False: stop.
  std::function<bool(std::string_view what, std::size_t count)> progress;
  // Called when the kernel gives the twin of a port IPv6 again, whose addresses it took: with its being set up again,
  // or with an MTU that IPv6 can do with.
  std::function<void(function::PortIndex port)> gets_ipv6;
};

struct MirrorStats {
  std::size_t prefixes = 0;    // in the kernel's tables
  std::size_t routes = 0;      // announced to the control plane
  std::size_t neighbours = 0;  // announced to the control plane
  std::size_t refused = 0;     // routes and neighbours that the control plane has no capacity for now
  std::uint64_t messages = 0;  // received, dumps included
  std::uint64_t malformed = 0;
  std::uint64_t overruns = 0;  // the kernel dropped notifications
  std::uint64_t resyncs = 0;   // full dumps after the first
  std::uint64_t mended = 0;    // routes and neighbours that they found changed, without a message that said so
  std::string last_mended;     // the prefix, or address, of the last one
  std::uint64_t probes = 0;
  std::uint64_t unsent = 0;    // probes and requests that the kernel did not take; they are sent again
  std::uint64_t refusals = 0;  // calls that the control plane refused
  // Sets of next hops that have more than function::most_next_hops, of which only the first are announced.
  std::uint64_t shortened = 0;
  std::uint64_t other_tables = 0;  // messages of routes in tables that are not mirrored
  std::string last_refusal;
};

class NetlinkMirror : private netlink::Visitor {
 public:
  using Clock = std::chrono::steady_clock;

  // Subscribes; announces nothing yet. `plane` must outlive the mirror.
  static Expected<std::unique_ptr<NetlinkMirror>> open(MirrorOptions options, function::ControlPlane& plane);

  NetlinkMirror(const NetlinkMirror&) = delete;

  // Reads everything that is there and announces it; blocks until done. Error: a twin does not exist, the kernel does
  // not answer, or `progress` said stop.
  Expected<void> start();
  int fd() const { return socket_.fd(); }
  // Handles what is waiting, `max_messages` or a little more at most, and never blocks.
  Expected<void> process(std::size_t max_messages = 8192);
  // Starts a pending resync, probes stale neighbours, and announces again some of what was refused, more when there is
  // capacity again. An Error here and from process(): the socket is broken.
  Expected<void> tick(Clock::time_point now);
  // Asks the kernel for the link address of `address` on the twin of `port` (ARP, ND), also when it has no route there;
  // the answer comes as a neighbour. False: not sent, the kernel has no capacity for the request or the twin is gone.
  // Error: the socket is broken. Cost: one system call.
  Expected<bool> resolve(function::PortIndex port, const packet::IpAddress& address);
  // Asks for a full dump with differences announced, as after lost notifications.
  void resync() { due_ = Scope::everything; }
  // Asks for a dump of the links and their addresses alone: frames came for one that is not known.
  void look_at_links() { due_ = std::max(due_, Scope::links); }
  // True when no dump is running or waiting.
  bool settled() const { return !dumping() && due_ == Scope::nothing; }
  MirrorStats stats() const;

 private:
  struct Link {
    std::string name;
    std::uint32_t state = 0;  // of the flags, what routes depend on
    std::uint8_t operstate = 0;
    std::uint32_t mtu = 0;
    std::uint32_t generation = 0;
  };
  struct Stage {
    std::string_view what;
    std::uint16_t request;
    int address_family;
    bool of_links = false;
  };
  enum class Scope : std::uint8_t { nothing, links, everything };
  static const Stage stages[];

  NetlinkMirror(MirrorOptions options, function::ControlPlane& plane, netlink::Socket socket);

  void on_link(const netlink::Header& header, const netlink::LinkMessage& message) override;
  void on_address(const netlink::Header& header, const netlink::AddressMessage& message) override;
  void on_link_address(const netlink::Header& header, const netlink::LinkAddressMessage& message) override;
  void on_interface_settings(const netlink::Header& header, const netlink::InterfaceSettingsMessage& message) override;
  void on_neighbour(const netlink::Header& header, const netlink::NeighbourMessage& message) override;
  void on_route(const netlink::Header& header, const netlink::RouteMessage& message) override;
  void on_nexthop(const netlink::Header& header, const netlink::NexthopMessage& message) override;
  void on_answer(const netlink::Header& header, int error) override;
  void on_malformed(const netlink::Header& header) override;

  bool dumping() const { return stage_ >= 0; }
  bool is_dump(const netlink::Header& header) const;
  Expected<void> begin_due_resync(Clock::time_point now);
  Expected<void> begin_resync(Clock::time_point now);
  Expected<void> begin_stage();
  void end_stage(int error);
  void sweep();
  void forget_link(int ifindex);
  Clock::duration verify_interval() const;
  // Of which port an interface is the twin.
  std::optional<function::PortIndex> twin_port(const netlink::LinkMessage& message) const;
  void set_twin(int ifindex, std::optional<function::PortIndex> port);
  void count_message(const netlink::Header& header);
  void report();

  MirrorOptions options_;
  function::ControlPlane& plane_;
  netlink::Socket socket_;
  netlink::RouteShadow routes_;
  netlink::NeighbourShadow neighbours_;
  netlink::AddressShadow addresses_;
  netlink::IngressShadow ingress_;
  std::unordered_map<int, Link> links_;
  std::uint32_t link_generation_ = 0;

  int stage_ = -1;  // the dump that is running
  std::uint32_t sequence_ = 0;
  bool stage_done_ = false;
  int stage_error_ = 0;
  bool stage_doubtful_ = false;  // the kernel's tables changed under the dump
  unsigned stage_tries_ = 0;
  std::size_t stage_messages_ = 0;

  bool stopped_ = false;  // options_.progress said so

  Scope due_ = Scope::nothing;
  Scope running_ = Scope::nothing;  // what the dump that is running is of
  Clock::time_point verify_due_ = Clock::time_point::max();
  Clock::time_point resync_began_{};
  Clock::time_point resync_allowed_{};
  std::uint64_t messages_ = 0;
  std::uint64_t other_tables_ = 0;
  std::uint64_t malformed_ = 0;
  std::uint64_t overruns_ = 0;
  std::uint64_t dumps_ = 0;
  std::uint64_t probes_ = 0;
  std::uint64_t unsent_ = 0;
};

}  // namespace sluice::control
