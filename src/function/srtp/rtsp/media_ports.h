// The UDP ports of the proxy's own that media of the explicit mode use: pairs of an even one for RTP and the next for
// RTCP. One that is given back is taken again after all others, so that what still comes for it has time to end.
//
// Thread-safety: the proxy's thread alone. Memory: a bit a pair. Cost: taking one looks at each that is in use before
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "media/rtsp/transport.h"

namespace sluice::function::rtsp {

class MediaPorts {
 public:
  using Pair = media::rtsp::PortPair;
  // `first` is even.
  MediaPorts(std::uint16_t first, std::uint16_t last);

  std::optional<Pair> take();  // nothing: all are in use
  void give_back(Pair pair);
  // True for the first that is refused since one was given back: it is worth one line of the log.
  bool worth_reporting() { return !std::exchange(reported_, true); }
  std::size_t used() const { return used_count_; }

 private:
  std::uint16_t first_;
  std::vector<bool> used_;
  std::size_t used_count_ = 0, next_ = 0;
  bool reported_ = false;
};

}  // namespace sluice::function::rtsp
