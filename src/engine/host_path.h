// The thread between lanes and the host's kernel: writes punted frames to the TAP twins, reads what the kernel sends
// out of the twins and hands it to the lane of the port. Slow path: one system call per frame, outside the lanes.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/bell.h"
#include "engine/counters.h"
#include "engine/host_port.h"
#include "port/frame_pool.h"
#include "port/host_isolation.h"
#include "port/port.h"
#include "port/tap_twin.h"

namespace sluice::engine {

// Of one port: frames that went neither to the host nor out of the port, though they are counted as punted, or were
// sent by the host.
struct HostLosses {
  std::uint64_t to_host = 0;    // the twin did not take them: it is down or gone, or its queue is full
  std::uint64_t from_host = 0;  // the port's lane did not take them fast enough
};

class HostPath {
 public:
  // `ports` must outlive the host path: each twin shows the link of its port, and has no larger MTU than the interface
  // under it. `forwards`: the kernel is kept away from interfaces that ports are of (port/host_isolation.h), with a
  // twin or without.
  static Expected<std::unique_ptr<HostPath>> create(const std::vector<std::unique_ptr<port::Port>>& ports,
                                                    unsigned frame_bytes, bool forwards);
  ~HostPath();
  void start();
  void stop();

  const HostPort* host_ports() const { return host_ports_.data(); }
  // Whom to wake for what the host injects into a port. Before start().
  void set_lane_bell(std::size_t port, Bell* bell) { host_ports_[port].lane_bell = bell; }
  // Any thread.
  HostLosses losses(std::size_t port) const;
  // The twin's interface was deleted, and does not come back before the next start. Any thread.
  bool twin_deleted(std::size_t port) const { return gone_[port].load(std::memory_order_relaxed); }
  // The twin is there no more, or somebody has set it down: the kernel takes nothing on it. Any thread.
  bool twin_down(std::size_t port) const { return twins_[port] && !twins_[port]->enabled(); }
  // Its interface's name now, which others may change; empty: it is in another network namespace; nothing: the port has
  // no twin, or it was deleted. Any thread.
  std::optional<std::string> twin_interface(std::size_t port) const {
    return twins_[port] ? twins_[port]->interface() : std::nullopt;
  }
  // Empty where a port has no twin.
  const std::vector<std::string>& twin_names() const { return twin_names_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  HostPath() = default;
  Expected<void> isolate(const port::Port& port, bool forwards);
  void run();
  unsigned to_host(std::size_t port);
  unsigned from_host(std::size_t port);
  void show_links();
  void show_mtu(std::size_t port);
  void give_up(std::size_t port, const Error& why);

  struct Counters {
    Counter to_host_lost, from_host_lost;
  };
  std::vector<std::optional<port::TapTwin>> twins_;  // by port
  std::vector<std::atomic<bool>> gone_;              // the twin's interface was deleted; by port
  std::vector<bool> starved_;                        // no free frame for what the kernel sends out of the twin; by port
  std::vector<const port::Port*> ports_;
  std::vector<bool> carrier_;  // as the twins show it
  std::vector<unsigned> mtu_;  // of the port, or of the interface under it where that is less; by port
  std::vector<port::HostIsolation> isolations_;
  std::vector<std::string> twin_names_;
  std::vector<std::string> notes_;
  std::vector<HostPort> host_ports_;
  port::FramePool pool_;
  std::vector<Counters> counters_;  // by port
  std::atomic<bool> stopping_{false}, stopped_{false};
  Bell bell_;
  std::thread thread_;
};

}  // namespace sluice::engine
