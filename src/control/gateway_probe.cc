#include "control/gateway_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace sluice::control {
namespace {
constexpr std::uint16_t discard_port = 9;
}

GatewayProbe::~GatewayProbe() {
  for (const int socket : {socket4_, socket6_}) {
    if (socket >= 0) {
      close(socket);
    }
  }
}

void GatewayProbe::send(const packet::IpAddress& gateway) {
  const bool v4 = gateway.family == 4;
  int& socket = v4 ? socket4_ : socket6_;
  if (socket < 0) {
    socket = ::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  }
  if (v4) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(discard_port);
    std::memcpy(&to.sin_addr, gateway.bytes.data(), sizeof to.sin_addr);
    sendto(socket, nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  } else {
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(discard_port);
    std::memcpy(&to.sin6_addr, gateway.bytes.data(), sizeof to.sin6_addr);
    sendto(socket, nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
}

}  // namespace sluice::control
