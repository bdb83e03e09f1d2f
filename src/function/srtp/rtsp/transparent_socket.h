// The proxy's TCP sockets, non-blocking. With other hosts' addresses (IP_TRANSPARENT): a listener on a twin that
// accepts for any address, and a connection that comes from one. With the host's own, for the explicit mode.
//
// Errors: one sentence, with the privilege that is missing. Thread-safety: any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "packet/ip_address.h"

namespace sluice::function::rtsp {

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

// Takes connections that come in by `twin`, whatever address they are for; or for this one of the host's, which need
// not be there yet.
Expected<Fd> listen_on(const std::string& twin, int family, std::uint16_t port);
Expected<Fd> listen_on(const std::string& twin, const Endpoint& own);

// Begins to connect to `server` from the address of `client`, with a port of its own.
Expected<Fd> connect_from(const packet::IpAddress& client, const Endpoint& server);
// From the address that the host's routes name.
Expected<Fd> connect_to(const Endpoint& server);
// The socket's own end; without an address if it has none.
Endpoint own_end(int fd);

struct Accepted {
  Fd fd;
  Endpoint client, server;  // the server that the client means
  Endpoint own = {};        // explicit mode: the end of the host's that the client has opened; else without an address
  std::uint16_t port = 0;   // of the gateway, by its index: whose twin the connection came by
  std::optional<std::size_t> upstream = {};  // explicit mode: which of RtspOptions::upstream `server` is
};
// The next connection; an Fd that is none: errno says why.
Accepted accept_from(int listener);

// Notices a peer that has vanished within a minute, and sends what is small at once.
void set_usual_options(int fd);

// Asks a peer whether it is there, from now on each second: TCP's keep-alive. One that does not answer three times, or
// that knows nothing of the connection, as a host that has begun anew, ends it: the socket says so as of any end.
void probe(int fd);
// In what time probe() has its answer, or its end.
inline constexpr std::chrono::seconds probe_time{4};
enum class Probed : std::uint8_t { nothing_yet, there, gone };
// What is known `since` a probe() began. gone: also where data waited for its ACK meanwhile, when there are no probes.
Probed probed(int fd, std::chrono::nanoseconds since);

}  // namespace sluice::function::rtsp
