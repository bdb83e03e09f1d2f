// What the preload library says of a socket that is no netlink socket any more (preload.cc): which multicast groups it
// has joined, and which port it would have. A message of netlink's form, alone in its datagram; nothing answers it.
//
// For both sides of the connection, which may be of different builds: it does not change.
#pragma once

#include <linux/netlink.h>

#include <cstdint>

namespace sluice::ipsec::xfrm {

struct Notice {
  nlmsghdr header;
  std::uint32_t groups;  // bits as of sockaddr_nl::nl_groups
  std::uint32_t port;    // of the answers: nlmsg_pid
};
static_assert(sizeof(Notice) == 24);
inline constexpr std::uint16_t notice_type = 0xfff0;  // no message of XFRM

}  // namespace sluice::ipsec::xfrm
