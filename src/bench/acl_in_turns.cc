#include "bench/acl_in_turns.h"

#include <chrono>
#include <thread>

namespace sluice::cli::bench {
namespace {
constexpr auto settles = std::chrono::milliseconds(50);  // some tens of times what a batch takes
}  // namespace

void AclTurns::set(bool present, bool fused) {
  if (present_.load() != present) {
    fused_.store(false, std::memory_order_release);
    present_.store(present);
    std::this_thread::sleep_for(settles);
  }
  if (fused_.load() == fused) return;
  fused_.store(fused, std::memory_order_release);
  std::this_thread::sleep_for(settles);
}

}  // namespace sluice::cli::bench
