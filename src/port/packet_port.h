// A kernel interface as a port, by packet sockets: the device "net_af_packet0,iface=eth1". DPDK 22.11's driver of that
// name does not say which checksums are unfinished, when a frame arrived, nor what it lost, and cuts what is longer
// than a slot; so this is Sluice's own, which takes its arguments.
//
// Arguments: iface; framecnt (4096 slots of each receive ring), framesz, blocksz (from the MTU), qdisc_bypass (1),
// qpairs (as many as queues).
//
// Thread-safety: as Port (port.h). Cost: packet_ring.h, packet_sender.h. Memory of the kernel's for each queue:
// ring_bytes(), and up to 32 MB while packets longer than a slot wait.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "packet/ip_address.h"
#include "port/frame_pool.h"
#include "port/options.h"
#include "port/packet_ring.h"
#include "port/packet_sender.h"

namespace sluice::port {

// Of the port's arguments and its MTU; errors name the argument.
Expected<PacketRingOptions> packet_ring_options(const PortOptions& port);

// Of the rings of all of the port's queues.
std::uint64_t packet_ring_bytes(const PortOptions& port);

class PacketPort {
 public:
  struct Counts {
    PacketRing::Counts rx;
    PacketSender::Counts tx;
  };

  static Expected<std::unique_ptr<PacketPort>> open(const PortOptions& port, const MemoryOptions& memory,
                                                    unsigned tx_queues, int numa_node);

  std::uint16_t rx_burst(std::uint16_t queue, rte_mbuf** frames, std::uint16_t count) {
    return rings_[queue]->receive(pools_[queue].get(), frames, count);
  }
  std::uint16_t tx_burst(std::uint16_t queue, rte_mbuf** frames, std::uint16_t count) {
    return senders_[queue]->send(frames, count);
  }
  std::uint64_t waited(std::uint16_t queue) const { return rings_[queue]->waited(); }
  int wait_fd(std::uint16_t queue) const { return rings_[queue]->fd(); }
  const packet::MacAddress& mac() const { return mac_; }
  const std::vector<FramePool>& pools() const { return pools_; }
  Counts counts() const;

 private:
  PacketPort() = default;

  packet::MacAddress mac_;
  std::vector<FramePool> pools_;
  std::vector<std::unique_ptr<PacketRing>> rings_;
  std::vector<std::unique_ptr<PacketSender>> senders_;
};

}  // namespace sluice::port
