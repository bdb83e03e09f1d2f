#include "port/virtual_device.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "base/capability.h"
#include "port/device_arguments.h"
#include "port/interface_request.h"
#include "port/packet_port.h"
#include "port/pci_device.h"
#include "port/tap_holder.h"

namespace sluice::port {
namespace {

constexpr unsigned ethernet_bytes = 14 + 2 * 4;  // header and two VLAN tags

// af_xdp: the kernel keeps a headroom of its own in each frame buffer, and a buffer with DPDK's header is one page at
// most.
constexpr unsigned xdp_headroom = 256;
constexpr unsigned xdp_largest_capacity = 4096 - 384;

constexpr unsigned bytes_beside_frame = 320;  // of a frame's buffer

constexpr unsigned most_queues = 64;  // of [[port]] queues

constexpr unsigned tap_largest_mtu = 1500;  // larger frames it neither accepts nor sends

bool has_argument(const std::string& device, const std::string& key) {
  return device.find("," + key + "=") != std::string::npos;
}

struct Channels {
  unsigned receive = 1;   // queues that frames arrive on
  unsigned combined = 1;  // those of them that DPDK knows; a driver that counts in another way (veth) has one for it
};

Channels channels_of(const std::string& interface) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq argument{};
  argument.ifr_data = reinterpret_cast<char*>(&channels);
  if (!interface_request(interface, SIOCETHTOOL, argument)) {
    return {};  // one queue, or no such interface, which the driver says
  }
  return {std::max(1U, channels.rx_count + channels.combined_count), std::max(1U, channels.combined_count)};
}

// The drivers take whatever comes for an Ethernet header.
Expected<void> check_ethernet(const std::string& interface) {
  ifreq argument{};
  if (!interface_request(interface, SIOCGIFHWADDR, argument)) {
    return make_error("the kernel does not say what kind of interface '" + interface + "' is: " + std::strerror(errno));
  }
  const unsigned type = argument.ifr_hwaddr.sa_family;
  return type == ARPHRD_ETHER
             ? Expected<void>()
             : make_error("interface '" + interface + "' is no Ethernet (its ARPHRD type is " + std::to_string(type) +
                          ", not " + std::to_string(ARPHRD_ETHER) + "): name one that 'ip link' shows as link/ether");
}

// What a driver on a kernel interface would say in words that name neither.
Expected<void> check_interface(const PortOptions& port, int domain, const std::string& privilege) {
  const std::string interface = device_argument(port.device, "iface");
  if (if_nametoindex(interface.c_str()) == 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      return make_error("whether there is an interface '" + interface + "' cannot be seen: " + std::strerror(errno));
    }
    return make_error("there is no interface '" + interface +
                      "' in this network namespace: name one that 'ip link' shows, or start Sluice in the namespace "
                      "that has it (ip netns exec)");
  }
  if (auto ethernet = check_ethernet(interface); !ethernet) {
    return ethernet;
  }
  const int probe = socket(domain, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (probe >= 0) {
    close(probe);
  } else if (errno == EPERM || errno == EACCES) {
    return make_error("no permission to take frames from '" + interface + "': run as root or with " + privilege);
  } else {
    return make_error("the kernel has no socket for frames of '" + interface + "': " + std::strerror(errno));
  }
  if (!has_capability(CAP_NET_ADMIN)) {
    return make_error("no permission to set up '" + interface + "': run as root or with " + privilege);
  }
  return {};
}

Expected<void> check_pairs(const PortOptions& port) {
  const std::string pairs = device_argument(port.device, "qpairs");
  if (pairs.empty() || pairs == std::to_string(port.queues)) {
    return {};
  }
  const unsigned long count = std::strtoul(pairs.c_str(), nullptr, 10);
  const bool may_be_queues = count != port.queues && count >= 1 && count <= most_queues;
  return make_error("qpairs = " + pairs + " and queues = " + std::to_string(port.queues) +
                    ": that many sockets share the interface's frames and each needs a queue that reads it; leave "
                    "qpairs out" +
                    (may_be_queues ? ", or set queues = " + std::to_string(count) : std::string()));
}

Expected<void> packet_sizes(const PortOptions& port) {
  if (auto fine = check_pairs(port); !fine) {
    return fine;
  }
  const auto ring = packet_ring_options(port);
  return ring ? Expected<void>() : tl::unexpected(ring.error());
}

Expected<void> xdp_sizes(const PortOptions& port, const MemoryOptions& memory) {
  if (memory.frame_bytes > xdp_largest_capacity) {
    return make_error("AF_XDP takes frame buffers of one page: [memory] frame_bytes may be " +
                      std::to_string(xdp_largest_capacity) + " at most");
  }
  if (const unsigned needed = port.mtu + ethernet_bytes + xdp_headroom; memory.frame_bytes < needed) {
    if (needed > xdp_largest_capacity) {
      return make_error("AF_XDP takes frame buffers of one page: mtu may be " +
                        std::to_string(xdp_largest_capacity - ethernet_bytes - xdp_headroom) + " at most");
    }
    return make_error("AF_XDP keeps " + std::to_string(xdp_headroom) + " bytes of each frame buffer: mtu = " +
                      std::to_string(port.mtu) + " needs [memory] frame_bytes = " + std::to_string(needed));
  }
  return {};
}

// Those that take any frame, and have sizes of their own.
bool has_no_mtu(const std::string& device) {
  return device_name(device) == "replay" || is_virtual(device) || is_driver(device, "net_pcap") ||
         is_driver(device, "net_ring") || is_driver(device, "net_null");
}

Expected<void> check_af_packet(const PortOptions& port) {
  return check_interface(port, AF_PACKET, "CAP_NET_RAW and CAP_NET_ADMIN");
}

// The kernel counts the frames of AF_XDP as locked memory, and the driver says of too little "Failed to create umem".
Expected<void> check_locked_memory(const PortOptions& port, const MemoryOptions& memory) {
  rlimit limit{};
  if (has_capability(CAP_IPC_LOCK) || getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return {};
  const std::uint64_t needed = std::uint64_t{port.queues} * memory.frames * (memory.frame_bytes + bytes_beside_frame);
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= needed) return {};
  return make_error(
      "this process may lock " + std::to_string(limit.rlim_cur >> 10) +
      " KB of memory, and the frames of AF_XDP take " + std::to_string((needed >> 10) + 1) +
      " KB: ulimit -l unlimited, LimitMEMLOCK=infinity in a systemd unit, CAP_IPC_LOCK, or fewer [memory] "
      "frames");
}

Expected<void> check_af_xdp(const PortOptions& port, const MemoryOptions& memory) {
  constexpr const char* privilege = "CAP_NET_RAW, CAP_NET_ADMIN and CAP_SYS_ADMIN";
  if (auto usable = check_interface(port, AF_XDP, privilege); !usable) {
    return usable;
  }
  // libxdp looks for programs by their numbers (BPF_PROG_GET_FD_BY_ID), which CAP_BPF does not allow.
  if (!has_capability(CAP_SYS_ADMIN)) {
    return make_error("no permission to load an XDP program: run as root or with " + std::string(privilege) +
                      "; systemd's unit gets it from share/sluice/systemd/af-xdp.conf (docs/production.md)");
  }
  if (auto enough = check_locked_memory(port, memory); !enough) {
    return enough;
  }
  const bool chosen = has_argument(port.device, "queue_count") || has_argument(port.device, "start_queue") ||
                      has_argument(port.device, "xdp_prog");
  const std::string interface = device_argument(port.device, "iface");
  const Channels channels = channels_of(interface);
  if (port.queues > channels.combined) {
    return make_error("queues = " + std::to_string(port.queues) + ", but " + interface + " has " +
                      std::to_string(channels.combined) + " that AF_XDP can use (ethtool -l " + interface +
                      ", combined; veth: always 1)");
  }
  if (!chosen && port.queues < channels.receive) {
    return make_error(interface + " has " + std::to_string(channels.receive) + " receive queues and the port reads " +
                      std::to_string(port.queues) + " of them: raise queues, or lower the interface's (ethtool -L " +
                      interface + " combined " + std::to_string(port.queues) +
                      "; veth: rx 1), or say which with start_queue= and queue_count=");
  }
  return {};
}

Expected<void> check_tap(const PortOptions& port) {
  if (!has_capability(CAP_NET_ADMIN)) {
    return make_error("no permission to make a TAP interface: run as root or with CAP_NET_ADMIN");
  }
  const std::string interface = device_argument(port.device, "iface");
  const auto held = tap_is_held(interface);
  if (!held) {
    return tl::unexpected(held.error());
  }
  if (*held) {
    return make_error(tap_in_use(interface) + ": stop that one, or choose another name with iface=");
  }
  return {};
}

}  // namespace

std::string device_name(const std::string& device) {
  return device.substr(0, device.find(','));
}

bool is_driver(const std::string& device, const std::string& driver) {
  const std::string name = device_name(device);
  return name.starts_with(driver) && name.find_first_not_of("0123456789", driver.size()) == std::string::npos;
}

namespace {

std::vector<std::string_view>& virtual_devices() {
  static std::vector<std::string_view> names;
  return names;
}

}  // namespace

bool is_virtual(const std::string& device) {
  return std::ranges::find(virtual_devices(), device) != virtual_devices().end();
}

void register_virtual_device(std::string_view name) {
  virtual_devices().push_back(name);
}

std::string device_argument(const std::string& device, const std::string& key) {
  const std::string start = "," + key + "=";
  const std::size_t at = device.find(start);
  if (at == std::string::npos) {
    return "";
  }
  const std::size_t begin = at + start.size();
  return device.substr(begin, device.find(',', begin) - begin);
}

std::string virtual_device_name(const PortOptions& port) {
  return "net_null_" + port.name;
}

packet::MacAddress virtual_mac(const std::string& name) {
  std::string machine;
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  if (!(std::ifstream("/etc/machine-id") >> machine)) hash ^= std::random_device()();
  for (const char c : machine + name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  packet::MacAddress mac;
  std::memcpy(mac.bytes.data(), &hash, mac.bytes.size());
  mac.bytes[0] = static_cast<std::uint8_t>((mac.bytes[0] & 0xfc) | 0x02);  // of one station, locally administered
  return mac;
}

std::string live_interface(const std::string& device) {
  for (const char* const key : {"iface", "tx_iface"}) {
    if (std::string name = device_argument(device, key); !name.empty()) {
      return name;
    }
  }
  return "";
}

bool only_read_captures(const std::vector<PortOptions>& ports) {
  const auto is_pcap = [](const PortOptions& port) { return is_driver(port.device, "net_pcap"); };
  const auto reads = [](const PortOptions& port) {
    return !device_argument(port.device, "rx_pcap").empty() && device_argument(port.device, "infinite_rx") != "1";
  };
  return std::all_of(ports.begin(), ports.end(), is_pcap) && std::any_of(ports.begin(), ports.end(), reads);
}

std::vector<std::string> device_arguments(const std::string& device, const std::string& key) {
  const std::string start = "," + key + "=";
  std::vector<std::string> values;
  for (std::size_t at = device.find(start); at != std::string::npos; at = device.find(start, at + 1)) {
    values.push_back(device_argument(device.substr(at), key));
  }
  return values;
}

namespace {

// Each `argument` of the device, which is all of one, by `other`.
void replace_argument(std::string& device, const std::string& argument, const std::string& other) {
  for (std::size_t at = device.find(',' + argument); at != std::string::npos;) {
    const std::size_t end = at + 1 + argument.size();
    const bool whole = end == device.size() || device[end] == ',';
    if (whole) device.replace(at + 1, argument.size(), other);
    at = device.find(',' + argument, whole ? at + 1 + other.size() : end);
  }
}

}  // namespace

std::string complete_arguments(const PortOptions& port, const MemoryOptions& memory) {
  std::string device = is_virtual(port.device) ? virtual_device_name(port) + ",no-rx=1" : port.device;
  const auto add = [&](const char* key, unsigned value) {
    if (!has_argument(device, key)) {
      device.append(",").append(key).append("=").append(std::to_string(value));
    }
  };
  if (is_driver(device, "net_af_xdp")) {
    add("queue_count", port.queues);
  } else if (is_driver(device, "net_memif")) {
    // A frame larger than a buffer would arrive in pieces.
    add("bsize", memory.frame_bytes);
  } else if (is_driver(device, "net_pcap")) {
    for (const auto& [path, copy] : port.copies.by_path) {
      replace_argument(device, "rx_pcap=" + path, "rx_pcap=" + copy->path());
    }
  }
  return device;
}

Expected<void> check_sizes(const PortOptions& port, const MemoryOptions& memory) {
  if (is_driver(port.device, "net_af_packet")) {
    if (auto fine = packet_sizes(port); !fine) {
      return fine;
    }
  }
  if (is_driver(port.device, "net_af_xdp")) {
    return xdp_sizes(port, memory);
  }
  if (is_driver(port.device, "net_tap") && port.mtu > tap_largest_mtu) {
    return make_error("DPDK's tap carries an MTU of " + std::to_string(tap_largest_mtu) +
                      " at most, not mtu = " + std::to_string(port.mtu));
  }
  if (const unsigned needed = port.mtu + ethernet_bytes; memory.frame_bytes < needed && !has_no_mtu(port.device)) {
    return make_error("mtu = " + std::to_string(port.mtu) + " needs [memory] frame_bytes = " + std::to_string(needed));
  }
  return {};
}

Expected<void> check_device(const PortOptions& port, const MemoryOptions& memory) {
  if (auto fine = check_arguments(port.device); !fine) {
    return fine;
  }
  if (auto fine = check_sizes(port, memory); !fine) {
    return fine;
  }
  if (const std::string address = pci_address(port.device); !address.empty()) {
    return check_pci_device(address);
  }
  if (is_driver(port.device, "net_af_packet")) {
    return check_af_packet(port);
  }
  if (is_driver(port.device, "net_af_xdp")) {
    return check_af_xdp(port, memory);
  }
  return is_driver(port.device, "net_tap") ? check_tap(port) : Expected<void>();
}

std::string unseen_arrival(const std::string& device) {
  if (has_no_mtu(device) || is_driver(device, "net_af_packet")) {
    return "";
  }
  const std::string who = is_driver(device, "net_af_xdp") ? "AF_XDP" : "its driver";
  return who +
         " does not say when a frame came in: what waits to be received while the process is held up shows in no "
         "latency and in no missed deadline (net_af_packet says it)";
}

bool pairs_queues(const std::string& driver) {
  return driver == "net_af_xdp" || driver == "net_tap" || driver == "net_memif" || driver == "net_ring";
}

Expected<void> give_tap_its_own_mac(const std::string& interface, const packet::MacAddress& mac) {
  ifreq argument{};
  argument.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  std::memcpy(argument.ifr_hwaddr.sa_data, mac.bytes.data(), mac.bytes.size());
  argument.ifr_hwaddr.sa_data[5] = static_cast<char>(argument.ifr_hwaddr.sa_data[5] ^ 1);
  if (!interface_request(interface, SIOCSIFHWADDR, argument)) {
    return make_error("the kernel's end, '" + interface +
                      "', does not take a MAC address of its own: " + std::strerror(errno));
  }
  // The link-local address that the kernel made of the old MAC is the twin's too; a new start makes one of the new MAC.
  const std::string disable = "/proc/sys/net/ipv6/conf/" + interface + "/disable_ipv6";
  std::string disabled;
  if (std::ifstream(disable) >> disabled && disabled == "0") {
    std::ofstream(disable) << "1" << std::flush;
    std::ofstream(disable) << "0" << std::flush;
  }
  return {};
}

}  // namespace sluice::port
