// Makes the kernel resolve gateways that only Sluice's own static routes name: the kernel has no traffic for them and
// would never ask for their link address. A datagram to the discard port (RFC 863) does it; the mirror then learns the
// neighbour.
#pragma once

#include <vector>

#include "packet/ip_address.h"

namespace sluice::control {

class GatewayProbe {
 public:
  GatewayProbe() = default;
  ~GatewayProbe();
  GatewayProbe(const GatewayProbe&) = delete;
  GatewayProbe& operator=(const GatewayProbe&) = delete;

  // Never blocks; a probe that the kernel refuses (no route yet) is simply sent again by the next call.
  void send(const packet::IpAddress& gateway);

 private:
  int socket4_ = -1;
  int socket6_ = -1;
};

}  // namespace sluice::control
