// What became of the packets of one stream, for who asks why it is silent (media_streams.h): what left, what passed as
// it came, what was dropped by which name, and when something came last.
//
// What left is counted by the one lane that the stream is of, in a line that it needs anyway (media_stream.h). The rest
// is rare, and any lane's: it lies apart, and is added to at once. Threads: any may read.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "engine/counters.h"
#include "packet/reason.h"

namespace sluice::function {

// Packets of RTP or of RTCP that left protected or unprotected, and the bytes of their frames as they left.
struct LeftTally {
  engine::Counter packets, bytes;
  void add(std::uint32_t frame_bytes) {
    packets.add(1);
    bytes.add(frame_bytes);
  }
};

// Why packets of a stream were dropped, as far as who looks at one stream wants to distinguish them.
enum class StreamLoss : std::uint8_t {
  auth_failed,
  replayed,
  too_old,
  policed,
  wrong_port,
  other_lane,
  ended,
  others,
};
inline constexpr std::array<std::string_view, 8> stream_loss_names = {"auth_failed", "replayed",   "too_old", "policed",
                                                                      "wrong_port",  "other_lane", "ended",   "others"};
inline constexpr std::size_t stream_losses = stream_loss_names.size();
StreamLoss loss_of(packet::Reason reason);

class RareTally {
 public:
  void drop(packet::Reason reason) {
    lost_[static_cast<std::size_t>(loss_of(reason))].fetch_add(1, std::memory_order_relaxed);
  }
  // The same of one that came now, by whichever lane.
  void refuse(packet::Reason reason, std::uint64_t now) {
    drop(reason);
    last_.store(now, std::memory_order_relaxed);
  }
  void pass() { passed_.fetch_add(1, std::memory_order_relaxed); }

  std::uint64_t lost(StreamLoss loss) const {
    return lost_[static_cast<std::size_t>(loss)].load(std::memory_order_relaxed);
  }
  std::uint64_t passed() const { return passed_.load(std::memory_order_relaxed); }
  // Of the time-stamp counter; 0: none was refused.
  std::uint64_t last() const { return last_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, stream_losses> lost_{};
  std::atomic<std::uint64_t> passed_{0}, last_{0};
};

}  // namespace sluice::function
