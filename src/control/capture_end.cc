#include "control/capture_end.h"

namespace sluice::control {

bool CaptureEnd::reached(const engine::EngineStats& stats) {
  constexpr std::uint64_t enough = 2;
  if (stats.total.rx_frames != received_ || stats.total.in_flight != 0 || polls_.size() != stats.lanes.size()) {
    received_ = stats.total.rx_frames;
    polls_.clear();
    for (const engine::EngineStats::Lane& lane : stats.lanes) polls_.push_back(lane.empty_polls);
    return false;
  }
  for (std::size_t lane = 0; lane < polls_.size(); ++lane) {
    if (stats.lanes[lane].empty_polls < polls_[lane] + enough) return false;
  }
  return true;
}

}  // namespace sluice::control
