// Has the kernel take RTSP's frames for its own, whatever their address: what `ip` would say as
//
//     ip rule add pref P iif TWIN ipproto tcp to SERVERS dport PORT lookup T      # and from SERVERS sport PORT
//     ip route add local default dev lo table T
//
// for each twin, prefix of servers and port, for the families of those prefixes. The table is Sluice's alone: rules
// that lead to it are taken away at the end, and at the start what a gateway that was killed has left.
//
// Errors: one sentence, with what is missing. Thread-safety: none (the control thread). Cost: a system call for each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "function/srtp/rtsp_options.h"

namespace sluice::control::rtsp {

class LocalDelivery {
 public:
  static Expected<std::unique_ptr<LocalDelivery>> install(const function::RtspOptions& options,
                                                          const std::vector<std::string>& twins);
  ~LocalDelivery();
  LocalDelivery(const LocalDelivery&) = delete;
  LocalDelivery& operator=(const LocalDelivery&) = delete;

 private:
  LocalDelivery(int fd, std::uint32_t table) : fd_(fd), table_(table) {}
  void take_away();

  int fd_;
  std::uint32_t table_;
};

}  // namespace sluice::control::rtsp
