#include "ipsec/lane_counts.h"

namespace sluice::ipsec {

LaneCounts::LaneCounts(std::size_t lanes, std::size_t objects) : rows_(lanes) {
  for (auto& row : rows_) row = std::make_unique<HugeMemory>(objects * sizeof(Count));
}

Count LaneCounts::sum(std::uint32_t object) const {
  Count sum;
  for (std::uint32_t lane = 0; lane < rows_.size(); ++lane) {
    Count& count = row(lane)[object];
    sum.packets += std::atomic_ref(count.packets).load(std::memory_order_relaxed);
    sum.bytes += std::atomic_ref(count.bytes).load(std::memory_order_relaxed);
  }
  return sum;
}

// What is 0 stays unwritten: memory that no lane has touched is not there.
void LaneCounts::clear(std::uint32_t object) const {
  const auto zero = [](std::uint64_t& number) {
    const std::atomic_ref counter(number);
    if (counter.load(std::memory_order_relaxed) != 0) counter.store(0, std::memory_order_relaxed);
  };
  for (std::uint32_t lane = 0; lane < rows_.size(); ++lane) {
    zero(row(lane)[object].packets);
    zero(row(lane)[object].bytes);
  }
}

}  // namespace sluice::ipsec
