#include "control/rtsp/port_towards.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "control/rtsp/transparent_socket.h"

namespace sluice::control::rtsp {
namespace {

constexpr std::size_t largest_answer = 8192;

// The entry of the table and not the next hop that it comes to, so that a route with several is seen as one.
bool ask(int fd, const packet::IpAddress& address) {
  struct {
    nlmsghdr header;
    rtmsg route;
    rtattr attribute;
    std::uint8_t destination[16];
  } request{};
  const std::size_t address_bytes = address.bits() / 8;
  request.header.nlmsg_len = static_cast<std::uint32_t>(sizeof request - sizeof request.destination + address_bytes);
  request.header.nlmsg_type = RTM_GETROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.route.rtm_family = address.family == 4 ? AF_INET : AF_INET6;
  request.route.rtm_dst_len = static_cast<std::uint8_t>(address.bits());
  request.route.rtm_flags = RTM_F_FIB_MATCH;
  request.attribute.rta_type = RTA_DST;
  request.attribute.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(address_bytes));
  std::memcpy(request.destination, address.bytes.data(), address_bytes);
  return send(fd, &request, request.header.nlmsg_len, 0) == static_cast<ssize_t>(request.header.nlmsg_len);
}

// 0: none, or several.
unsigned interface_towards(const packet::IpAddress& address) {
  const Fd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd || !ask(fd.get(), address)) return 0;
  alignas(nlmsghdr) char bytes[largest_answer];
  const ssize_t got = recv(fd.get(), bytes, sizeof bytes, 0);
  auto* const answer = reinterpret_cast<nlmsghdr*>(bytes);
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(rtmsg))) || answer->nlmsg_type != RTM_NEWROUTE) return 0;
  unsigned found = 0;
  auto left = static_cast<unsigned>(got - static_cast<ssize_t>(NLMSG_LENGTH(sizeof(rtmsg))));
  for (auto* one = RTM_RTA(static_cast<rtmsg*>(NLMSG_DATA(answer))); RTA_OK(one, left); one = RTA_NEXT(one, left)) {
    if (one->rta_type == RTA_MULTIPATH) return 0;
    if (one->rta_type == RTA_OIF && RTA_PAYLOAD(one) == sizeof found) std::memcpy(&found, RTA_DATA(one), sizeof found);
  }
  return found;
}

}  // namespace

std::optional<std::uint16_t> port_towards(const packet::IpAddress& address, const std::vector<std::string>& twins) {
  const unsigned found = interface_towards(address);
  char name[IF_NAMESIZE];
  if (found == 0 || if_indextoname(found, name) == nullptr) return std::nullopt;
  const auto at = std::ranges::find(twins, std::string_view(name));
  if (at == twins.end()) return std::nullopt;
  return static_cast<std::uint16_t>(at - twins.begin());
}

}  // namespace sluice::control::rtsp
