#include "function/vxlan/vxlan_control.h"

#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

namespace sluice::function {
namespace {

constexpr std::chrono::milliseconds look_interval(1000);
// ARP and ND take a moment, and twins come up after the start: no word of it before.
constexpr std::chrono::seconds patience(4);
constexpr std::size_t most_troubles = 4;  // that are reported one by one

}  // namespace

VxlanControl::VxlanControl(TunnelSettings settings, const engine::PortTable& ports) : settings_(std::move(settings)) {
  fdbs_.resize(ports.size());
  for (std::size_t p = 0; p < ports.size(); ++p) {
    // A tunnel in a tunnel would go through the same lane twice.
    twins_.push_back(ports[p].is_virtual ? std::string() : ports[p].twin);
    macs_.push_back(ports[p].mac.word());
  }
}

VxlanControl::~VxlanControl() {
  if (thread_.joinable()) {
    stopping_.store(true);
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t rung = write(wake_fd_, &one, sizeof one);
    thread_.join();
  }
  if (wake_fd_ >= 0) close(wake_fd_);
}

Expected<void> VxlanControl::start(std::size_t readers) {
  auto hops = NextHops::open(twins_);
  if (!hops) return tl::unexpected(hops.error());
  hops_.emplace(std::move(*hops));
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return make_error(std::string("[vxlan] no event descriptor: ") + std::strerror(errno));
  for (const Tunnel& tunnel : settings_.tunnels) {
    fdbs_[tunnel.port] = std::make_unique<Fdb>(settings_.most_learned);
  }
  views_ = std::make_unique<Published<const VxlanView>>(readers);
  name_remotes();
  publish();
  thread_ = std::thread([this] { run(); });
  return {};
}

void VxlanControl::name_remotes() {
  std::set<Ends> used;
  for (const Tunnel& tunnel : settings_.tunnels) {
    for (const packet::IpAddress& address : remotes_of(tunnel)) {
      used.insert({tunnel.local, address});
      followed_.try_emplace({tunnel.local, address});
    }
  }
  ids_.name(remotes_of(settings_));
  std::erase_if(followed_, [&](const auto& one) { return !used.contains(one.first); });
}

void VxlanControl::publish() {
  auto view = std::make_unique<VxlanView>();
  std::map<Ends, NextHop> hops;
  for (const auto& [ends, followed] : followed_) hops[ends] = followed.hop;
  view->source_macs = macs_;
  for (const auto& [ends, hop] : hops) {
    if (hop.resolved) view->source_macs[hop.port] = hop.source_mac.word();
  }
  view->of_port.assign(twins_.size(), VxlanView::no_tunnel);
  for (const Tunnel& tunnel : settings_.tunnels) {
    view->of_port[tunnel.port] = static_cast<std::uint16_t>(view->tunnels.size());
    view->tunnels.emplace_back(tunnel, ids_.all(), hops);
    const TunnelView& shown = view->tunnels.back();
    fdbs_[tunnel.port]->forget([&](RemoteId id) { return shown.by_id(id) == nullptr; });
  }
  views_->publish(std::move(view));
}

// Once no lane has a view with the addresses that are gone, none learns a station behind one of them.
void VxlanControl::release_ids() {
  const std::set<RemoteId> resting = ids_.resting();
  if (resting.empty()) return;
  for (const auto& fdb : fdbs_) {
    if (fdb) fdb->forget([&](RemoteId id) { return resting.contains(id); });
  }
  ids_.release();
}

Expected<void> VxlanControl::check(const TunnelSettings& settings) const {
  const std::lock_guard lock(changing_);
  if (ids_.has_capacity(remotes_of(settings))) return {};
  return make_error("[vxlan] the new remotes are, with those that a reload has just taken away, more than " +
                    std::to_string(RemoteIds::most) + " addresses: reload again in some seconds");
}

void VxlanControl::change(TunnelSettings settings) {
  const std::lock_guard lock(changing_);
  std::vector<std::uint16_t> other_networks;  // ports
  for (const Tunnel& tunnel : settings.tunnels) {
    if (changes_network(settings_, tunnel)) other_networks.push_back(tunnel.port);
  }
  settings_ = std::move(settings);
  name_remotes();
  publish();
  // Behind the last frame that lanes take for one of the former network.
  if (!other_networks.empty()) reclaim_soon([this] { return views_->reclaim(); });
  for (const std::uint16_t port : other_networks) fdbs_[port]->forget([](RemoteId) { return true; });
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t rung = write(wake_fd_, &one, sizeof one);
}

std::uint32_t VxlanControl::learned() const {
  std::uint32_t all = 0;
  for (const auto& fdb : fdbs_) all += fdb ? fdb->size() : 0;
  return all;
}

std::vector<engine::Trouble> VxlanControl::troubles() const {
  const std::lock_guard lock(troubling_);
  return troubles_;
}

void VxlanControl::note_troubles() {
  std::vector<engine::Trouble> all;
  std::size_t more = 0;
  for (const auto& [ends, followed] : followed_) {
    if (!followed.reported) continue;
    if (all.size() == most_troubles) {
      ++more;
      continue;
    }
    all.push_back(
        {"vxlan: " + ends.remote.str() + " cannot be reached from " + ends.local.str() + ": " + followed.hop.why,
         "ip route get " + ends.remote.str() + " from " + ends.local.str() + ", ip neigh"});
  }
  if (more != 0) all.push_back({"vxlan: " + std::to_string(more) + " more cannot be reached", "the log has them"});
  const std::lock_guard lock(troubling_);
  troubles_ = std::move(all);
}

void VxlanControl::report(const Ends& ends, Followed& followed, Clock::time_point now) {
  if (followed.hop.resolved) {
    if (followed.reported) spdlog::info("vxlan: {} can be reached from {} again", ends.remote.str(), ends.local.str());
    followed.since.reset();
    followed.reported = false;
    return;
  }
  if (!followed.since) followed.since = now;
  if (followed.reported || now - *followed.since < patience) return;
  followed.reported = true;
  spdlog::warn("vxlan: {} cannot be reached from {}, and frames for it are dropped as vxlan_unresolved: {}",
               ends.remote.str(), ends.local.str(), followed.hop.why);
}

void VxlanControl::look() {
  const Clock::time_point now = Clock::now();
  bool changed = false;
  std::uint32_t unresolved = 0;
  for (auto& one_followed : followed_) {
    const Ends& ends = one_followed.first;
    Followed& followed = one_followed.second;
    NextHop hop = hops_->find(ends.local, ends.remote);
    changed = changed || hop != followed.hop;
    followed.hop = std::move(hop);
    unresolved += followed.hop.resolved ? 0 : 1;
    report(ends, followed, now);
  }
  note_troubles();
  unresolved_.store(unresolved, std::memory_order_relaxed);
  if (changed) publish();
  if (views_->reclaim() == 0) release_ids();
}

void VxlanControl::run() {
  pthread_setname_np(pthread_self(), "sluice-vxlan");
  const Clock::time_point began = Clock::now();
  std::uint32_t aged = 0;
  while (!stopping_.load()) {
    {
      const std::lock_guard lock(changing_);
      look();
      // From 1 on, so that nothing is older than the start.
      const auto passed = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began);
      const auto now = static_cast<std::uint32_t>(passed.count() + 1);
      now_.store(now, std::memory_order_relaxed);
      if (now != aged && now > settings_.ageing) {
        for (const auto& fdb : fdbs_) {
          if (fdb) fdb->age(now - settings_.ageing);
        }
      }
      aged = now;
    }
    hops_->wait(wake_fd_, look_interval);
    std::uint64_t rung;
    [[maybe_unused]] const ssize_t taken = read(wake_fd_, &rung, sizeof rung);
  }
}

}  // namespace sluice::function
