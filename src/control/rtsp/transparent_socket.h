// TCP sockets with other hosts' addresses (IP_TRANSPARENT), non-blocking: a listener on a twin that accepts for any
// address, and a connection that comes from one.
//
// Errors: one sentence, with the privilege that is missing. Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "packet/ip_address.h"

namespace sluice::control::rtsp {

struct Endpoint {
  packet::IpAddress address;
  std::uint16_t port = 0;

  std::string str() const {
    return (address.family == 6 ? "[" + address.str() + "]" : address.str()) + ':' + std::to_string(port);
  }
};

// A file descriptor that closes.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Takes connections that come in by `twin`, whatever address they are for.
Expected<Fd> listen_on(const std::string& twin, int family, std::uint16_t port);

// Begins to connect to `server` from the address of `client`, with a port of its own.
Expected<Fd> connect_from(const packet::IpAddress& client, const Endpoint& server);

struct Accepted {
  Fd fd;
  Endpoint client, server;  // the server that the client means
};
// The next connection; an Fd that is none: errno says why.
Accepted accept_from(int listener);

// Notices a peer that has vanished within a minute, and sends what is small at once.
void set_usual_options(int fd);

}  // namespace sluice::control::rtsp
