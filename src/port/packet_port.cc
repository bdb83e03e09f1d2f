#include "port/packet_port.h"

#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "port/interface_request.h"
#include "port/interface_settings.h"
#include "port/local_senders.h"
#include "port/virtual_device.h"

namespace sluice::port {
namespace {

constexpr unsigned ethernet_bytes = 14 + 2 * 4;  // header and two VLAN tags
// In front of a frame in its slot: TPACKET2_HDRLEN, the link header, aligned, and a virtio_net_hdr (Linux,
// tpacket_rcv).
constexpr unsigned before_frame = 96;
constexpr unsigned default_slot = 2048;
constexpr unsigned slot_step = 1024;  // so that a block of four is whole pages
constexpr unsigned slots_of_block = 4;

unsigned argument(const PortOptions& port, const char* key, unsigned otherwise) {
  const std::string given = device_argument(port.device, key);
  return given.empty() ? otherwise : static_cast<unsigned>(std::strtoul(given.c_str(), nullptr, 10));
}

unsigned slot_for(unsigned mtu) {
  const unsigned needed = mtu + ethernet_bytes + before_frame;
  return needed <= default_slot ? default_slot : (needed + slot_step - 1) / slot_step * slot_step;
}

}  // namespace

Expected<PacketRingOptions> packet_ring_options(const PortOptions& port) {
  PacketRingOptions ring;
  ring.slot_bytes = argument(port, "framesz", slot_for(port.mtu));
  ring.slots = argument(port, "framecnt", ring.slots);
  ring.block_bytes = argument(port, "blocksz", ring.slot_bytes * slots_of_block);
  if (ring.slot_bytes < port.mtu + ethernet_bytes + before_frame) {
    return make_error("framesz = " + std::to_string(ring.slot_bytes) +
                      " does not hold frames of mtu = " + std::to_string(port.mtu) +
                      ": leave framesz out, or make it " + std::to_string(slot_for(port.mtu)));
  }
  if (ring.slot_bytes % TPACKET_ALIGNMENT != 0) {
    return make_error("framesz = " + std::to_string(ring.slot_bytes) + ": allowed is a multiple of " +
                      std::to_string(TPACKET_ALIGNMENT));
  }
  if (ring.block_bytes < ring.slot_bytes || ring.block_bytes % 4096 != 0) {
    return make_error("blocksz = " + std::to_string(ring.block_bytes) +
                      " with framesz = " + std::to_string(ring.slot_bytes) +
                      ": allowed are multiples of 4096 that hold a frame: leave blocksz out, or make it " +
                      std::to_string((ring.slot_bytes + 4095) / 4096 * 4096 * slots_of_block));
  }
  constexpr unsigned least_slots = 64, most_slots = 262144;
  if (ring.slots < least_slots || ring.slots > most_slots) {
    return make_error("framecnt = " + std::to_string(ring.slots) + ": allowed is a whole number from " +
                      std::to_string(least_slots) + " to " + std::to_string(most_slots));
  }
  return ring;
}

std::uint64_t packet_ring_bytes(const PortOptions& port) {
  const auto ring = packet_ring_options(port);
  return ring ? std::uint64_t{ring->slots} * ring->slot_bytes * port.queues : 0;
}

Expected<std::unique_ptr<PacketPort>> PacketPort::open(const PortOptions& port, const MemoryOptions& memory,
                                                       unsigned tx_queues, int numa_node) {
  const auto options = packet_ring_options(port);
  if (!options) {
    return tl::unexpected(options.error());
  }
  const std::string interface = device_argument(port.device, "iface");
  const unsigned index = if_nametoindex(interface.c_str());
  ifreq address{};
  if (index == 0 || !interface_request(interface, SIOCGIFHWADDR, address)) {
    return make_error("there is no interface '" + interface + "': " + std::strerror(errno));
  }
  std::unique_ptr<PacketPort> opened(new PacketPort());
  std::memcpy(opened->mac_.bytes.data(), address.ifr_hwaddr.sa_data, opened->mac_.bytes.size());
  std::optional<std::uint16_t> group;
  for (unsigned queue = 0; queue < port.queues; ++queue) {
    auto pool = make_frame_pool("frames-" + port.name + "-" + std::to_string(queue), memory.frames, memory.frame_bytes,
                                numa_node);
    if (!pool) {
      return tl::unexpected(pool.error());
    }
    opened->pools_.push_back(std::move(*pool));
    auto ring = PacketRing::open(index, *options, port.queues == 1, group);
    if (!ring) {
      return tl::unexpected(ring.error());
    }
    group = (*ring)->group();
    opened->rings_.push_back(std::move(*ring));
  }
  const bool bypass = device_argument(port.device, "qdisc_bypass") != "0";
  // Its other end is a kernel, and nothing is queued on the way, so that order holds.
  const bool merges = interface_driver(interface) == "veth";
  for (unsigned queue = 0; queue < tx_queues; ++queue) {
    auto sender = PacketSender::open(index, bypass, merges);
    if (!sender) {
      return tl::unexpected(sender.error());
    }
    opened->senders_.push_back(std::move(*sender));
  }
  if (port.promiscuous && !set_promiscuous(interface)) {
    return make_error("'" + interface + "' does not become promiscuous: " + std::strerror(errno));
  }
  return opened;
}

PacketPort::Counts PacketPort::counts() const {
  Counts all;
  for (const auto& ring : rings_) {
    const PacketRing::Counts one = ring->counts();
    all.rx.frames += one.frames;
    all.rx.bytes += one.bytes;
    all.rx.missed += one.missed;
    all.rx.errors += one.errors;
    all.rx.finished += one.finished;
    all.rx.cut_up += one.cut_up;
  }
  for (const auto& sender : senders_) {
    const PacketSender::Counts one = sender->counts();
    all.tx.frames += one.frames;
    all.tx.bytes += one.bytes;
    all.tx.errors += one.errors;
  }
  return all;
}

}  // namespace sluice::port
