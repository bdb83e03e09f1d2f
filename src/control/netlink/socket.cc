#include "control/netlink/socket.h"

#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace sluice::control::netlink {
namespace {

auto failure(const std::string& what) {
  return make_error("rtnetlink: cannot " + what + ": " + std::strerror(errno));
}

sockaddr_nl kernel_address() {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  return address;
}

}  // namespace

Expected<Socket> Socket::open(std::size_t receive_buffer) {
  Socket socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (socket.fd_ < 0) return failure("open a socket");
  if (auto done = socket.configure(receive_buffer); !done) return tl::unexpected(done.error());
  return socket;
}

Expected<void> Socket::configure(std::size_t receive_buffer) {
  const int bytes = static_cast<int>(receive_buffer);
  if (setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0 &&
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) < 0) {
    return failure("set the receive buffer");
  }
  sockaddr_nl address = kernel_address();
  socklen_t length = sizeof address;
  if (bind(fd_, reinterpret_cast<sockaddr*>(&address), length) < 0) return failure("bind");
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) < 0) return failure("read the port id");
  port_id_ = address.nl_pid;
  for (const int group : {RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE,
                          RTNLGRP_IPV6_ROUTE, RTNLGRP_NEXTHOP, RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF}) {
    // Kernels before 5.3 have no next-hop objects.
    if (setsockopt(fd_, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) < 0 && group != RTNLGRP_NEXTHOP) {
      return failure("subscribe to group " + std::to_string(group));
    }
  }
  return {};
}

Socket::Socket(Socket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), port_id_(other.port_id_), buffer_(std::move(other.buffer_)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(port_id_, other.port_id_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Expected<Socket::Received> Socket::receive() {
  for (;;) {
    sockaddr_nl sender{};
    iovec part{buffer_.data(), buffer_.size()};
    msghdr message{};
    message.msg_name = &sender;
    message.msg_namelen = sizeof sender;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t length = recvmsg(fd_, &message, 0);
    if (length < 0) {
      if (errno == EAGAIN) return Received{};
      if (errno == EINTR) continue;
      if (errno == ENOBUFS) return Received{{}, true};
      return failure("receive");
    }
    if (sender.nl_pid != 0) continue;  // only the kernel is believed; libmnl's own receiving does not say who sent
    const bool cut = (message.msg_flags & MSG_TRUNC) != 0;
    return Received{std::span(buffer_).first(static_cast<std::size_t>(length)), cut};
  }
}

Expected<bool> Socket::send(const NetlinkRequest& request) {
  if (send_request(fd_, request)) return true;
  if (errno == ENOBUFS || errno == ENOMEM || errno == EAGAIN || errno == EINTR) return false;
  return failure("send a request");
}

// Each kind has a fixed part of its own, which begins with the family.
Expected<bool> Socket::request_dump(std::uint16_t type, int address_family, std::uint32_t sequence) {
  const auto dump = [&]<typename Fixed>(Fixed fixed) {
    std::memcpy(&fixed, &address_family, 1);
    NetlinkRequest request(type, NLM_F_DUMP, fixed);
    return send(request.sequence(sequence));
  };
  switch (type) {
    case RTM_GETNEIGH:
      return dump(ndmsg{});
    case RTM_GETROUTE:
      return dump(rtmsg{});
    case RTM_GETNEXTHOP:
      return dump(nhmsg{});
    case RTM_GETNETCONF:
      return dump(netconfmsg{});
    default:
      return dump(ifinfomsg{});
  }
}

Expected<bool> Socket::probe(int ifindex, const packet::IpAddress& address, Neighbour neighbour) {
  ndmsg fixed{};
  fixed.ndm_family = address.family == 4 ? AF_INET : AF_INET6;
  fixed.ndm_ifindex = ifindex;
  fixed.ndm_state = NUD_NONE;
  fixed.ndm_flags = NTF_USE;
  NetlinkRequest request(RTM_NEWNEIGH, neighbour == Neighbour::may_be_new ? NLM_F_CREATE : 0, fixed);
  request.attribute(NDA_DST, address.bytes.data(), address.bits() / 8);
  return send(request);
}

}  // namespace sluice::control::netlink
