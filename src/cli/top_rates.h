// What changed between two snapshots of the same gateway, each second. Rows are matched by position: a running
// gateway's do not change; reasons of drops by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "control/snapshot.h"

namespace sluice::cli {

class Rates {
 public:
  // `before`: null, or of another run of the gateway: rates since its start. Both outlive this.
  Rates(const control::Snapshot& now, const control::Snapshot* before);

  template <typename Row>
  double per_second(std::vector<Row> control::Snapshot::*rows, std::size_t i, std::uint64_t Row::*field) const {
    const bool known = before_ != nullptr && i < (before_->*rows).size();
    const std::uint64_t old = known ? (before_->*rows)[i].*field : 0;
    const std::uint64_t value = (now_.*rows)[i].*field;
    return static_cast<double>(value >= old ? value - old : 0) / seconds_;
  }
  double lanes_per_second(std::uint64_t control::LaneSnapshot::*field) const;
  double drops_per_second(const control::DropSnapshot& now) const;
  // The bucket that `fraction` of the frames sent in between do not exceed; 0 when there were none.
  std::uint64_t latency(double fraction) const;

 private:
  const control::Snapshot& now_;
  const control::Snapshot* before_;
  double seconds_ = 1;
};

}  // namespace sluice::cli
