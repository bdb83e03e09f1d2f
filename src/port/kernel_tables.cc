#include "port/kernel_tables.h"

#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/netlink_request.h"
#include "packet/ip_address.h"

namespace sluice::port {
namespace {

struct Route {
  packet::IpPrefix to;
  std::uint32_t table = 0, metric = 0;
  std::uint8_t type = RTN_UNSPEC;
  std::string way = {};  // what it says of where packets go, as bytes
};

bool covers(const packet::IpPrefix& outer, const packet::IpPrefix& inner) {
  return outer.length <= inner.length && outer.contains(inner.address);
}

void append(std::string& to, int attribute, NetlinkBytes payload) {
  to += static_cast<char>(attribute);
  to.append(reinterpret_cast<const char*>(payload.data()), payload.size());
}

std::optional<Route> parse_route(NetlinkBytes body) {
  rtmsg head;
  if (!load_front(body, head) || (head.rtm_family != AF_INET && head.rtm_family != AF_INET6)) return std::nullopt;
  Route route{.to = {}, .table = head.rtm_table, .type = head.rtm_type};
  packet::IpAddress address =
      head.rtm_family == AF_INET ? packet::IpAddress::v4(0) : packet::IpAddress::from_bytes(6, in6addr_any.s6_addr);
  bool sound = head.rtm_dst_len <= address.bits() && (head.rtm_flags & RTM_F_CLONED) == 0;
  const auto load = [&](int type, NetlinkBytes payload) {
    switch (type) {
      case RTA_DST:
        sound = sound && payload.size() == address.bits() / 8;
        if (sound) address = packet::IpAddress::from_bytes(address.family, payload.data());
        return sound;
      case RTA_TABLE:
        return load_front(payload, route.table);
      case RTA_PRIORITY:
        return load_front(payload, route.metric);
      case RTA_OIF:
      case RTA_GATEWAY:
      case RTA_VIA:
      case RTA_MULTIPATH:
      case RTA_NH_ID:
      case RTA_ENCAP:
        append(route.way, type, payload);
        return true;
      default:
        return true;
    }
  };
  if (!each_netlink_attribute(behind(body, sizeof head), load) || !sound) return std::nullopt;
  route.way += static_cast<char>(head.rtm_type);
  route.way += static_cast<char>(head.rtm_tos);
  route.to = packet::IpPrefix::of(address, head.rtm_dst_len);
  return route;
}

// Calls f with each route of the table until it answers false. False: the dump failed, or was not of one state.
bool each_route(int fd, int family, std::uint32_t table, const std::function<bool(const Route&)>& f) {
  constexpr std::size_t most_of_an_answer = 65536;
  rtmsg wanted{};
  wanted.rtm_family = family == 4 ? AF_INET : AF_INET6;
  NetlinkRequest request(RTM_GETROUTE, NLM_F_DUMP, wanted);
  request.attribute(RTA_TABLE, table);
  if (!send_request(fd, request)) return false;
  bool whole = true, wants_more = true;
  std::vector<std::byte> answer(most_of_an_answer);
  // To its end, whatever f says: the socket is to be empty for who asks next.
  for (bool done = false; !done;) {
    const ssize_t got = recv(fd, answer.data(), answer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    each_netlink_message({answer.data(), static_cast<std::size_t>(got)}, [&](const nlmsghdr& head, NetlinkBytes body) {
      whole = whole && (head.nlmsg_flags & NLM_F_DUMP_INTR) == 0;
      done = head.nlmsg_type == NLMSG_DONE || head.nlmsg_type == NLMSG_ERROR;
      int error = 0;
      // IPv4 has no table without routes.
      if (done && load_front(body, error) && error != 0 && error != -ENOENT) whole = false;
      const auto route = head.nlmsg_type == RTM_NEWROUTE ? parse_route(body) : std::nullopt;
      if (route && route->table == table && wants_more) wants_more = f(*route);
      return !done;
    });
  }
  return whole;
}

// A route of the table, and what main says of its packets.
struct Compared {
  Route route;
  std::optional<Route> covering = {};  // of main, the longest, and of these that with the lowest metric
  bool differs_inside = false;         // main has a longer prefix within it, which leads elsewhere

  void look(const Route& of_main) {
    if (covers(of_main.to, route.to)) {
      const auto rank = [](const Route& one) {
        return std::pair(one.to.length, std::numeric_limits<std::uint32_t>::max() - one.metric);
      };
      if (!covering || rank(of_main) > rank(*covering)) covering = of_main;
    } else if (covers(route.to, of_main.to) && of_main.way != route.way) {
      differs_inside = true;
    }
  }
  bool agrees() const { return covering && covering->way == route.way && !differs_inside; }
};

}  // namespace

bool leads_as_main(int family, std::uint32_t table) {
  constexpr int netlink_level = 270, strict = 12;  // SOL_NETLINK, NETLINK_GET_STRICT_CHK: the table alone is dumped
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), on = 1;
  if (fd < 0) return false;
  const std::shared_ptr<void> closed(nullptr, [fd](std::nullptr_t) { close(fd); });
  const timeval patience{2, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, netlink_level, strict, &on, sizeof on);
  std::vector<Compared> routes;
  bool too_many = false;
  const bool read = each_route(fd, family, table, [&](const Route& route) {
    if (route.type == RTN_THROW) return true;  // as if it were not there
    too_many = routes.size() == compared_routes;
    if (!too_many) routes.push_back({route});
    return !too_many;
  });
  if (!read || too_many) return false;
  if (routes.empty()) return true;
  const bool read_main = each_route(fd, family, RT_TABLE_MAIN, [&](const Route& route) {
    for (Compared& one : routes) one.look(route);
    return std::ranges::none_of(routes, &Compared::differs_inside);
  });
  return read_main && std::ranges::all_of(routes, &Compared::agrees);
}

}  // namespace sluice::port
