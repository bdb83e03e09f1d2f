#include "port/tap_holder.h"

#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/in_use.h"
#include "base/netlink_request.h"

namespace sluice::port {
namespace {

constexpr std::size_t largest_answer = 32768;  // one interface, also with statistics and many virtual functions

constexpr std::size_t attributes_begin = MNL_NLMSG_HDRLEN + MNL_ALIGN(sizeof(ifinfomsg));

// The number that the attribute holds, in the machine's own order; 0 when there is none.
std::uint32_t number_of(NetlinkBytes payload) {
  std::uint32_t value = 0;
  if (!payload.empty()) {
    std::memcpy(&value, payload.data(), std::min(payload.size(), sizeof value));
  }
  return value;
}

bool is_word(NetlinkBytes payload, std::string_view word) {
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  return text.substr(0, text.find('\0')) == word;
}

// The kernel's answer about interface `index`; empty, and errno says why, when there is none.
std::vector<std::byte> ask_for_link(unsigned index) {
  const int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (netlink < 0) {
    return {};
  }
  ifinfomsg link{};
  link.ifi_index = static_cast<int>(index);
  std::vector<std::byte> answer(largest_answer);
  const bool sent = send_request(netlink, NetlinkRequest(RTM_GETLINK, 0, link));
  const ssize_t length = sent ? recv(netlink, answer.data(), answer.size(), 0) : -1;
  const int error = errno;
  close(netlink);
  errno = error;
  answer.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return answer;
}

// The attributes of an interface; none where there is no such interface.
Expected<std::vector<std::byte>> link_of(const std::string& interface) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) {
    return std::vector<std::byte>();
  }
  std::vector<std::byte> answer = ask_for_link(index);
  nlmsghdr header{};
  if (answer.size() >= attributes_begin) {
    std::memcpy(&header, answer.data(), sizeof header);
  }
  if (header.nlmsg_type != RTM_NEWLINK) {
    return make_error("cannot ask the kernel whether '" + interface +
                      "' is in use: " + (answer.empty() ? std::strerror(errno) : "it has no answer"));
  }
  answer.erase(answer.begin(), answer.begin() + attributes_begin);
  return answer;
}

// What a TUN or TAP says of itself; nothing: it is another kind of interface.
std::optional<NetlinkBytes> tun_of(NetlinkBytes link) {
  const NetlinkBytes info = find_netlink_attribute(link, IFLA_LINKINFO);
  if (!is_word(find_netlink_attribute(info, IFLA_INFO_KIND), "tun")) {
    return std::nullopt;
  }
  return find_netlink_attribute(info, IFLA_INFO_DATA);
}

}  // namespace

Expected<bool> is_tap(const std::string& interface) {
  const auto link = link_of(interface);
  if (!link) {
    return tl::unexpected(link.error());
  }
  const auto tun = tun_of(*link);
  return tun && number_of(find_netlink_attribute(*tun, IFLA_TUN_TYPE)) == IFF_TAP;
}

Expected<bool> tap_is_held(const std::string& interface) {
  const auto link = link_of(interface);
  if (!link) {
    return tl::unexpected(link.error());
  }
  const auto tun = tun_of(*link);
  if (!tun) {
    return false;
  }
  // Queues are shown of a multi-queue one only; any other has a carrier while it is held, unless its holder took it
  // away.
  const auto of_tun = [&](int type) { return number_of(find_netlink_attribute(*tun, type)); };
  return of_tun(IFLA_TUN_PERSIST) == 0 || of_tun(IFLA_TUN_NUM_QUEUES) != 0 ||
         of_tun(IFLA_TUN_NUM_DISABLED_QUEUES) != 0 || number_of(find_netlink_attribute(*link, IFLA_CARRIER)) != 0;
}

std::string tap_in_use(const std::string& interface) {
  return "the TAP interface '" + interface + "'" + std::string(in_use_by_another) + "program";
}

}  // namespace sluice::port
