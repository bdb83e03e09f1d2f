// Any sequence of rtnetlink messages into the shadows behind the netlink mirror. At every moment the control plane has
// been announced one route for a prefix, all that it was announced is taken back in the end, and it never has a reason
// to refuse.
//
// Messages stand for themselves; an answer (NLMSG_DONE, NLMSG_ERROR) stands for what the mirror does between messages:
// the rest of its error number divided by four chooses settle, a dump that names nothing, or the begin of a dump.
#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "control/netlink/decoder.h"
#include "control/netlink/ingress_shadow.h"
#include "control/netlink/neighbour_shadow.h"
#include "control/netlink/recording_plane.h"
#include "control/netlink/route_shadow.h"
#include "require.h"

using namespace sluice;
using namespace sluice::control::netlink;

namespace {

constexpr function::PortIndex ports = 3;

class Plane : public RecordingPlane {
 public:
  Expected<void> add_route(const function::Route& route) override {
    REQUIRE(route.kind == function::RouteKind::unicast ? !route.next_hops.empty() : route.next_hops.empty());
    for (const function::NextHop& hop : route.next_hops) {
      REQUIRE(hop.port < ports);
      REQUIRE(hop.weight >= 1);
    }
    return RecordingPlane::add_route(route);
  }
  void set_ingress(function::PortIndex port, const function::PortIngress& one) override {
    REQUIRE(port < ports);
    REQUIRE(std::ranges::none_of(one.more, [&](const auto& entry) { return entry.first == one.mac; }));
    RecordingPlane::set_ingress(port, one);
  }
};

class Mirror : public Visitor {
 public:
  void on_link(const Header&, const LinkMessage& message) override {
    const std::optional<function::PortIndex> before = routes_.hops().port(message.ifindex);
    std::optional<function::PortIndex> port;
    if (!message.removed && message.ifindex > 0 && message.ifindex <= ports) {
      port = static_cast<function::PortIndex>(message.ifindex - 1);
    }
    routes_.hops().set_port(message.ifindex, port);
    if (message.removed) {
      ingress_.forget(message.ifindex);
    } else {
      ingress_.apply(message);
    }
    if (port != before) {
      neighbours_.moved(message.ifindex, before);
    }
  }

  void on_address(const Header&, const AddressMessage& message) override { addresses_.apply(message); }
  void on_link_address(const Header&, const LinkAddressMessage& message) override { ingress_.apply(message); }
  void on_interface_settings(const Header&, const InterfaceSettingsMessage& message) override {
    ingress_.apply(message);
  }
  void on_neighbour(const Header&, const NeighbourMessage& message) override { neighbours_.apply(message); }
  void on_nexthop(const Header&, const NexthopMessage& message) override { routes_.nexthops().apply(message); }

  void on_route(const Header& header, const RouteMessage& message) override {
    if (message.removed) {
      routes_.remove(message);
    } else {
      named_.insert(message.nexthop_id);
      routes_.add(message, RouteShadow::join_of(header.flags, message.prefix.address.family));
    }
    check();
  }

  void on_answer(const Header&, int error) override {
    switch (static_cast<unsigned>(error) % 4) {
      case 0:
      case 1:
        routes_.settle();
        addresses_.settle();
        ingress_.settle();
        break;
      case 2:
        begin_dump();
        break;
      default:
        end_dump();
    }
    check();
  }

  void on_malformed(const Header&) override {}

  void check() const {
    REQUIRE(routes_.refusals() == 0);
    REQUIRE(neighbours_.refusals() == 0);
    REQUIRE(routes_.prefixes_announced() == plane_.routes.size());
    REQUIRE(neighbours_.announced() == plane_.neighbours.size());
    const packet::IpPrefix* last = nullptr;
    for (const auto& [key, route] : plane_.routes) {
      REQUIRE(last == nullptr || *last != key.first);
      last = &key.first;
    }
  }

  // The kernel has nothing left.
  void finish() {
    routes_.settle();
    check();
    begin_dump();
    end_dump();
    check();
    REQUIRE(plane_.routes.empty());
    REQUIRE(plane_.neighbours.empty());
    REQUIRE(routes_.prefixes() == 0);
    REQUIRE(routes_.nexthops().size() == 0);
    for (const std::uint32_t id : named_) {
      REQUIRE(!routes_.nexthops().in_use(id));
    }
  }

 private:
  void begin_dump() {
    routes_.nexthops().begin_dump();
    neighbours_.begin_dump();
    addresses_.begin_dump();
    ingress_.begin_link_addresses();
    routes_.begin_dump(4);
    routes_.begin_dump(6);
  }
  void end_dump() {
    routes_.settle();
    routes_.end_dump(4);
    routes_.end_dump(6);
    neighbours_.end_dump();
    addresses_.end_dump();
    ingress_.end_link_addresses();
    routes_.nexthops().end_dump();
  }

  Plane plane_;
  RouteShadow routes_{plane_};
  NeighbourShadow neighbours_{plane_, routes_.hops()};
  AddressShadow addresses_{plane_, routes_.hops()};
  IngressShadow ingress_{plane_, routes_.hops(), addresses_};
  std::set<std::uint32_t> named_;  // next-hop objects, by routes
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Mirror mirror;
  decode(std::span(reinterpret_cast<const std::byte*>(data), size), mirror);
  mirror.finish();
  return 0;
}
