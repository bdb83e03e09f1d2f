#include "function/vxlan/next_hops.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/netlink_request.h"
#include "port/interface_request.h"
#include "port/interface_settings.h"

namespace sluice::function {
namespace {

using packet::IpAddress;

constexpr timeval answer_patience{1, 0};
// Of a change; others that come with it are then heard of together.
constexpr std::chrono::milliseconds settle_time(20);
constexpr unsigned usable = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;

std::uint8_t kernel_family(const IpAddress& address) {
  return address.family == 4 ? AF_INET : AF_INET6;
}

// Sends the request; f(header, body) gets the answer to it. 0, or errno as the kernel answers.
template <typename F>
int ask_for(int fd, const NetlinkRequest& request, std::uint32_t sequence, F f) {
  if (!send_request(fd, request)) return errno;
  alignas(nlmsghdr) std::array<std::byte, 8192> buffer;
  while (true) {
    const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    bool answered = false;
    int result = EBADMSG;
    each_netlink_message(NetlinkBytes(buffer).first(static_cast<std::size_t>(got)),
                         [&](const nlmsghdr& header, NetlinkBytes body) {
                           if (header.nlmsg_seq != sequence) return true;  // to one that came too late
                           answered = true;
                           int error = 0;
                           if (header.nlmsg_type == NLMSG_ERROR) {
                             result = load_front(body, error) && error != 0 ? -error : EBADMSG;
                           } else {
                             f(header, body);
                             result = 0;
                           }
                           return false;
                         });
    if (answered) return result;
  }
}

std::string unreachable_why(unsigned char type) {
  switch (type) {
    case RTN_LOCAL:
      return "is an address of this host itself";
    case RTN_BROADCAST:
    case RTN_MULTICAST:
      return "is a broadcast or group address there";
    default:
      return "the kernel's route is an unreachable, prohibit or blackhole one";
  }
}

}  // namespace

Expected<NextHops> NextHops::open(std::vector<std::string> twins) {
  NextHops hops(std::move(twins));
  const auto failure = [](const char* what) {
    return make_error("[vxlan] cannot " + std::string(what) + " (rtnetlink): " + std::strerror(errno));
  };
  hops.asking_ = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  hops.hearing_ = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (hops.asking_ < 0 || hops.hearing_ < 0) return failure("ask for routes and neighbours");
  setsockopt(hops.asking_, SOL_SOCKET, SO_RCVTIMEO, &answer_patience, sizeof answer_patience);
  sockaddr_nl own{};
  own.nl_family = AF_NETLINK;
  if (bind(hops.hearing_, reinterpret_cast<const sockaddr*>(&own), sizeof own) < 0) return failure("bind");
  for (const int group : {RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE,
                          RTNLGRP_IPV6_ROUTE}) {
    if (setsockopt(hops.hearing_, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) < 0) {
      return failure("hear of changes of routes and neighbours");
    }
  }
  return hops;
}

NextHops::NextHops(NextHops&& other) noexcept
    : twins_(std::move(other.twins_)),
      asking_(std::exchange(other.asking_, -1)),
      hearing_(std::exchange(other.hearing_, -1)),
      sequence_(other.sequence_) {}

NextHops& NextHops::operator=(NextHops&& other) noexcept {
  std::swap(twins_, other.twins_);
  std::swap(asking_, other.asking_);
  std::swap(hearing_, other.hearing_);
  std::swap(sequence_, other.sequence_);
  return *this;
}

NextHops::~NextHops() {
  if (asking_ >= 0) close(asking_);
  if (hearing_ >= 0) close(hearing_);
}

bool NextHops::is_own(const IpAddress& address) {
  rtmsg fixed{};
  fixed.rtm_family = kernel_family(address);
  fixed.rtm_dst_len = static_cast<unsigned char>(address.bits());
  NetlinkRequest request(RTM_GETROUTE, 0, fixed);
  request.attribute(RTA_DST, address.bytes.data(), address.bits() / 8);
  request.sequence(++sequence_);
  bool own = false;
  ask_for(asking_, request, sequence_, [&](const nlmsghdr&, NetlinkBytes body) {
    rtmsg route{};
    own = load_front(body, route) && route.rtm_type == RTN_LOCAL;
  });
  return own;
}

NextHops::Way NextHops::way_to(const IpAddress& local, const IpAddress& remote) {
  rtmsg fixed{};
  fixed.rtm_family = kernel_family(remote);
  fixed.rtm_dst_len = fixed.rtm_src_len = static_cast<unsigned char>(remote.bits());
  NetlinkRequest request(RTM_GETROUTE, 0, fixed);
  request.attribute(RTA_DST, remote.bytes.data(), remote.bits() / 8);
  request.attribute(RTA_SRC, local.bytes.data(), local.bits() / 8);
  request.sequence(++sequence_);
  Way way;
  way.gateway = remote;
  const int error = ask_for(asking_, request, sequence_, [&](const nlmsghdr&, NetlinkBytes body) {
    rtmsg route{};
    if (!load_front(body, route)) return;
    if (route.rtm_type != RTN_UNICAST) {
      way.why = unreachable_why(route.rtm_type);
      return;
    }
    each_netlink_attribute(behind(body, sizeof route), [&](int type, NetlinkBytes value) {
      std::uint16_t via_family = 0;
      if (type == RTA_OIF) {
        load_front(value, way.interface);
      } else if (type == RTA_GATEWAY && value.size() == remote.bits() / 8) {
        way.gateway = IpAddress::from_bytes(remote.family, value.data());
      } else if (type == RTA_VIA && load_front(value, via_family) && via_family == AF_INET6 && value.size() == 18) {
        way.gateway = IpAddress::from_bytes(6, value.data() + 2);
      }
      return true;
    });
  });
  // Of a source that is no address of this host kernels say EINVAL or ENETUNREACH, as of a way that is not there.
  if (error != 0 && !is_own(local)) {
    way.why = "no interface here has the tunnel's address, local = \"" + local.str() + "\"";
  } else if (error != 0) {
    way.why = std::string("the kernel has no route there: ") + std::strerror(error);
  } else if (way.why.empty() && way.interface == 0) {
    way.why = "the kernel's route names no interface";
  }
  return way;
}

bool NextHops::resolve(int interface, const IpAddress& gateway, packet::MacAddress& mac) {
  ndmsg fixed{};
  fixed.ndm_family = kernel_family(gateway);
  fixed.ndm_ifindex = interface;
  NetlinkRequest request(RTM_GETNEIGH, 0, fixed);
  request.attribute(NDA_DST, gateway.bytes.data(), gateway.bits() / 8);
  request.sequence(++sequence_);
  bool known = false;
  unsigned state = NUD_NONE;
  ask_for(asking_, request, sequence_, [&](const nlmsghdr&, NetlinkBytes body) {
    ndmsg neighbour{};
    if (!load_front(body, neighbour)) return;
    state = neighbour.ndm_state;
    const NetlinkBytes address = find_netlink_attribute(behind(body, sizeof neighbour), NDA_LLADDR);
    known = (state & usable) != 0 && load_front(address, mac.bytes);
  });
  if (!known || state == NUD_STALE) look_for(interface, gateway);
  return known;
}

void NextHops::look_for(int interface, const IpAddress& gateway) {
  ndmsg fixed{};
  fixed.ndm_family = kernel_family(gateway);
  fixed.ndm_ifindex = interface;
  fixed.ndm_state = NUD_NONE;
  fixed.ndm_flags = NTF_USE;
  NetlinkRequest request(RTM_NEWNEIGH, NLM_F_CREATE, fixed);
  request.attribute(NDA_DST, gateway.bytes.data(), gateway.bits() / 8);
  send_request(asking_, request);  // without NLM_F_ACK an answer comes of mistakes alone; the next look shows it
}

NextHop NextHops::find(const IpAddress& local, const IpAddress& remote) {
  NextHop hop;
  const Way way = way_to(local, remote);
  hop.why = way.why;
  if (!hop.why.empty()) return hop;
  char name[IF_NAMESIZE];
  if (if_indextoname(static_cast<unsigned>(way.interface), name) == nullptr) {
    hop.why = "the route's interface is gone";
    return hop;
  }
  const auto twin = std::ranges::find(twins_, name);
  if (twin == twins_.end()) {
    hop.why = "the kernel's route is by " + std::string(name) + ", which is no twin of a port that a tunnel can use";
    return hop;
  }
  hop.port = static_cast<std::uint16_t>(twin - twins_.begin());
  hop.mtu = port::interface_mtu(name);
  ifreq link{};
  if (!port::interface_request(name, SIOCGIFHWADDR, link)) {
    hop.why = "the link address of " + std::string(name) + " cannot be read: " + std::strerror(errno);
    return hop;
  }
  std::memcpy(hop.source_mac.bytes.data(), link.ifr_hwaddr.sa_data, hop.source_mac.bytes.size());
  hop.resolved = resolve(way.interface, way.gateway, hop.mac);
  if (!hop.resolved) {
    hop.why = "nobody answers for " + way.gateway.str() + " on " + name + " (ip neigh)";
  }
  return hop;
}

void NextHops::wait(int wake_fd, std::chrono::milliseconds longest) {
  std::array<pollfd, 2> fds{{{hearing_, POLLIN, 0}, {wake_fd, POLLIN, 0}}};
  poll(fds.data(), fds.size(), static_cast<int>(longest.count()));
  if ((fds[0].revents & (POLLIN | POLLERR)) == 0) return;
  poll(&fds[1], 1, static_cast<int>(settle_time.count()));
  alignas(nlmsghdr) std::array<std::byte, 8192> ignored;
  // What has changed does not matter: all is asked again. ENOBUFS says that there was more.
  while (true) {
    const ssize_t got = recv(hearing_, ignored.data(), ignored.size(), MSG_DONTWAIT);
    if (got < 0 && errno != ENOBUFS && errno != EINTR) return;
  }
}

}  // namespace sluice::function
