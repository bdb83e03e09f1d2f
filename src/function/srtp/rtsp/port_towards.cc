#include "function/srtp/rtsp/port_towards.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "base/netlink_request.h"
#include "function/srtp/rtsp/transparent_socket.h"

namespace sluice::function::rtsp {
namespace {

constexpr std::size_t largest_answer = 8192;

// The entry of the table and not the next hop that it comes to, so that a route with several is seen as one.
bool ask_for_route(int fd, const packet::IpAddress& address) {
  rtmsg route{};
  route.rtm_family = address.family == 4 ? AF_INET : AF_INET6;
  route.rtm_dst_len = static_cast<std::uint8_t>(address.bits());
  route.rtm_flags = RTM_F_FIB_MATCH;
  NetlinkRequest request(RTM_GETROUTE, 0, route);
  request.attribute(RTA_DST, address.bytes.data(), address.bits() / 8);
  return send_request(fd, request);
}

// 0: none, or several.
unsigned interface_towards(const packet::IpAddress& address) {
  const Fd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd || !ask_for_route(fd.get(), address)) return 0;
  alignas(nlmsghdr) std::array<std::byte, largest_answer> bytes;
  const ssize_t got = recv(fd.get(), bytes.data(), bytes.size(), 0);
  if (got <= 0) return 0;
  unsigned found = 0;
  each_netlink_message(NetlinkBytes(bytes).first(static_cast<std::size_t>(got)),
                       [&](const nlmsghdr& header, NetlinkBytes body) {
                         if (header.nlmsg_type != RTM_NEWROUTE) return false;
                         const NetlinkBytes attributes = behind(body, sizeof(rtmsg));
                         const bool one_hop = find_netlink_attribute(attributes, RTA_MULTIPATH).empty();
                         if (one_hop) load_front(find_netlink_attribute(attributes, RTA_OIF), found);
                         return false;
                       });
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

}  // namespace sluice::function::rtsp
