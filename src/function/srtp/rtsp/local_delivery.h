// Has the kernel take RTSP's frames for its own, whatever their address: what `ip` would say as
//
//     ip rule add pref P iif TWIN ipproto tcp to SERVERS dport PORT lookup T      # and from SERVERS sport PORT
//     ip route add local default dev lo table T
//
// for each twin, prefix of servers and port, for the families of those prefixes. The table is one Sluice's alone in a
// network namespace (base/namespace_lock.h): rules that lead to it are taken away at the end, and at the start what a
// gateway that was killed has left.
//
// What others take away while it lives look() makes again. Rules of others that come before these (rule_order.h) it
// cannot help: they are named in the log, and in ailment().
//
// Errors: one sentence, with what is missing. Thread-safety: install(), look() and destruction by one thread at a time;
// ailment() and restored() by any. Cost: a system call for each.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/namespace_lock.h"
#include "function/srtp/rtsp/transparent_socket.h"
#include "function/srtp/rtsp_options.h"

namespace sluice::function::rtsp {

class LocalDelivery {
 public:
  static Expected<std::unique_ptr<LocalDelivery>> install(const function::RtspOptions& options,
                                                          const std::vector<std::string>& twins);
  ~LocalDelivery();
  LocalDelivery(const LocalDelivery&) = delete;
  LocalDelivery& operator=(const LocalDelivery&) = delete;

  // Once a second. Cost: a system call for each family; where somebody has changed rules, one for each of ours.
  void look();
  // What is missing now, or was within the last ten looks, or comes before; empty: nothing.
  std::string ailment() const;
  // Rules and routes that were gone and were made again.
  std::uint64_t restored() const { return restored_.load(std::memory_order_relaxed); }

 private:
  // Of all rules and routes: how many were not there and have been made, and the first error.
  struct Made {
    std::size_t count = 0;
    Expected<void> result;
  };
  LocalDelivery(function::RtspOptions options, std::vector<std::string> twins, NamespaceLock lock)
      : options_(std::move(options)), twins_(std::move(twins)), lock_(std::move(lock)) {}
  Expected<void> open();
  Made make_routes();
  Made make_rules();
  bool rules_changed();
  void look_for_others();
  void announce(const Made& made);
  void take_away();

  const function::RtspOptions options_;
  const std::vector<std::string> twins_;
  NamespaceLock lock_;
  Fd fd_, changes_;  // requests; notifications
  bool look_again_ = true;
  unsigned looks_since_gone_ = 0;
  std::string missing_, others_;
  std::atomic<std::uint64_t> restored_{0};
  mutable std::mutex ailment_mutex_;
  std::string ailment_;
};

}  // namespace sluice::function::rtsp
