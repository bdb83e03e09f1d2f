// What the log says of SAs whose packets come from another address: the first one at once, and those of the ten seconds
// behind it in one line, each SA with the address that it came from last. A peer that moves with many SAs (MOBIKE), or
// one that changes all the time, fills no log.
//
// Thread-safety: none. Cost: some 100 bytes for each SA that has moved meanwhile.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "ipsec/security_association.h"
#include "packet/ip_address.h"

namespace sluice::function {

class MovedLog {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds together{10};
  static constexpr std::size_t most_named = 8;

  // `log` writes a line.
  explicit MovedLog(std::function<void(const std::string& line)> log) : log_(std::move(log)) {}

  // `name`: of the SA, for people. `port`: 0: none.
  void moved(const ipsec::SaId& id, const std::string& name, const packet::IpAddress& source, std::uint16_t port,
             Time now);
  // Now and then: writes what has come together.
  void tick(Time now);
  // What there is, at the end.
  void flush();

 private:
  struct Last {
    std::string name, from;
    unsigned times = 0;
  };

  std::function<void(const std::string& line)> log_;
  Time until_{};  // lines are held back; before the first one never
  std::map<ipsec::SaId, Last> held_;
};

}  // namespace sluice::function
