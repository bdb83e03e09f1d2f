// Says in the log when the host stops doing its part and when it does it again: a twin that somebody sets down, or that
// has no address for some seconds, and the kernel's forwarding that somebody switches off, and a smaller
// MTU of a port's interface. One line for each change.
//
// Thread-safety: none (the control thread). Cost: a few comparisons when nothing happened.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "control/kernel_forwarding.h"

namespace sluice::control {

class HostLog {
 public:
  struct Twin {
    std::string port, name;
    bool down;
    bool unaddressed = false;
  };
  // Of a port that is of a kernel interface.
  struct Mtu {
    std::string port, interface;
    unsigned wanted, carried;  // the port's, and what its interface has now
  };
  // Those that are there: one that was deleted is left out from then on.
  void look(const std::vector<Twin>& twins);
  void look(const ForwardingOff& off);
  void look(const std::vector<Mtu>& mtus);

 private:
  void look_for_address(const Twin& twin);

  std::set<std::string> down_;                   // by port
  std::map<std::string, unsigned> unaddressed_;  // by port: for how many looks
  std::map<std::string, unsigned> lowered_;      // by port: the MTU
  std::string forwarding_off_;
};

}  // namespace sluice::control
