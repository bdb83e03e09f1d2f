// Outer packets in fragments, put together again: those of tunnels alone, of one lane. All fragments of a packet come
// to the same lane, for no hash of flows looks at more than the addresses of one.
//
// A packet is a tunnel's when its first fragment says so, so that fragment has to come first, as it does from hosts
// that send in order. Pieces that come before it are not taken, and their packet is not completed.
//
// Memory: piece_bytes, and as flow/fragments.h. Thread-safety: none, one lane. Cost: a copy of each piece, and one of
// the whole. No allocation after construction.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "flow/fragments.h"
#include "packet/vxlan.h"

namespace sluice::function {

class OuterFragments {
 public:
  static constexpr std::uint64_t piece_bytes = 1U << 20;
  enum class Taken : std::uint8_t {
    no,  // it is no tunnel's, or not known to be
    kept,
    whole,    // datagram() is the packet, as a frame
    refused,  // malformed, or of a packet with others that contradict it, or there is no memory
  };

  OuterFragments();
  // A frame that find_vxlan() has found a fragment, to a tunnel's address. `is_first`: with a tunnel's UDP port.
  Taken take(const std::uint8_t* frame, std::uint32_t length, const packet::VxlanView& outer, bool is_first,
             std::uint32_t now_seconds);
  std::string_view datagram() const { return fragments_.datagram(); }

 private:
  flow::Fragments fragments_;
  std::array<std::uint64_t, 1024> ours_{};  // hashes of packets whose first fragment was a tunnel's, by hash
};

}  // namespace sluice::function
