// What a router must have done to a frame, judged from the frame alone as it leaves (RFC 1812 5.2 and 5.3, RFC 8200 3):
// TTL or hop limit one lower than before, an IPv4 header checksum that is right, the link addresses of the port that it
// leaves by and of its next hop, that port, the same next hop as every other frame of its flow, and nothing else
// changed. Shares no code with packet/ and the router; the checksum is computed from scratch.
//
// Thread-safety: one thread for each Wire.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace sluice::cli::bench {

enum class Fault : std::uint8_t {
  none,
  ttl,
  checksum,
  source_mac,
  next_hop,  // the destination address is none of the route's next hops'
  port,      // it left by another port than its next hop's
  flow,      // an earlier frame of the same flow took another member of the ECMP group
  content,   // a byte that a router leaves alone, or the length
};
inline constexpr unsigned faults = 8;
const char* fault_text(Fault fault);

using Mac = std::array<std::uint8_t, 6>;

struct Hop {
  std::uint16_t port;
  Mac mac;
};

// A frame that a replay port hands out again and again: one flow.
struct Wire {
  const std::vector<std::uint8_t>* pristine = nullptr;  // as it was made, Ethernet without tags
  std::vector<Hop> hops;                                // of its route
  unsigned times = 0;                                   // that it left since it was written anew
  int taken = -1;                                       // index of the hop that it took
};

class FrameCheck {
 public:
  // `ports`: the address of each. A frame is written anew by its port once in `refresh` rounds; 0: never.
  FrameCheck(std::vector<Mac> ports, unsigned refresh) : ports_(std::move(ports)), refresh_(refresh) {}

  // The first fault that the frame has, as it leaves by `port`.
  Fault check(Wire& wire, std::uint16_t port, const std::uint8_t* frame, std::size_t length) const;

 private:
  Fault check_headers(Wire& wire, const std::uint8_t* frame) const;
  Fault check_next_hop(Wire& wire, std::uint16_t port, const std::uint8_t* frame) const;
  std::vector<Mac> ports_;
  unsigned refresh_;
};

}  // namespace sluice::cli::bench
