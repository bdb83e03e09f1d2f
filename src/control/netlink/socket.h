// A socket of the kernel's NETLINK_ROUTE family, subscribed to the changes that a router follows.
//
// Errors: one sentence each. Thread-safety: none (the control thread). Cost: one system call a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/netlink_request.h"
#include "packet/ip_address.h"

namespace sluice::control::netlink {

class Socket {
 public:
  // `receive_buffer`: bytes the kernel may hold for us before it drops notifications; more than net.core.rmem_max needs
  // CAP_NET_ADMIN, without it the kernel's limit is taken.
  static Expected<Socket> open(std::size_t receive_buffer);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int fd() const { return fd_; }
  std::uint32_t port_id() const { return port_id_; }

  struct Received {
    std::span<const std::byte> bytes;  // until the next call; empty: nothing is waiting
    bool lost = false;                 // the kernel dropped notifications (ENOBUFS), or the buffer was too small
  };
  Expected<Received> receive();

  // Asks for everything of one kind (RTM_GET*); the answer carries `sequence` and ends with NLMSG_DONE. False, here and
  // from probe(): the kernel has no capacity for the request now; it was not sent.
  Expected<bool> request_dump(std::uint16_t type, int address_family, std::uint32_t sequence);
  // Asks the kernel to verify a neighbour (NTF_USE), as if it had a packet for it. One that it does not know it
  // resolves when that may be new, and refuses otherwise.
  enum class Neighbour : bool { known, may_be_new };
  Expected<bool> probe(int ifindex, const packet::IpAddress& address, Neighbour neighbour);

 private:
  explicit Socket(int fd) : fd_(fd), buffer_(64 << 10) {}
  Expected<void> configure(std::size_t receive_buffer);
  Expected<bool> send(const NetlinkRequest& request);

  int fd_ = -1;
  std::uint32_t port_id_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace sluice::control::netlink
