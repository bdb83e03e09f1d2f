#include "ipsec/lifetime.h"

#include <algorithm>

namespace sluice::ipsec {
namespace {

constexpr std::uint64_t most_packets = 256, most_bytes = 256U << 10;
// All lanes' shares together are at most this part of what was left when they took them.
constexpr std::uint64_t part = 8;

}  // namespace

bool LifetimeBudget::Amount::soft_reached() const {
  const std::uint64_t limit = soft.load(std::memory_order_relaxed);
  return limit != 0 && granted.load(std::memory_order_relaxed) >= limit;
}

std::uint64_t LifetimeBudget::Amount::take(std::uint64_t least, std::uint64_t usual, std::uint64_t lanes,
                                           bool& reached_soft) {
  const std::uint64_t most = hard.load(std::memory_order_acquire), early = soft.load(std::memory_order_acquire);
  if (most == 0 && early == 0) return least;
  std::uint64_t before = granted.load(std::memory_order_relaxed);
  while (true) {
    std::uint64_t share = usual;
    for (const std::uint64_t limit : {most, early}) {
      if (limit > before) share = std::min(share, (limit - before) / (part * lanes));
    }
    share = std::max(share, least);
    if (most != 0 && (before >= most || share > most - before)) return 0;
    if (granted.compare_exchange_weak(before, before + share, std::memory_order_relaxed)) {
      reached_soft |= before < early && before + share >= early;
      return share;
    }
  }
}

// A lane that sees the limits sees what was given out before them, too.
void LifetimeBudget::Amount::set(const Limit& limit, std::uint64_t used) {
  if (soft.load(std::memory_order_relaxed) == 0 && hard.load(std::memory_order_relaxed) == 0) {
    granted.store(used, std::memory_order_relaxed);
  }
  soft.store(limit.soft, std::memory_order_release);
  hard.store(limit.hard, std::memory_order_release);
}

void LifetimeBudget::set(const Limit& packets, const Limit& bytes, const Count& used) {
  packets_.set(packets, used.packets);
  bytes_.set(bytes, used.bytes);
}

LifetimeShares::Result LifetimeShares::take(std::uint32_t lane, std::uint32_t object, LifetimeBudget& budget,
                                            std::uint32_t packets, std::uint64_t bytes) const {
  Count& left = left_.of(lane, object);
  bool reached_soft = false;
  const auto ensure = [&](std::uint64_t& amount, LifetimeBudget::Amount& from, std::uint64_t needed,
                          std::uint64_t usual) {
    if (amount >= needed) return true;
    const std::uint64_t share = from.take(needed - amount, usual, lanes_, reached_soft);
    amount += share;
    return share != 0;
  };
  if (!ensure(left.packets, budget.packets_, packets, most_packets) ||
      !ensure(left.bytes, budget.bytes_, bytes, most_bytes)) {
    return Result::hard;
  }
  left.packets -= packets;
  left.bytes -= bytes;
  return reached_soft ? Result::soft : Result::fine;
}

}  // namespace sluice::ipsec
