// Notices that most TCP and UDP frames that a port receives have wrong checksums: their senders left them to a network
// card that is not there, and the port's driver does not say which (docs/ports.md). Ping works then and TCP does not,
// which counters alone show only to who looks at them. Said in the log once, and again when it ends.
//
//   noticed   of a minute's samples three at least are wrong, and no fewer than half. A SYN that is sent again and
//             again is three within seven seconds, so one connection that fails is enough
//   ended     less than a quarter are, or a minute brought no wrong one
//
// Thread-safety: none (the control thread). Cost of look(): constant for each port.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::control {

class ChecksumWatch {
 public:
  struct Port {
    std::string name;
    std::uint64_t checked = 0, wrong = 0;  // since the start
  };
  // Once a second; always the same ports.
  void look(const std::vector<Port>& ports);
  // Of each port, whether most are wrong.
  const std::vector<bool>& unfinished() const { return unfinished_; }

 private:
  static constexpr std::size_t seconds = 60;
  static constexpr std::uint64_t least_wrong = 3;
  struct Watched {
    std::array<Port, seconds> before;  // what was counted up to each of the last seconds, the oldest overwritten
    std::size_t next = 0;
  };

  std::vector<Watched> watched_;
  std::vector<bool> unfinished_;
};

}  // namespace sluice::control
