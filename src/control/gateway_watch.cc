// What a gateway looks at on each tick, for its log and its health: links, twins, drops, the kernel's forwarding.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "control/gateway.h"
#include "control/kernel_forwarding.h"
#include "function/routing_reasons.h"
#include "port/virtual_device.h"

namespace sluice::control {

// Twins show the link of their ports to the kernel, and the mirror shows it to the router, but up to a second late; and
// ports without a twin have only this.
void Gateway::watch_links() {
  link_up_.resize(config_.engine.ports.size(), true);
  deleted_.resize(link_up_.size());
  for (std::size_t i = 0; i < link_up_.size(); ++i) {
    const bool up = engine_->port(i).link_up();
    const port::PortOptions& port = config_.engine.ports[i];
    if (!deleted_[i] && engine_->port(i).interface_deleted()) {
      deleted_[i] = true;
      spdlog::error("port {}: interface {} was deleted; restart sluice to use the new one", port.name,
                    port::live_interface(port.device));
    }
    if (up == link_up_[i]) {
      continue;
    }
    link_up_[i] = up;
    if (!deleted_[i]) {
      spdlog::warn("port {}: link {}", port.name, up ? "up" : "down");
    }
    if (routing_ != nullptr) {
      routing_->table().set_carrier(static_cast<function::PortIndex>(i), up);
    }
  }
}

void Gateway::look_at_device() {
  engine_->look_at_devices();
  if (device_capacity_) device_capacity_->look(engine_->gpu_up());
  if (!device_return_) device_return_.emplace(config_.engine.device_return, engine_->gpus().size());
  for (std::size_t gpu = 0; gpu < engine_->gpus().size(); ++gpu) {
    const engine::Loss loss = engine_->gpu_loss(gpu).how();
    const bool may_return = loss != engine::Loss::none && loss != engine::Loss::hung;
    if (is_resetting_.load()) break;
    if (device_return_->is_due(gpu, may_return, std::chrono::steady_clock::now())) (void)begin_reset(gpu);
  }
}

void Gateway::look_at_mirror() {
  const MirrorStats stats = mirror_->stats();
  mirror_log_.look(stats);
  // Rules are there before their tables have routes: strongSwan's for one, which an IKE daemon makes as SAs come.
  if (ready_ && stats.other_tables != other_tables_ && looks_at_other_tables_.admit()) note_policy_routing();
  const std::lock_guard lock(mirror_stats_mutex_);
  mirror_stats_ = stats;
}

void Gateway::look_at_twins() {
  std::vector<HostLog::Twin> twins;
  const engine::HostPath& path = engine_->host_path();
  std::vector<bool> unaddressed(path.twin_names().size());
  std::vector<std::vector<std::string>> missing(unaddressed.size());
  for (std::size_t i = 0; i < unaddressed.size(); ++i) {
    // In this order: one that is deleted between the two is not taken for one that is down.
    const bool down = path.twin_down(i);
    if (const auto interface = path.twin_interface(i)) {
      // Only a router's twins are to be reached.
      unaddressed[i] = mirror_ && !config_.engine.ports[i].unnumbered && !is_addressed(*interface);
      missing[i] = missing_addresses(*interface, twin_addresses_.wanted(path.twin_names()[i]));
      twins.push_back({config_.engine.ports[i].name, path.twin_names()[i], down, unaddressed[i]});
    }
  }
  host_log_.look(twins);
  const std::lock_guard lock(mirror_stats_mutex_);
  twins_unaddressed_ = std::move(unaddressed);
  addresses_missing_ = std::move(missing);
}

// Of ports with a twin the mirror informs the router, when the twin has followed.
void Gateway::look_at_mtus() {
  std::vector<HostLog::Mtu> mtus;
  for (std::size_t i = 0; i < config_.engine.ports.size(); ++i) {
    const port::PortOptions& port = config_.engine.ports[i];
    const std::string interface = engine_->port(i).kernel_interface();
    if (interface.empty()) continue;
    const unsigned carried = engine_->port(i).carried_mtu();
    mtus.push_back({port.name, interface, port.mtu, carried});
    const bool is_mirrored = mirror_ && !engine_->host_path().twin_names()[i].empty();
    if (routing_ == nullptr || is_mirrored || carried == 0) continue;
    routing_->table().set_link(static_cast<function::PortIndex>(i), true, std::min(port.mtu, carried));
  }
  host_log_.look(mtus);
}

void Gateway::look_at_drops() {
  const engine::EngineStats stats = engine_->stats();
  std::vector<DropWatch::Port> ports;
  std::vector<ChecksumWatch::Port> checksums;
  std::vector<SendWatch::Port> sent;
  for (std::size_t i = 0; i < stats.ports.size(); ++i) {
    const std::string& name = config_.engine.ports[i].name;
    ports.push_back({name, stats.ports[i].rx_frames, stats.ports[i].drops});
    checksums.push_back({name, stats.ports[i].device.checksums_checked, stats.ports[i].device.checksums_wrong});
    sent.push_back({name, stats.ports[i].device.tx_errors});
  }
  drop_watch_.look(ports);
  checksum_watch_.look(checksums);
  send_watch_.look(sent);
  // An interface on a twin that the kernel reports nothing of may have that address.
  const std::uint64_t other_hosts = stats.drops[function::other_host];
  if (other_hosts != std::exchange(other_hosts_, other_hosts) && mirror_) mirror_->look_at_links();
  const std::lock_guard lock(mirror_stats_mutex_);
  nearly_all_dropped_ = drop_watch_.reasons();
  nearly_all_dropped_together_ = drop_watch_.together();
  checksums_unfinished_ = checksum_watch_.unfinished();
  fails_to_send_ = send_watch_.failing();
}

void Gateway::look_at_forwarding() {
  const ForwardingOff off = forwarding_off(mirrored_twins_);
  host_log_.look(off);
  const std::lock_guard lock(mirror_stats_mutex_);
  forwarding_off_ = off;
}

}  // namespace sluice::control
