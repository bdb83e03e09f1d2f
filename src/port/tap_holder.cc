#include "port/tap_holder.h"

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace sluice::port {
namespace {

constexpr std::size_t largest_answer = 32768;  // one interface, also with statistics and many virtual functions

struct Request {
  nlmsghdr header;
  ifinfomsg link;
};

// Attributes as <linux/rtnetlink.h> lays them out.
struct Attributes {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;

  // Empty (without data) when there is none of that type.
  Attributes find(unsigned short type) const {
    for (std::size_t at = 0; at + sizeof(rtattr) <= bytes;) {
      rtattr head;
      std::memcpy(&head, data + at, sizeof head);
      if (head.rta_len < sizeof head || head.rta_len > bytes - at) {
        break;
      }
      if ((head.rta_type & NLA_TYPE_MASK) == type) {
        return {data + at + RTA_LENGTH(0), head.rta_len - RTA_LENGTH(0)};
      }
      at += RTA_ALIGN(head.rta_len);
    }
    return {};
  }

  // The number that the attribute holds, in the machine's own order; 0 when there is none.
  std::uint32_t number() const {
    std::uint32_t value = 0;
    if (data != nullptr) {
      std::memcpy(&value, data, std::min(bytes, sizeof value));
    }
    return value;
  }

  bool is(std::string_view word) const {
    return data != nullptr && bytes >= word.size() && std::memcmp(data, word.data(), word.size()) == 0 &&
           (bytes == word.size() || data[word.size()] == std::byte{0});
  }
};

// The kernel's answer about interface `index`; empty, and errno says why, when there is none.
std::vector<std::byte> ask_for_link(unsigned index) {
  const int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (netlink < 0) {
    return {};
  }
  Request request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.link.ifi_index = static_cast<int>(index);
  std::vector<std::byte> answer(largest_answer);
  const bool sent = send(netlink, &request, sizeof request, 0) >= 0;
  const ssize_t length = sent ? recv(netlink, answer.data(), answer.size(), 0) : -1;
  const int error = errno;
  close(netlink);
  errno = error;
  answer.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return answer;
}

}  // namespace

Expected<bool> tap_is_held(const std::string& interface) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) {
    return false;
  }
  const std::vector<std::byte> answer = ask_for_link(index);
  nlmsghdr header{};
  if (answer.size() >= sizeof(Request)) {
    std::memcpy(&header, answer.data(), sizeof header);
  }
  if (header.nlmsg_type != RTM_NEWLINK) {
    return make_error("cannot ask the kernel whether '" + interface +
                      "' is in use: " + (answer.empty() ? std::strerror(errno) : "it has no answer"));
  }
  const Attributes link{answer.data() + sizeof(Request), answer.size() - sizeof(Request)};
  const Attributes info = link.find(IFLA_LINKINFO);
  if (!info.find(IFLA_INFO_KIND).is("tun")) {
    return false;
  }
  // Queues are told of a multi-queue one only; any other has a carrier while it is held, unless its holder took it
  // away.
  const Attributes tun = info.find(IFLA_INFO_DATA);
  return tun.find(IFLA_TUN_PERSIST).number() == 0 || tun.find(IFLA_TUN_NUM_QUEUES).number() != 0 ||
         tun.find(IFLA_TUN_NUM_DISABLED_QUEUES).number() != 0 || link.find(IFLA_CARRIER).number() != 0;
}

}  // namespace sluice::port
