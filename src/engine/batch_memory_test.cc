#include "engine/batch_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

struct RegisteringGpu : JitterGpu {
  RegisteringGpu() : JitterGpu(1) {}
  Expected<void> register_host(void* base, std::size_t bytes) override {
    if (refuses) return make_error("no pinning for a test");
    registered.emplace_back(static_cast<std::byte*>(base), bytes);
    return {};
  }
  bool holds(const void* at, std::size_t bytes) const {
    const auto* const from = static_cast<const std::byte*>(at);
    return std::ranges::any_of(registered,
                               [&](auto one) { return from >= one.data() && from + bytes <= one.data() + one.size(); });
  }
  std::vector<std::span<std::byte>> registered;
  bool refuses = false;
};

TEST(BatchMemory, PiecesAreZeroedAlignedApartAndRegistered) {
  RegisteringGpu gpu;
  BatchMemory memory(&gpu);
  std::vector<std::span<std::byte>> pieces;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100'000}, std::size_t{64}, std::size_t{9'000'000},
                                  std::size_t{5}, std::size_t{4'000'000}}) {
    auto piece = memory.allocate(bytes);
    ASSERT_TRUE(piece);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*piece) % 64, 0U);
    EXPECT_TRUE(gpu.holds(*piece, bytes));
    pieces.emplace_back(static_cast<std::byte*>(*piece), bytes);
    EXPECT_TRUE(std::ranges::all_of(pieces.back(), [](std::byte b) { return b == std::byte{0}; }));
    std::ranges::fill(pieces.back(), std::byte{0xff});
  }
  EXPECT_LT(gpu.registered.size(), pieces.size()) << "small ones share a chunk";
}

TEST(BatchMemory, SaysWhyItCannotBePinned) {
  RegisteringGpu gpu;
  gpu.refuses = true;
  BatchMemory memory(&gpu);
  const auto piece = memory.allocate(1);
  ASSERT_FALSE(piece);
  EXPECT_EQ(piece.error().message, "memory for batches cannot be pinned for the GPU: no pinning for a test");
}

TEST(BatchMemory, IsThereWithoutAGpu) {
  BatchMemory memory(nullptr);
  EXPECT_TRUE(memory.allocate(1 << 20));
}

}  // namespace
}  // namespace sluice::engine
