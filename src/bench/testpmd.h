// DPDK's own forwarder as the yardstick: dpdk-testpmd in MAC mode between two net_null ports on one core, in a process
// of its own. It stands still (SIGSTOP) but for its samples, so that it takes turns with the bench's other rounds and
// both have the same moments of the machine.
//
// Thread-safety: one thread. The process ends with this object, and with the thread that started it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"

namespace sluice::cli::bench {

class Testpmd {
 public:
  // Before DPDK takes the hugepages in this process; 128 MB of them, or ordinary pages. Looks for dpdk-testpmd beside
  // this program and in PATH, and waits until it forwards. An Error says why there is none.
  static Expected<std::unique_ptr<Testpmd>> start();
  // The same with a command line, which prints as testpmd does. For tests.
  static Expected<std::unique_ptr<Testpmd>> start(const std::string& command);
  ~Testpmd();
  Testpmd(const Testpmd&) = delete;
  Testpmd& operator=(const Testpmd&) = delete;

  // Millions of frames per second of both ports together, over a second or more, after as much warm-up. The core that
  // it forwards on is the lowest that this process may use: it should be idle.
  Expected<double> sample();
  bool hugepages() const { return hugepages_; }

 private:
  Testpmd(pid_t process, int output) : process_(process), output_(output) {}
  Expected<double> next_rate();
  std::optional<double> take_rate();
  void forget_output();

  pid_t process_;
  int output_;
  bool hugepages_ = false;
  std::string text_;  // that was read and not used yet
};

}  // namespace sluice::cli::bench
