// Packets and bytes of many objects, counted by many lanes: each lane has a row of its own, in which every object has a
// place, so no line is written by two lanes. A sum goes over all rows.
//
// Thread-safety: of a lane one thread at a time counts; sum() any thread, beside them; clear() while no lane counts for
// that object. Cost: add() some ns and a line, which prefetch() asks for. Memory: 16 bytes for each lane and object
// that was counted for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/prefetch.h"
#include "ipsec/huge_memory.h"

namespace sluice::ipsec {

struct Count {
  std::uint64_t packets = 0, bytes = 0;
  bool operator==(const Count&) const = default;
};

class LaneCounts {
 public:
  LaneCounts(std::size_t lanes, std::size_t objects);

  void prefetch(std::uint32_t lane, std::uint32_t object) const { prefetch_for_write(&row(lane)[object]); }
  void add(std::uint32_t lane, std::uint32_t object, std::uint64_t packets, std::uint64_t bytes) const {
    Count& count = row(lane)[object];
    add(count.packets, packets);
    add(count.bytes, bytes);
  }
  Count sum(std::uint32_t object) const;
  // A lane's own place, for what nobody sums up.
  Count& of(std::uint32_t lane, std::uint32_t object) const { return row(lane)[object]; }
  void clear(std::uint32_t object) const;

 private:
  Count* row(std::uint32_t lane) const { return static_cast<Count*>(rows_[lane]->data()); }
  // By one thread: no locked instruction.
  static void add(std::uint64_t& to, std::uint64_t amount) {
    const std::atomic_ref<std::uint64_t> counter(to);
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

  std::vector<std::unique_ptr<HugeMemory>> rows_;  // by lane
};

}  // namespace sluice::ipsec
