// Has the kernel forward IPv4 packets from its own addresses that come in by a twin (accept_local, which
// `sysctl -w net.ipv4.conf.TWIN.accept_local=1` sets): media of the explicit mode that the router hands to it, because
// a neighbour is not resolved. Without it they would be dropped as from nowhere. IPv6 knows no such setting.
//
// Thread-safety: none (the control thread).
#pragma once

#include <string>
#include <vector>

namespace sluice::function::rtsp {

class OwnSources {
 public:
  // Where it cannot be set, a line of the log says what to do.
  explicit OwnSources(const std::vector<std::string>& twins);
  // As it was.
  ~OwnSources();
  OwnSources(const OwnSources&) = delete;
  OwnSources& operator=(const OwnSources&) = delete;

 private:
  std::vector<std::string> changed_;  // files
};

}  // namespace sluice::function::rtsp
