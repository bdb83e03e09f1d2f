#include "function/srtp/rtsp/media_ports.h"

namespace sluice::function::rtsp {

MediaPorts::MediaPorts(std::uint16_t first, std::uint16_t last)
    : first_(first), used_((static_cast<std::size_t>(last) - first + 1) / 2) {}

std::optional<MediaPorts::Pair> MediaPorts::take() {
  if (used_count_ == used_.size()) return std::nullopt;
  while (used_[next_]) next_ = (next_ + 1) % used_.size();
  used_[next_] = true;
  ++used_count_;
  const auto rtp = static_cast<std::uint16_t>(first_ + 2 * next_);
  next_ = (next_ + 1) % used_.size();
  return Pair{rtp, static_cast<std::uint16_t>(rtp + 1)};
}

void MediaPorts::give_back(Pair pair) {
  used_[(static_cast<std::size_t>(pair.rtp) - first_) / 2] = false;
  --used_count_;
  reported_ = false;
}

}  // namespace sluice::function::rtsp
