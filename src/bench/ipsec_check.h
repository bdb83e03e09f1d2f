// What `bench ipsec` looks at in frames as they leave. OpenSSL opens what was sealed (tunnel_by_openssl.h). What comes
// out is what went in. So is what the element has opened. Nothing but the TTL has changed, from which a router takes
// one. Of each tunnel the sequence numbers are those from 1 on, each once, and leave a lane in order.
//
// Threads: frame() of each lane by its own thread; all else when no lane is in it, but for the counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "bench/ipsec_tunnels.h"

namespace sluice::cli::bench {

// A number that left, of a lane in the order of leaving.
struct LeftNumber {
  std::uint32_t tunnel, number;
};
// What is wrong with all numbers that have left since the tunnels were new; empty: nothing. No lane has any more.
std::string wrong_numbers(std::span<const std::vector<LeftNumber>> lanes);

class IpsecCheck {
 public:
  IpsecCheck(const IpsecTunnels& tunnels, unsigned lanes);

  // A frame left that was `clear` before (inbound: before it was sealed).
  void frame(unsigned lane, ipsec::Direction direction, std::uint32_t tunnel, std::span<const std::uint8_t> clear,
             std::span<const std::uint8_t> left);
  std::atomic<std::uint64_t> sealed{0}, opened{0};  // that were looked at

  // The first that was wrong; empty: all were right. numbers_too: of a check from the gateway's first frame on, when
  // none is under way.
  std::string wrong(bool numbers_too) const;

 private:
  std::string look(unsigned lane, ipsec::Direction direction, std::uint32_t tunnel, std::span<const std::uint8_t> clear,
                   std::span<const std::uint8_t> left);
  const IpsecTunnels& tunnels_;
  std::vector<std::vector<LeftNumber>> numbers_;  // by lane
  mutable std::mutex mutex_;
  std::string wrong_;
};

}  // namespace sluice::cli::bench
