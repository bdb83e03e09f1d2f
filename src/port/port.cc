#include "port/port.h"

#include <net/if.h>
#include <rte_dev.h>
#include <rte_errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/machine.h"
#include "packet/checksum_check.h"
#include "packet/offload.h"
#include "port/driver_log.h"
#include "port/local_senders.h"
#include "port/memif_socket.h"
#include "port/rss_key.h"
#include "port/virtual_device.h"

namespace sluice::port {

Expected<void> Port::fail(const std::string& what, int error) const {
  return make_error("[[port]] '" + options_.name + "' (" + options_.device + "): " + what +
                    (error != 0 ? ": " + std::string(rte_strerror(error < 0 ? -error : error)) : ""));
}

Expected<void> Port::refused(const std::string& what, int error, DriverLog& driver_log) const {
  const std::string words = driver_log.take();
  if (!words.empty()) {
    return fail(what + ": its driver says '" + words + "'", 0);
  }
  // Drivers answer -1 for whatever went wrong, which is no errno.
  return error == -1
             ? fail(what + ", and its driver does not say why: are its arguments right, and is what they name there?",
                    0)
             : fail(what, error);
}

Expected<std::unique_ptr<Port>> Port::open(const PortOptions& options, const MemoryOptions& memory,
                                           unsigned tx_queues) {
  std::unique_ptr<Port> port(new Port(options));
  if (device_name(options.device) == "replay") {
    auto replay_options = ReplayOptions::parse(options.device);
    if (!replay_options) {
      return make_error("[[port]] '" + options.name + "': " + replay_options.error().message);
    }
    auto replay = ReplayPort::create(options.name, options.queues, *replay_options, memory.frame_bytes);
    if (!replay) {
      return make_error("[[port]] '" + options.name + "': " + replay.error().message);
    }
    port->replay_ = std::move(*replay);
    port->tx_queues_ = tx_queues;
    port->mac_ = port->replay_->mac();
    return port;
  }
  const bool by_packet_sockets = is_driver(options.device, "net_af_packet");
  if (auto opened =
          by_packet_sockets ? port->open_packet_port(memory, tx_queues) : port->open_ethdev(memory, tx_queues);
      !opened) {
    return tl::unexpected(opened.error());
  }
  return port;
}

Expected<void> Port::hold_interface() {
  const std::string interface = kernel_interface();
  if (interface.empty()) {
    // No lock: others may send there, too. Its driver says "up" always.
    if (const std::string live = live_interface(options_.device);
        is_driver(options_.device, "net_pcap") && !live.empty()) {
      kernel_link_.emplace(live);
    }
    return {};
  }
  auto lock = InterfaceLock::take(interface);
  if (!lock) {
    return fail(lock.error().message, 0);
  }
  interface_lock_.emplace(std::move(*lock));
  interface_settings_.emplace(interface, options_.mtu);
  kernel_link_.emplace(interface);
  return {};
}

Expected<void> Port::open_packet_port(const MemoryOptions& memory, unsigned tx_queues) {
  if (auto fits = check_device(options_, memory); !fits) {
    return fail(fits.error().message, 0);
  }
  if (auto held = hold_interface(); !held) {
    return held;
  }
  const std::string interface = kernel_interface();
  if (const int error = set_interface_mtu(interface, options_.mtu);
      error != 0 && interface_mtu(interface) < options_.mtu) {
    return fail(mtu_refused(), error);
  }
  auto opened = PacketPort::open(options_, memory, tx_queues, numa_node());
  if (!opened) {
    return fail(opened.error().message, 0);
  }
  packet_ = std::move(*opened);
  note_local_senders();
  tx_queues_ = tx_queues;
  mac_ = packet_->mac();
  for (std::uint16_t queue = 0; queue < options_.queues; ++queue) {
    wait_fds_.push_back(packet_->wait_fd(queue));
  }
  return {};
}

Expected<void> Port::probe(const std::string& name, const MemoryOptions& memory) {
  id_ = RTE_MAX_ETHPORTS;
  if (auto fits = check_device(options_, memory); !fits) {
    return fail(fits.error().message, 0);
  }
  if (auto held = hold_interface(); !held) {
    return held;
  }
  remove_stale_socket(options_.device);
  DriverLog driver_log;
  if (const int error = rte_dev_probe(complete_arguments(options_, memory).c_str()); error != 0) {
    return refused("the device does not open", error, driver_log);
  }
  probed_ = true;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &id_) != 0) {
    id_ = RTE_MAX_ETHPORTS;
    return fail("the device opened but is no Ethernet port", 0);
  }
  return {};
}

Expected<void> Port::open_ethdev(const MemoryOptions& memory, unsigned tx_queues) {
  receives_ = !is_virtual(options_.device);
  const std::string name = receives_ ? device_name(options_.device) : virtual_device_name(options_);
  if (rte_eth_dev_get_port_by_name(name.c_str(), &id_) != 0) {
    if (auto probed = probe(name, memory); !probed) {
      return probed;
    }
  }
  rte_eth_dev_info info;
  if (const int error = rte_eth_dev_info_get(id_, &info); error != 0) {
    return fail("the device does not describe itself", error);
  }
  Expected<void> step = set_up(info, memory, tx_queues);
  // Not every virtual device has an MTU or a promiscuous mode of its own; those take any frame anyway.
  step = step ? set_mtu() : step;
  if (!step) {
    return step;
  }
  if (step = start(); !step) {
    return step;
  }
  if (options_.promiscuous) {
    rte_eth_promiscuous_enable(id_);
  }
  find_wait_fds();
  finishes_marked_ = has_local_senders(kernel_interface());
  watches_checksums_ = finishes_marked_ || leaves_checksums_open(options_.device);
  if (watches_checksums_ && !finishes_marked_) {
    notes_.push_back(driver() + " does not say which checksums its other end leaves unfinished: samples are looked at");
  }
  note_local_senders();
  return take_address(info);
}

Expected<void> Port::set_up(const rte_eth_dev_info& info, const MemoryOptions& memory, unsigned tx_queues) {
  DriverLog driver_log;
  Expected<void> step = configure(info, tx_queues, driver_log);
  return step ? set_up_queues(memory, driver_log) : step;
}

Expected<void> Port::start() {
  DriverLog driver_log;
  if (const int error = rte_eth_dev_start(id_); error != 0) {
    const bool is_memif = is_driver(options_.device, "net_memif");
    return refused(is_memif ? "the device does not start (its other end, role=server, must be there first)"
                            : "the device does not start",
                   error, driver_log);
  }
  started_ = true;
  return {};
}

// A tap's receive interrupt is the TAP's own descriptor, which needs no arming. memif's is not handed out by
// DPDK 22.11.
void Port::find_wait_fds() {
  if (!is_driver(options_.device, "net_tap")) {
    return;
  }
  for (std::uint16_t q = 0; q < options_.queues; ++q) {
    wait_fds_.push_back(rte_eth_dev_rx_intr_ctl_q_get_fd(id_, q));
  }
}

Expected<void> Port::configure(const rte_eth_dev_info& info, unsigned tx_queues, DriverLog& driver_log) {
  if (options_.queues > info.max_rx_queues) {
    return fail(
        "queues = " + std::to_string(options_.queues) + ", but the device has " + std::to_string(info.max_rx_queues),
        0);
  }
  tx_queues_ = std::min<unsigned>(pairs_queues(info.driver_name) ? options_.queues : tx_queues, info.max_tx_queues);

  rte_eth_conf conf{};
  conf.intr_conf.rxq = is_driver(options_.device, "net_tap") ? 1 : 0;
  std::vector<std::uint8_t> key = symmetric_rss_key(info.hash_key_size);
  if (options_.queues > 1 && (info.flow_type_rss_offloads & RTE_ETH_RSS_IP) != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf =
        (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
    if (std::string note = rss_key_note(key.size()); !note.empty()) {
      notes_.push_back(std::move(note));
    } else {
      conf.rx_adv_conf.rss_conf.rss_key = key.data();
      conf.rx_adv_conf.rss_conf.rss_key_len = info.hash_key_size;
    }
  }
  if (const int error = rte_eth_dev_configure(id_, static_cast<std::uint16_t>(options_.queues),
                                              static_cast<std::uint16_t>(tx_queues_), &conf);
      error != 0) {
    return refused("the device does not take " + std::to_string(options_.queues) + " receive and " +
                       std::to_string(tx_queues_) + " transmit queues",
                   error, driver_log);
  }
  return {};
}

Expected<void> Port::set_up_queues(const MemoryOptions& memory, DriverLog& driver_log) {
  std::uint16_t rx_descriptors = static_cast<std::uint16_t>(options_.descriptors);
  std::uint16_t tx_descriptors = rx_descriptors;
  rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx_descriptors, &tx_descriptors);
  const int node = numa_node();
  for (unsigned q = 0; q < options_.queues; ++q) {
    constexpr unsigned never_used = 64;  // a queue must have a pool
    auto pool = make_frame_pool("frames-" + options_.name + "-" + std::to_string(q),
                                receives_ ? memory.frames : never_used, memory.frame_bytes, node);
    if (!pool) {
      return tl::unexpected(pool.error());
    }
    pools_.push_back(std::move(*pool));
    if (const int error = rte_eth_rx_queue_setup(id_, static_cast<std::uint16_t>(q), rx_descriptors,
                                                 static_cast<unsigned>(node), nullptr, pools_.back().get());
        error != 0) {
      return refused("receive queue " + std::to_string(q) + " does not start", error, driver_log);
    }
  }
  for (unsigned q = 0; q < tx_queues_; ++q) {
    if (const int error = rte_eth_tx_queue_setup(id_, static_cast<std::uint16_t>(q), tx_descriptors,
                                                 static_cast<unsigned>(node), nullptr);
        error != 0) {
      return refused("transmit queue " + std::to_string(q) + " does not start", error, driver_log);
    }
  }
  return {};
}

Expected<void> Port::take_address(const rte_eth_dev_info& info) {
  if (!receives_) {
    mac_ = virtual_mac(options_.name);
    return {};
  }
  rte_ether_addr address;
  if (rte_eth_macaddr_get(id_, &address) == 0) {
    std::memcpy(mac_.bytes.data(), address.addr_bytes, mac_.bytes.size());
  }
  char interface[IF_NAMESIZE];
  if (is_driver(options_.device, "net_tap") && if_indextoname(info.if_index, interface) != nullptr) {
    if (auto done = give_tap_its_own_mac(interface, mac_); !done) {
      return fail(done.error().message, 0);
    }
  }
  return {};
}

std::string Port::mtu_refused() const {
  return "the device does not take mtu = " + std::to_string(options_.mtu) +
         " (lower it, or raise what limits the device)";
}

Expected<void> Port::set_mtu() {
  const std::string what = mtu_refused();
  const std::string interface = kernel_interface();
  // The interface itself first: DPDK asks a driver for no more than the maximum that it named.
  if (const int error = interface.empty() ? 0 : set_interface_mtu(interface, options_.mtu);
      error != 0 && interface_mtu(interface) < options_.mtu) {
    return fail(what, error);
  }
  DriverLog driver_log;
  const int error = rte_eth_dev_set_mtu(id_, static_cast<std::uint16_t>(options_.mtu));
  if (error == 0 || error == -ENOTSUP || interface_mtu(interface) >= options_.mtu) {
    driver_log.take();
    return {};
  }
  return refused(what, error, driver_log);
}

Port::~Port() {
  close();
}

void Port::close() {
  stop();
  if (id_ != RTE_MAX_ETHPORTS) {
    rte_eth_dev_info info{};
    const bool known = rte_eth_dev_info_get(id_, &info) == 0;
    rte_eth_dev_close(id_);
    if (probed_ && known && info.device != nullptr) {
      rte_dev_remove(info.device);  // so that the device can be opened again in this process
    }
    id_ = RTE_MAX_ETHPORTS;
  }
}

void Port::stop() {
  if (started_) {
    const std::lock_guard lock(asking_);
    rte_eth_dev_stop(id_);
    started_ = false;
  }
}

int Port::numa_node() const {
  // A virtual device says the node of the core that opened it, if any; the NIC under it is where frames come from.
  const std::string interface = kernel_interface();
  const int node = interface.empty() ? -1 : numa_node_of_device("/sys/class/net/" + interface + "/device");
  return node >= 0 || id_ == RTE_MAX_ETHPORTS ? node : rte_eth_dev_socket_id(id_);
}

std::string Port::driver() const {
  rte_eth_dev_info info;
  if (replay_) {
    return "memory replay";
  }
  if (packet_) {
    return "net_af_packet";
  }
  return rte_eth_dev_info_get(id_, &info) == 0 && info.driver_name != nullptr ? info.driver_name : "unknown";
}

std::vector<rte_mempool*> Port::pools() const {
  std::vector<rte_mempool*> all;
  for (const FramePool& pool : pools_) {
    all.push_back(pool.get());
  }
  for (std::size_t q = 0; packet_ && q < packet_->pools().size(); ++q) {
    all.push_back(packet_->pools()[q].get());
  }
  for (unsigned q = 0; replay_ && q < options_.queues; ++q) {
    all.push_back(replay_->pool(static_cast<std::uint16_t>(q)));
  }
  return all;
}

PortStats Port::stats() const {
  PortStats stats;
  stats.link_up = link_up();
  if (replay_) {
    stats.missed = replay_->missed();
    return stats;
  }
  if (packet_) {
    const PacketPort::Counts counts = packet_->counts();
    stats.rx_frames = counts.rx.frames;
    stats.rx_bytes = counts.rx.bytes;
    stats.tx_frames = counts.tx.frames;
    stats.tx_bytes = counts.tx.bytes;
    stats.missed = counts.rx.missed;
    stats.rx_errors = counts.rx.errors;
    stats.tx_errors = counts.tx.errors;
    stats.checksums_finished = counts.rx.finished;
    stats.cut_up = counts.rx.cut_up;
    return stats;
  }
  rte_eth_stats raw;
  const std::lock_guard lock(asking_);
  if (rte_eth_stats_get(id_, &raw) == 0) {
    stats = {raw.ipackets, raw.ibytes,    raw.opackets, raw.obytes, raw.imissed,  raw.ierrors,
             raw.oerrors,  raw.rx_nombuf, marked_,      0,          stats.link_up};
    stats.tx_errors = is_driver(options_.device, "net_tap") ? 0 : stats.tx_errors;
    stats.checksums_checked = checksums_checked_;
    stats.checksums_wrong = checksums_wrong_;
  }
  return stats;
}

void Port::note_local_senders() {
  const std::string interface = kernel_interface();
  if (!has_local_senders(interface)) {
    return;
  }
  notes_.push_back(interface + " (" + interface_driver(interface) +
                   ") has no network card: checksums that senders leave to one are finished here" +
                   (packet_ ? ", and packets longer than the MTU are cut up" : ""));
}

void Port::finish_marked(rte_mbuf** frames, std::uint16_t count) {
  std::uint64_t finished = 0;
  for (std::uint16_t i = 0; i < count; ++i) {
    finished +=
        packet::finish_marked_checksum(rte_pktmbuf_mtod(frames[i], std::uint8_t*), rte_pktmbuf_data_len(frames[i])) ? 1
                                                                                                                    : 0;
  }
  if (finished != 0) {
    marked_.fetch_add(finished, std::memory_order_relaxed);
  }
}

void Port::watch_checksum(const rte_mbuf& frame) {
  if (frame.nb_segs != 1) {
    return;
  }
  const auto state = packet::check_transport(rte_pktmbuf_mtod(&frame, const std::uint8_t*), frame.data_len);
  if (state == packet::ChecksumState::none) {
    return;
  }
  checksums_checked_.fetch_add(1, std::memory_order_relaxed);
  if (state == packet::ChecksumState::wrong) {
    checksums_wrong_.fetch_add(1, std::memory_order_relaxed);
  }
}

bool Port::link_up() const {
  if (replay_) {
    return true;
  }
  // Drivers on a kernel interface say "up" always.
  if (kernel_link_) {
    return kernel_link_->up();
  }
  rte_eth_link link{};
  const std::lock_guard lock(asking_);
  return rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

std::string Port::kernel_interface() const {
  return options_.device.rfind("net_af_", 0) == 0 ? device_argument(options_.device, "iface") : "";
}

}  // namespace sluice::port
