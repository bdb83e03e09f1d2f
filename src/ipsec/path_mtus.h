// Path MTUs between the ends of outbound SAs, as ICMP errors say them (RFC 4301 section 8.2.1, RFC 1191, RFC 8201): of
// a way, which is a source and a destination of outer packets, for all its SAs.
//
// An entry is never below what the RFCs allow (`least`), only sinks, and ends `kept` after it was learnt, as Linux'
// mtu_expires has it: then larger packets are tried anew.
//
// Thread-safety: none, the databases' mutex. Cost: a look into a map; memory for ways that have an entry.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "packet/ip_address.h"

namespace sluice::ipsec {

class PathMtus {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Way = std::pair<packet::IpAddress, packet::IpAddress>;  // source and destination
  static constexpr std::chrono::seconds kept{600};
  static constexpr std::uint16_t least_ipv4 = 576, least_ipv6 = 1280;

  // `mtu`: as an error has it, 0 of old routers. True: the way's MTU is another one now.
  bool learn(const Way& way, std::uint32_t mtu, Time now);
  // 0: none is known.
  std::uint16_t of(const Way& way) const;
  // The next way whose entry is over; false: there is none.
  bool expire(Time now, Way& way);

 private:
  struct Entry {
    std::uint16_t mtu = 0;
    Time until{};
  };
  // Before that much of its time is over an entry is not renewed, so that errors without end make no more of it.
  static constexpr std::chrono::seconds renewed{60};

  std::map<Way, Entry> entries_;
  std::deque<std::pair<Time, Way>> ends_;  // in order; some have been renewed
};

}  // namespace sluice::ipsec
