// Notices that a port drops nearly everything that it receives, for one reason. Or all ports together do, each with too
// few frames to show it. Something is wrong on the way there or here then, and counters alone show it only to who looks
// at them. Said in the log once, and again when it ends.
//
//   noticed   four fifths of five seconds' frames are dropped for one reason, and half of those of three seconds;
//             fewer than five frames are too few to say
//   ended     less than half are, or five seconds brought none
//
// What is dropped on purpose is none of it (packet/reason.h, DroppedBy): by an ACL, a rule, a blackhole route.
//
// Thread-safety: none (the control thread). Cost of look(): a pass over the reasons for each port.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "control/snapshot.h"
#include "packet/reason.h"

namespace sluice::control {

class DropWatch {
 public:
  struct Port {
    std::string name;
    std::uint64_t received = 0;
    std::vector<std::uint64_t> drops;  // by packet::Reason
  };
  // Once a second. `ports`: counted since the start; always the same ones.
  void look(const std::vector<Port>& ports);
  // Of each port: why it drops nearly everything; no_reason: it does not.
  const std::vector<packet::Reason>& reasons() const { return reasons_; }
  // Likewise of all together, while no port shows it by itself.
  packet::Reason together() const { return together_; }

 private:
  static constexpr std::size_t seconds = 5, most_of = 3;
  static constexpr std::uint64_t least_frames = 5;
  struct Watched {
    Port before;
    std::array<Port, seconds> slices;  // of a second each, the oldest overwritten
    std::size_t next = 0;
  };
  static void count(Watched& watched, const Port& now);
  static packet::Reason judge(const Watched& watched, packet::Reason known);
  static void say(const std::string& who, packet::Reason before, packet::Reason now);

  std::vector<Watched> watched_;
  std::vector<packet::Reason> reasons_;
  Watched all_;
  packet::Reason together_ = packet::no_reason;
};

// For /healthz, one each; empty: all is well.
std::string drop_ailment(const Snapshot& snapshot);
std::string drop_ailment(const PortSnapshot& port);

}  // namespace sluice::control
