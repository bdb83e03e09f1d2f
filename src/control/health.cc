#include "control/health.h"

#include <utility>

#include "control/drop_watch.h"
#include "port/virtual_device.h"

namespace sluice::control {
namespace {

void each_port(const Snapshot& snapshot, const auto& look) {
  for (const PortSnapshot& port : snapshot.ports) look(port, "port " + port.name + ": ");
}

void device_down(const Snapshot& snapshot, Findings& found) {
  for (const DeviceSnapshot& device : snapshot.devices) {
    if (device.state != "up") {
      found.add("device " + device_text(device),
                device.why.empty() ? "" : "sluice takes it again where it can; else restart it");
    }
  }
}

void interface_deleted(const Snapshot& snapshot, Findings& found) {
  each_port(snapshot, [&](const PortSnapshot& port, const std::string& name) {
    if (port.interface_deleted) found.add(name + "its interface was deleted", "restart sluice");
  });
}

void link_down(const Snapshot& snapshot, Findings& found) {
  each_port(snapshot, [&](const PortSnapshot& port, const std::string& name) {
    if (port.link_up || port.interface_deleted) return;
    const std::string interface = port::live_interface(port.device);
    // Captures have no link; the driver's is down when it has been read.
    if (interface.empty() && port::is_driver(port.device, "net_pcap")) return;
    found.add(name + "its link is down",
              (interface.empty() ? "" : "ip link set " + interface + " up, or ") + "look at its other end");
  });
}

void twin_deleted(const Snapshot& snapshot, Findings& found) {
  each_port(snapshot, [&](const PortSnapshot& port, const std::string& name) {
    if (port.twin_deleted) found.add(name + "its twin " + port.twin + " was deleted", "restart sluice");
  });
}

void twin_down(const Snapshot& snapshot, Findings& found) {
  each_port(snapshot, [&](const PortSnapshot& port, const std::string& name) {
    if (!port.twin_down || port.twin_deleted) return;
    found.add(name + "its twin " + port.twin + " is down", "ip link set " + port.twin + " up");
  });
}

void twin_unaddressed(const Snapshot& snapshot, Findings& found) {
  each_port(snapshot, [&](const PortSnapshot& port, const std::string& name) {
    if (!port.twin_unaddressed || port.twin_deleted) return;
    found.add(name + "its twin " + port.twin + " has no address",
              "address = [...] of the port, ip addr add ... dev " + port.twin + ", or unnumbered = true");
  });
}

void addresses_missing(const Snapshot& snapshot, Findings& found) {
  each_port(snapshot, [&](const PortSnapshot& port, const std::string& name) {
    if (port.addresses_missing.empty() || port.twin_down || port.twin_deleted) return;
    std::string all;
    for (const std::string& address : port.addresses_missing) all += (all.empty() ? "" : ", ") + address;
    found.add(name + "its twin " + port.twin + " has lost " + all + " of the configuration",
              "sluice ctl reload puts it back");
  });
}

void mtu_lowered(const Snapshot& snapshot, Findings& found) {
  each_port(snapshot, [&](const PortSnapshot& port, const std::string& name) {
    if (port.interface_mtu == 0 || port.interface_mtu >= port.mtu || port.interface_deleted) return;
    const std::string now = std::to_string(port.interface_mtu), wanted = std::to_string(port.mtu);
    found.add(name + "the MTU of its interface is " + now + ", smaller than the port's " + wanted,
              "ip link set " + port::device_argument(port.device, "iface") + " mtu " + wanted + ", or mtu = " + now +
                  " of the port");
  });
}

void drops_nearly_all(const Snapshot& snapshot, Findings& found) {
  for (const PortSnapshot& port : snapshot.ports) {
    if (const std::string drops = drop_ailment(port); !drops.empty())
      found.add(drops, "sluice capture drops shows them");
  }
  if (const std::string drops = drop_ailment(snapshot); !drops.empty())
    found.add(drops, "sluice capture drops shows them");
}

void cannot_send(const Snapshot& snapshot, Findings& found) {
  each_port(snapshot, [&](const PortSnapshot& port, const std::string& name) {
    if (!port.fails_to_send || port.interface_deleted) return;
    const std::string interface = port::live_interface(port.device);
    found.add(name + "fails to send frames (tx_errors)", "are they longer than " +
                                                             (interface.empty() ? "its device" : interface) +
                                                             " carries? the same mtu on both sides of a bridge");
  });
}

void checksums_unfinished(const Snapshot& snapshot, Findings& found) {
  each_port(snapshot, [&](const PortSnapshot& port, const std::string& name) {
    if (!port.checksums_unfinished) return;
    found.add(name + "most TCP and UDP frames come with wrong checksums",
              "ethtool -K DEV tx off in the hosts that send, or net_af_packet");
  });
}

void forwarding_off(const Snapshot& snapshot, Findings& found) {
  if (!snapshot.forwarding_off.empty()) found.add("kernel: " + snapshot.forwarding_off);
}

void output_lost(const Snapshot& snapshot, Findings& found) {
  for (const std::string& trouble : snapshot.output_troubles) {
    found.add(trouble, "free some space on its disk, or give its path back");
  }
}

void function_ailing(const Snapshot& snapshot, Findings& found) {
  for (const TroubleRow& trouble : snapshot.function_troubles) found.add(trouble.what, trouble.remedy);
}

void not_conserved(const Snapshot& snapshot, Findings& found) {
  if (!snapshot.conserved) found.add("counters do not add up");
}

constexpr HealthCheck checks[] = {
    {"device_down", "a GPU has failed; lanes compute on their own cores", device_down},
    {"interface_deleted", "the interface under a port was deleted, or moved to another network namespace",
     interface_deleted},
    {"link_down", "a port has no link", link_down},
    {"twin_deleted", "the twin of a port was deleted", twin_deleted},
    {"twin_down", "somebody has set the twin of a port down: the host gets no frames of it", twin_down},
    {"twin_unaddressed",
     "the twin of a router's port has no address that others can reach: nothing is routed to or from its network",
     twin_unaddressed},
    {"addresses_missing", "the twin of a port has lost an address of the configuration", addresses_missing},
    {"mtu_lowered", "the interface under a port carries less than the port's mtu", mtu_lowered},
    {"drops_nearly_all",
     "nearly all that a port, or all together, have received for some seconds was dropped for one reason",
     drops_nearly_all},
    {"cannot_send", "a port takes frames and fails to send them, as a bridge those that its egress is too small for",
     cannot_send},
    {"checksums_unfinished",
     "most TCP and UDP frames that a port receives have wrong checksums, which its driver does not know of",
     checksums_unfinished},
    {"forwarding_off", "the kernel's forwarding is switched off, which answers what the fast path does not",
     forwarding_off},
    {"output_lost", "a log or a file of alerts cannot be written, as on a full disk", output_lost},
    {"function_ailing", "a function of the chain says that it does not do what it is there for", function_ailing},
    {"not_conserved", "counters do not add up: a frame was lost without a name", not_conserved},
};

}  // namespace

std::span<const HealthCheck> health_checks() {
  return checks;
}

std::vector<Ailment> find_ailments(const Snapshot& snapshot) {
  std::vector<Ailment> all;
  for (const HealthCheck& check : checks) {
    Findings found(check.name);
    check.look(snapshot, found);
    for (Ailment& one : found.take()) all.push_back(std::move(one));
  }
  return all;
}

std::string ailments(const Snapshot& snapshot) {
  std::string why;
  for (const Ailment& one : find_ailments(snapshot)) {
    why += (why.empty() ? "" : ", ") + one.what + (one.remedy.empty() ? "" : " (" + one.remedy + ")");
  }
  return why;
}

}  // namespace sluice::control
