// The control side of the element `vxlan`: a thread that follows the kernel's routes and neighbours, and forgets
// stations that were silent for long. What lanes need of it is published.
//
// Thread-safety: view() by one thread for each reader at a time; change() and the thread exclude each other; all else
// any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/published.h"
#include "engine/self_check.h"
#include "function/vxlan/fdb.h"
#include "function/vxlan/next_hops.h"
#include "function/vxlan/remote_ids.h"
#include "function/vxlan/tunnels.h"
#include "function/vxlan/vxlan_view.h"

namespace sluice::function {

class VxlanControl {
 public:
  VxlanControl(TunnelSettings settings, const engine::PortTable& ports);
  ~VxlanControl();
  VxlanControl(const VxlanControl&) = delete;
  VxlanControl& operator=(const VxlanControl&) = delete;

  // Once, before lanes run: `readers` numbers of view().
  Expected<void> start(std::size_t readers);
  // Of one of the readers, until its next call or release().
  const VxlanView& view(std::size_t reader) const { return *views_->pin(reader); }
  void release(std::size_t reader) const { views_->unpin(reader); }
  Fdb& fdb(std::uint16_t tunnel_port) { return *fdbs_[tunnel_port]; }
  // Seconds since the start, for Fdb.
  std::uint32_t now() const { return now_.load(std::memory_order_relaxed); }

  // Why tunnels cannot be changed to these now.
  Expected<void> check(const TunnelSettings& settings) const;
  // Tunnels of the same ports with other facts, as checked, in force when it returns. Learned stations stay, but for
  // those of a tunnel that has another VNI, and so is of another network.
  void change(TunnelSettings settings);
  const TunnelSettings& settings() const { return settings_; }  // the control thread's

  std::uint32_t unresolved() const { return unresolved_.load(std::memory_order_relaxed); }
  std::uint32_t learned() const;
  // Each tunnel as it is now, with the way to each of its remotes. Waits for a look at routes and neighbours, if there
  // is one under way.
  struct ShownRemote {
    packet::IpAddress address;
    NextHop hop;
  };
  struct ShownTunnel {
    std::uint16_t port = 0;
    std::uint32_t vni = 0;
    packet::IpAddress local;
    std::uint32_t stations = 0;  // learned
    std::vector<ShownRemote> remotes;
  };
  std::vector<ShownTunnel> show() const;
  // Remotes that cannot be reached for some seconds.
  std::vector<engine::Trouble> troubles() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Followed {
    NextHop hop;
    std::optional<Clock::time_point> since;  // unresolved
    bool reported = false;
  };
  void run();
  void look();
  void report(const Ends& ends, Followed& followed, Clock::time_point now);
  void note_troubles();
  void publish();
  void name_remotes();
  void release_ids();

  TunnelSettings settings_;
  std::vector<std::string> twins_;          // by port
  std::vector<std::uint64_t> macs_;         // likewise
  std::vector<std::unique_ptr<Fdb>> fdbs_;  // by port; null: no virtual one
  RemoteIds ids_;
  std::map<Ends, Followed> followed_;
  std::optional<NextHops> hops_;
  std::unique_ptr<Published<const VxlanView>> views_;
  mutable std::mutex changing_;  // all of the above, while the thread runs
  mutable std::mutex troubling_;
  std::vector<engine::Trouble> troubles_;
  std::atomic<std::uint32_t> now_{0}, unresolved_{0};
  std::atomic<bool> stopping_{false};
  int wake_fd_ = -1;
  std::thread thread_;
};

}  // namespace sluice::function
