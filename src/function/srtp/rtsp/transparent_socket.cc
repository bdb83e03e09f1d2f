#include "function/srtp/rtsp/transparent_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/in_use.h"
#include "function/srtp/rtsp_options.h"

namespace sluice::function::rtsp {
namespace {

constexpr int backlog = 1024;
constexpr int keep_idle = 20, keep_interval = 10, keep_count = 3;  // seconds, seconds, probes

bool set(int fd, int level, int name, int value = 1) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

bool make_transparent(int fd, int family) {
  return family == 4 ? set(fd, SOL_IP, IP_TRANSPARENT)
                     : set(fd, SOL_IPV6, IPV6_TRANSPARENT) && set(fd, SOL_IPV6, IPV6_V6ONLY);
}

socklen_t fill(const Endpoint& from, sockaddr_storage& storage) {
  storage = {};
  if (from.address.family == 6) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(from.port);
    std::memcpy(&v6.sin6_addr, from.address.bytes.data(), sizeof v6.sin6_addr);
    return sizeof v6;
  }
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(from.port);
  std::memcpy(&v4.sin_addr, from.address.bytes.data(), sizeof v4.sin_addr);
  return sizeof v4;
}

Endpoint endpoint_of(const sockaddr_storage& storage) {
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    return {packet::IpAddress::from_bytes(6, &v6.sin6_addr), ntohs(v6.sin6_port)};
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
  return {packet::IpAddress::from_bytes(4, &v4.sin_addr), ntohs(v4.sin_port)};
}

std::string why(int error) {
  if (error == EPERM || error == EACCES) return "no permission: run as root or with CAP_NET_ADMIN";
  if (error == EADDRINUSE) {
    return "the port" + std::string(in_use_by_another) +
           "program of this host: end what listens there, or take it out of ports";
  }
  return std::strerror(error);
}

// Of a listener. Only bind() says EACCES, to who may not have a port as low.
std::string why_not_listening(int error) {
  if (error != EACCES) return why(error);
  return "ports as low are privileged (net.ipv4.ip_unprivileged_port_start): run as root or with CAP_NET_BIND_SERVICE, "
         "which a systemd unit has to name in CapabilityBoundingSet";
}

// What all of them send is known by its TTL (rtsp_guard.h); connections have it from their listener.
Fd make_socket(int family) {
  Fd fd(socket(family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const bool known = fd && (family == 4 ? set(fd.get(), SOL_IP, IP_TTL, function::proxy_ttl)
                                        : set(fd.get(), SOL_IPV6, IPV6_UNICAST_HOPS, function::proxy_ttl));
  return known ? std::move(fd) : Fd();
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

Expected<Fd> listen_on(const std::string& twin, int family, std::uint16_t port) {
  return listen_on(twin,
                   {family == 4 ? packet::IpAddress::v4(0) : packet::IpAddress::from_bytes(6, &in6addr_any), port});
}

Expected<Fd> listen_on(const std::string& twin, const Endpoint& own) {
  const int family = own.address.family;
  Fd fd = make_socket(family);
  sockaddr_storage at;
  const socklen_t size = fill(own, at);
  const bool done =
      fd && set(fd.get(), SOL_SOCKET, SO_REUSEADDR) && make_transparent(fd.get(), family) &&
      setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, twin.c_str(), static_cast<socklen_t>(twin.size() + 1)) == 0 &&
      bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size) == 0 && listen(fd.get(), backlog) == 0;
  if (!done) {
    return make_error("[srtp.rtsp] ports: cannot listen on port " + std::to_string(own.port) + " of the twin " + twin +
                      ": " + why_not_listening(errno));
  }
  return fd;
}

namespace {

Expected<Fd> begin_to_connect(Fd fd, const Endpoint& server) {
  sockaddr_storage there;
  const socklen_t size = fill(server, there);
  set_usual_options(fd.get());
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&there), size) != 0 && errno != EINPROGRESS) {
    return make_error("cannot connect to " + server.str() + ": " + why(errno));
  }
  return fd;
}

}  // namespace

Expected<Fd> connect_from(const packet::IpAddress& client, const Endpoint& server) {
  Fd fd = make_socket(server.address.family);
  sockaddr_storage here;
  const socklen_t here_size = fill({client, 0}, here);
  const bool bound = fd && make_transparent(fd.get(), server.address.family) &&
                     set(fd.get(), SOL_IP, IP_BIND_ADDRESS_NO_PORT) &&
                     bind(fd.get(), reinterpret_cast<sockaddr*>(&here), here_size) == 0;
  if (!bound) return make_error("cannot take the address " + client.str() + ": " + why(errno));
  return begin_to_connect(std::move(fd), server);
}

Expected<Fd> connect_to(const Endpoint& server) {
  Fd fd = make_socket(server.address.family);
  if (!fd) return make_error("cannot connect to " + server.str() + ": " + why(errno));
  return begin_to_connect(std::move(fd), server);
}

Endpoint own_end(int fd) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return {};
  return endpoint_of(own);
}

Accepted accept_from(int listener) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  Accepted accepted;
  accepted.fd = Fd(accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted.fd) return accepted;
  accepted.client = endpoint_of(peer);
  accepted.server = own_end(accepted.fd.get());
  set_usual_options(accepted.fd.get());
  return accepted;
}

void set_usual_options(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY);
  set(fd, SOL_SOCKET, SO_KEEPALIVE);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, keep_idle);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, keep_interval);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, keep_count);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (keep_idle + keep_interval * keep_count) * 1000);
}

// The timeout would end it at the first probe that is not answered, which may be lost. TCP_KEEPIDLE begins.
void probe(int fd) {
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, keep_count);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
}

Probed probed(int fd, std::chrono::nanoseconds since) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return Probed::nothing_yet;
  if (info.tcpi_state == TCP_CLOSE) return Probed::gone;
  const std::chrono::milliseconds heard(info.tcpi_last_ack_recv);
  if (heard <= since) return Probed::there;
  return info.tcpi_unacked != 0 && since >= probe_time ? Probed::gone : Probed::nothing_yet;
}

}  // namespace sluice::function::rtsp
