#include "control/host_log.h"

#include <spdlog/spdlog.h>

namespace sluice::control {

void HostLog::look(const std::vector<Twin>& twins) {
  for (const Twin& twin : twins) {
    if (twin.down && down_.insert(twin.port).second) {
      spdlog::warn("port {}: its twin {} is down, and the host gets no frames of it: ip link set {} up", twin.port,
                   twin.name, twin.name);
    } else if (!twin.down && down_.erase(twin.port) != 0) {
      spdlog::info("port {}: its twin {} is up again", twin.port, twin.name);
    }
  }
}

void HostLog::look(const ForwardingOff& off) {
  if (off.what == forwarding_off_) {
    return;
  }
  forwarding_off_ = off.what;
  if (off.what.empty()) {
    spdlog::info("kernel: IPv4 and IPv6 forwarding is on again");
  } else {
    spdlog::warn("{}", forwarding_warning(off));
  }
}

}  // namespace sluice::control
