#include "control/health.h"

#include "control/drop_watch.h"

namespace sluice::control {
namespace {

void add(std::string& why, const std::string& ailment) {
  why += (why.empty() ? "" : ", ") + ailment;
}

void add_port(std::string& why, const PortSnapshot& port) {
  if (port.twin_deleted) {
    add(why, "port " + port.name + ": its twin " + port.twin + " was deleted (restart sluice)");
  } else if (port.twin_down) {
    add(why, "port " + port.name + ": its twin " + port.twin + " is down (ip link set " + port.twin + " up)");
  }
  if (const std::string drops = drop_ailment(port); !drops.empty()) add(why, drops);
  if (port.interface_deleted) {
    add(why, "port " + port.name + ": its interface was deleted (restart sluice)");
  }
}

}  // namespace

std::string ailments(const Snapshot& snapshot) {
  std::string why;
  for (const DeviceSnapshot& device : snapshot.devices) {
    if (device.state != "up") {
      add(why, "device " + device.name + " is " + device.state);
    }
  }
  for (const PortSnapshot& port : snapshot.ports) {
    add_port(why, port);
  }
  if (!snapshot.forwarding_off.empty()) {
    add(why, "kernel: " + snapshot.forwarding_off);
  }
  if (!snapshot.rtsp_ailment.empty()) {
    add(why, snapshot.rtsp_ailment);
  }
  if (!snapshot.conserved) {
    add(why, "counters do not add up");
  }
  return why;
}

}  // namespace sluice::control
