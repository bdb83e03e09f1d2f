// Notices that a port takes frames and fails to send them (tx_errors), second after second: its interface carries less
// than its mtu, as behind a bridge, which answers no sender "too big", or is not what it was. Said in the log once, and
// again when it ends.
//
//   noticed   in three seconds one after the other frames were lost so
//   ended     ten seconds brought none
//
// Thread-safety: none (the control thread). Cost of look(): constant for each port.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::control {

class SendWatch {
 public:
  struct Port {
    std::string name;
    std::uint64_t errors = 0;  // since the start
  };
  // Once a second; always the same ports.
  void look(const std::vector<Port>& ports);
  // Of each port, whether it fails.
  const std::vector<bool>& failing() const { return failing_; }

 private:
  static constexpr unsigned seconds_to_begin = 3, seconds_to_end = 10;
  struct Watched {
    std::uint64_t errors = 0;
    unsigned bad = 0, good = 0;  // seconds, one after the other
  };

  std::vector<Watched> watched_;
  std::vector<bool> failing_;
};

}  // namespace sluice::control
