// Packets to a gateway in fragments, put together again before they are opened: those of one lane. All fragments of a
// packet come to the same lane, for no hash of flows looks at more than the addresses of one.
//
// Who uses it says of each fragment whether it is one of its own. Where only a packet's first fragment shows that, as
// UDP's ports do, that fragment has to come first, as it does from hosts that send in order: pieces that come before it
// are not taken, and their packet is not completed.
//
// Memory: piece_bytes, and as flow/fragments.h, which says what is refused. Thread-safety: none, one lane. Cost: a copy
// of each piece, and one of the whole. No allocation after construction.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/batch.h"
#include "flow/fragments.h"

namespace sluice::function {

class OuterFragments {
 public:
  static constexpr std::uint64_t piece_bytes = 1U << 20;
  static constexpr flow::Milliseconds timeout = 30'000;
  enum class Taken : std::uint8_t {
    no,  // it is not one of the user's, or not known to be
    kept,
    whole,     // datagram() is the packet, as a frame
    refused,   // malformed, or of a packet with others that contradict it, or there is no memory
    too_long,  // of put_together() alone: the frame's buffer has no room for the packet
  };

  OuterFragments();
  // A frame that holds a fragment. `is_own`: by itself, and then so are all others of its packet.
  Taken take(std::string_view frame, bool is_own, std::uint32_t now_seconds);
  // The same of a row's frame. `whole`: it is the packet now. `kept`: the row is absorbed. One of IPv4 whose header has
  // a wrong checksum is `no`.
  Taken put_together(engine::Batch& batch, std::uint32_t i, bool is_own, std::uint32_t now_seconds);
  std::string_view datagram() const { return fragments_.datagram(); }
  // Forgets some of what has run out of time, so that counters() says so though no fragment comes. Cost: some ns while
  // nothing waits.
  void expire(std::uint32_t now_seconds) {
    if (fragments_.waiting() != 0) fragments_.expire(flow::Milliseconds{now_seconds} * 1000, 2);
  }
  const flow::FragmentCounters& counters() const { return fragments_.counters(); }

 private:
  flow::Fragments fragments_;
  std::array<std::uint64_t, 1024> ours_{};  // hashes of packets that are the user's, by hash
};

}  // namespace sluice::function
