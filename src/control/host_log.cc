#include "control/host_log.h"

#include <spdlog/spdlog.h>

namespace sluice::control {

// An administrator has this many looks for it after the start.
constexpr unsigned patience = 10;

void HostLog::look(const std::vector<Twin>& twins) {
  for (const Twin& twin : twins) {
    if (twin.down && down_.insert(twin.port).second) {
      spdlog::warn("port {}: its twin {} is down, and the host gets no frames of it: ip link set {} up", twin.port,
                   twin.name, twin.name);
    } else if (!twin.down && down_.erase(twin.port) != 0) {
      spdlog::info("port {}: its twin {} is up again", twin.port, twin.name);
    }
    look_for_address(twin);
  }
}

void HostLog::look_for_address(const Twin& twin) {
  if (twin.unaddressed && ++unaddressed_[twin.port] == patience) {
    spdlog::warn(
        "port {}: its twin {} has no address, so that the router has no place in that network: address = [...] of the "
        "port, ip addr add ... dev {}, or unnumbered = true if it is to have none",
        twin.port, twin.name, twin.name);
  }
  if (const auto known = unaddressed_.find(twin.port); !twin.unaddressed && known != unaddressed_.end()) {
    if (known->second >= patience) spdlog::info("port {}: its twin {} has an address", twin.port, twin.name);
    unaddressed_.erase(known);
  }
}

void HostLog::look(const std::vector<Mtu>& mtus) {
  for (const Mtu& one : mtus) {
    const auto known = lowered_.find(one.port);
    if (one.carried == 0 || one.carried >= one.wanted) {
      if (known == lowered_.end()) continue;
      lowered_.erase(known);
      if (one.carried != 0) spdlog::info("port {}: the MTU of {} is {} again", one.port, one.interface, one.carried);
    } else if (known == lowered_.end() || known->second != one.carried) {
      lowered_[one.port] = one.carried;
      spdlog::warn("port {}: the MTU of {} is {} now, smaller than the port's {}: longer packets do not pass there",
                   one.port, one.interface, one.carried, one.wanted);
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
