// A port: a DPDK ethdev (a NIC or a virtual device), a kernel interface by packet sockets, or the memory replay port.
// Everything that carries frames goes through rx_burst and tx_burst of this class, which cost what rte_eth_rx_burst and
// rte_eth_tx_burst cost plus two predicted branches.
//
// Thread-safety: one thread per receive queue and per transmit queue; stats(), link_up() and interface_deleted() from
// any thread, also while frames are carried: a mutex orders what they ask the driver, of which DPDK says nothing about
// threads. What was settled when the port opened may be read by any thread; open, stop() and close() are the control
// thread's, close() when no other thread has the port any more.
#pragma once

#include <rte_ethdev.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "packet/ip_address.h"
#include "port/frame_pool.h"
#include "port/interface_lock.h"
#include "port/interface_settings.h"
#include "port/kernel_link.h"
#include "port/options.h"
#include "port/packet_port.h"
#include "port/replay_port.h"

namespace sluice::port {

class DriverLog;

struct PortStats {
  std::uint64_t rx_frames = 0, rx_bytes = 0, tx_frames = 0, tx_bytes = 0;  // as the device counts them
  std::uint64_t missed = 0;  // lost before receive: no free descriptor or frame
  // tx_errors: taken by the driver, which then could not send them. Not what it refuses to take (net_tap counts only
  // that, and once for every attempt: here it has none).
  std::uint64_t rx_errors = 0, tx_errors = 0, no_memory = 0;
  // On a kernel interface: frames whose senders had left their checksum to a card, and packets longer than the MTU that
  // were cut up (packet_ring.h).
  std::uint64_t checksums_finished = 0, cut_up = 0;
  bool link_up = false;
  // Of a driver that does not say which checksums are unfinished: TCP and UDP frames that were looked at, and those of
  // them with a wrong one (packet/checksum_check.h).
  std::uint64_t checksums_checked = 0, checksums_wrong = 0;
};

class Port {
 public:
  // Probes, configures and starts the device with options.queues receive queues and `tx_queues` transmit queues (fewer
  // if the device has fewer: see tx_queue_count()). Errors name the port, the device and what to do.
  static Expected<std::unique_ptr<Port>> open(const PortOptions& options, const MemoryOptions& memory,
                                              unsigned tx_queues);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  std::uint16_t rx_burst(std::uint16_t queue, rte_mbuf** frames, std::uint16_t count) {
    if (replay_) return replay_->rx_burst(queue, frames, count);
    if (packet_) return packet_->rx_burst(queue, frames, count);
    const std::uint16_t received = rte_eth_rx_burst(id_, queue, frames, count);
    if (finishes_marked_) finish_marked(frames, received);
    if (watches_checksums_ && received != 0) watch_checksum(*frames[0]);
    return received;
  }
  std::uint16_t tx_burst(std::uint16_t queue, rte_mbuf** frames, std::uint16_t count) {
    if (replay_) return replay_->tx_burst(frames, count);
    return packet_ ? packet_->tx_burst(queue, frames, count) : rte_eth_tx_burst(id_, queue, frames, count);
  }

  // How long the first frame of the queue's last burst had waited to be received, in ticks, where that is known
  // (knows_arrival()); 0 elsewhere.
  std::uint64_t waited(std::uint16_t queue) const {
    if (replay_) return replay_->waited(queue);
    return packet_ ? packet_->waited(queue) : 0;
  }
  // The memory replay port and net_af_packet do; of an ethdev nobody says when a frame came in.
  // False: no frame ever comes in by it, for an element makes its frames (is_virtual()).
  bool receives() const { return receives_; }
  bool knows_arrival() const { return replay_ || packet_; }

  const PortOptions& options() const { return options_; }
  const std::string& name() const { return options_.name; }
  const packet::MacAddress& mac() const { return mac_; }
  // Of the device, or of the NIC under its kernel interface; -1: none, or not known.
  int numa_node() const;
  std::string driver() const;
  // What the administrator should know, one sentence each; usually none.
  const std::vector<std::string>& notes() const { return notes_; }
  unsigned tx_queue_count() const { return tx_queues_; }
  std::vector<rte_mempool*> pools() const;
  // Both may wait for another thread that asks, and make system calls: not for lanes.
  PortStats stats() const;
  bool link_up() const;
  // The kernel interface under the port was deleted: the link stays down, whatever comes up under its name.
  bool interface_deleted() const { return kernel_link_ && kernel_link_->deleted(); }
  // What the kernel interface under the port carries now, which somebody may have lowered; 0: there is none, or it is
  // gone. Five system calls.
  unsigned carried_mtu() const {
    return kernel_link_ && !kernel_link_->deleted() ? interface_mtu(kernel_link_->name()) : 0;
  }
  // A file descriptor that is readable while frames wait in the queue; -1 when the driver has none (now: all but
  // net_af_packet and net_tap). To be waited for, and not to be read.
  int wait_fd(std::uint16_t queue) const { return queue < wait_fds_.size() ? wait_fds_[queue] : -1; }
  ReplayPort* replay() { return replay_.get(); }
  // The kernel interface under the device ("iface=" of af_packet and af_xdp), or empty.
  std::string kernel_interface() const;
  void stop();
  // Gives the device back; no frame of another port is held by it after that. Nothing else may be called then.
  void close();

 private:
  explicit Port(PortOptions options) : options_(std::move(options)) {}
  Expected<void> open_packet_port(const MemoryOptions& memory, unsigned tx_queues);
  Expected<void> hold_interface();
  void note_local_senders();
  void finish_marked(rte_mbuf** frames, std::uint16_t count);
  void watch_checksum(const rte_mbuf& frame);
  Expected<void> open_ethdev(const MemoryOptions& memory, unsigned tx_queues);
  Expected<void> probe(const std::string& name, const MemoryOptions& memory);
  Expected<void> set_up(const rte_eth_dev_info& info, const MemoryOptions& memory, unsigned tx_queues);
  Expected<void> configure(const rte_eth_dev_info& info, unsigned tx_queues, DriverLog& driver_log);
  Expected<void> set_up_queues(const MemoryOptions& memory, DriverLog& driver_log);
  Expected<void> start();
  Expected<void> set_mtu();
  std::string mtu_refused() const;
  void find_wait_fds();
  Expected<void> take_address(const rte_eth_dev_info& info);
  Expected<void> fail(const std::string& what, int error) const;
  // `what` with the cause: the driver's own words, else what `error` means.
  Expected<void> refused(const std::string& what, int error, DriverLog& driver_log) const;

  PortOptions options_;
  std::optional<InterfaceLock> interface_lock_;
  std::optional<InterfaceSettings> interface_settings_;
  std::optional<KernelLink> kernel_link_;
  packet::MacAddress mac_;
  std::uint16_t id_ = RTE_MAX_ETHPORTS;
  unsigned tx_queues_ = 0;
  std::vector<std::string> notes_;
  bool probed_ = false;
  bool started_ = false;
  bool receives_ = true;
  std::vector<FramePool> pools_;
  std::vector<int> wait_fds_;  // by receive queue; the driver's
  std::unique_ptr<ReplayPort> replay_;
  std::unique_ptr<PacketPort> packet_;
  bool finishes_marked_ = false;
  std::atomic<std::uint64_t> marked_{0};
  // One frame of a burst is enough: at low rates that is each, at high ones it costs little.
  bool watches_checksums_ = false;
  std::atomic<std::uint64_t> checksums_checked_{0}, checksums_wrong_{0};
  mutable std::mutex asking_;  // the driver for its counters and its link, while the device may be stopped
};

}  // namespace sluice::port
