// What the administrator says about ports and packet memory. Plain data; control/config fills it, port/ and engine/
// read it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "packet/ip_address.h"
#include "port/capture_copy.h"

namespace sluice::port {

// Captures that the driver cannot read as they are, by the path that `device` names. They follow from `device` and the
// files alone: options that differ in nothing else are the same.
struct CaptureCopies {
  std::map<std::string, std::shared_ptr<const CaptureCopy>> by_path;
  bool operator==(const CaptureCopies&) const { return true; }
};

// An address of an interface, with the length of its network's prefix.
struct InterfaceAddress {
  packet::IpAddress address;
  std::uint8_t length = 0;
  std::string str() const { return address.str() + "/" + std::to_string(length); }
  auto operator<=>(const InterfaceAddress&) const = default;
};

struct PortOptions {
  std::string name;     // the administrator's name, unique
  std::string device;   // DPDK devargs ("net_af_packet0,iface=veth1"), a PCI address, or "replay,..." (replay_port.h)
  unsigned queues = 1;  // receive queues
  unsigned lanes = 0;   // that share them, by flow hash where there are more lanes than queues; 0: one for each queue
  unsigned mtu = 1500;  // largest IP packet
  std::string twin;     // TAP interface that carries what is not fast-path; empty: none
  std::vector<InterfaceAddress> addresses{};  // that the twin gets
  bool persistent = false;                    // the twin stays when the gateway ends
  bool unnumbered = false;                    // the twin is to have no address
  std::string peer;             // port that echo and touch send to; empty: the other of two ports, else itself
  unsigned descriptors = 1024;  // per queue and direction
  bool promiscuous = true;
  CaptureCopies copies = {};
  unsigned lane_count() const { return lanes != 0 ? lanes : queues; }
  bool operator==(const PortOptions&) const = default;
};

enum class Hugepages { automatic, off, require };

struct MemoryOptions {
  Hugepages hugepages = Hugepages::automatic;
  std::uint64_t size = 2048ULL << 20;  // bytes that DPDK may take, all pools and tables together; touched as used
  unsigned frames = 16384;             // mbufs per port queue
  unsigned frame_bytes = 2048;         // data room of an mbuf behind its headroom
  bool operator==(const MemoryOptions&) const = default;
};

}  // namespace sluice::port
