// One connection of a daemon: what it has joined, and what is still to be sent to it. Nothing waits.
//
// Thread-safety: none (the server's thread).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "ipsec/xfrm/requests.h"

namespace sluice::ipsec::xfrm {

class Connection {
 public:
  explicit Connection(int fd) : fd_(fd) {}  // takes it; connected, not blocking
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  std::uint32_t port() const { return port_; }
  bool listens_to(std::uint32_t groups) const { return (groups_ & groups) != 0; }

  // The next datagram, until the next call; nothing: none now. The daemon's end shows in is_over().
  std::optional<NetlinkBytes> receive();
  // True: the datagram was for this class alone (notice.h).
  bool take_notice(NetlinkBytes datagram);

  void send(Answer answer);
  // False: too much waits already.
  bool send_event(const Message& message);
  // As much as the socket takes.
  void flush();

  bool has_to_send() const { return !waiting_.empty() || dump_; }
  // Not while a long answer is under way.
  bool wants_requests() const { return !has_to_send() && !over_; }
  bool is_over() const { return over_; }

 private:
  static constexpr std::size_t most_waiting = 65536;     // messages
  static constexpr std::size_t longest_request = 65536;  // bytes
  bool send_now(NetlinkBytes bytes);
  void wipe_request();

  const int fd_;
  std::uint32_t groups_ = 0, port_ = 0;
  std::deque<Message> waiting_;
  Dump dump_;
  bool over_ = false;
  std::size_t received_ = 0;
  alignas(nlmsghdr) std::array<std::byte, longest_request> request_{};
};

}  // namespace sluice::ipsec::xfrm
