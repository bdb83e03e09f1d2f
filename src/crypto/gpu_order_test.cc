// Batches whose jobs are done in an order (device/warp_schedule.h): the same as in any other, on every way.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>

#include "crypto/gpu_crypto.h"
#include "crypto/gpu_crypto_trial_test.h"

namespace sluice::crypto {
namespace {

class GpuOrderTest : public GpuCryptoTest {
 protected:
  // How many groups of 32 places were timed.
  std::size_t timed() const {
    return static_cast<std::size_t>(
        std::count_if(times_, times_ + most_places / 32, [](std::uint32_t time) { return time != 0; }));
  }
};
INSTANTIATE_TEST_SUITE_P(Of, GpuOrderTest, testing::Values(Repertoire::media, Repertoire::all),
                         [](const auto& of) { return of.param == Repertoire::media ? "Media" : "All"; });

// `runs`: where jobs that follow one another lie in as many runs of memory; 40 are too many to copy.
TEST_P(GpuOrderTest, BatchesInAnOrderDoAsTheCpuDoes) {
  std::mt19937 random(29);
  install_keys(random);
  struct Case {
    GpuPath path;
    Size size;
    std::uint32_t pitch;
    std::uint32_t runs = 1;
    std::size_t own_bytes = 15;
  };
  for (const Case& c : {Case{GpuPath::direct, Size::any, 0, 1, 0}, Case{GpuPath::direct, Size::ordinary, 1552},
                        Case{GpuPath::copy, Size::ordinary, 1552}, Case{GpuPath::copy, Size::ordinary, 1552, 3},
                        Case{GpuPath::copy, Size::tiny, 320, 16}, Case{GpuPath::copy, Size::tiny, 320, 40},
                        Case{GpuPath::automatic, Size::ordinary, 1552, 2}}) {
    make(c.path, 40'000, c.own_bytes);
    for (const std::uint32_t count : {1, 2, 31, 33, 64, 480, 600}) {
      SCOPED_TRACE("path " + std::to_string(static_cast<int>(c.path)) + " pitch " + std::to_string(c.pitch) + ", " +
                   std::to_string(c.runs) + " runs");
      ASSERT_NO_FATAL_FAILURE(make_jobs(random, count, c.size, c.pitch));
      for (std::uint32_t r = 0; c.runs > 1 && r < c.runs / 2; ++r) {
        const std::uint32_t other = c.runs - 1 - r, size = count / c.runs;
        std::swap_ranges(jobs_ + r * size, jobs_ + (r + 1) * size, jobs_ + other * size);
      }
      if (count == 64) std::reverse(jobs_, jobs_ + count);
      ordered_ = count % 3 != 0;
      makes_order_ = !ordered_;
      ASSERT_NO_FATAL_FAILURE(compare(count, count % 2));
      EXPECT_EQ(timed(), ordered_ ? places_ / 32 : 0);
    }
  }
}

TEST_P(GpuOrderTest, BatchesTogetherInOrdersDoAsTheCpuDoes) {
  std::mt19937 random(31);
  install_keys(random);
  for (const std::uint64_t piece_bytes : {40'000, 4 << 20}) {
    make(GpuPath::copy, piece_bytes);
    for (const std::uint32_t together : {2U, 3U, most_together}) {
      for (const std::uint32_t count : {5, 600}) {
        SCOPED_TRACE(std::to_string(together) + " batches of " + std::to_string(count) + " packets");
        together_ = together;
        ASSERT_NO_FATAL_FAILURE(make_jobs(random, count, Size::ordinary, 1552));
        std::rotate(jobs_, jobs_ + count / 3, jobs_ + count);
        ordered_ = !ordered_;
        makes_order_ = !ordered_;
        ASSERT_NO_FATAL_FAILURE(compare(count, count % 2));
      }
    }
  }
}

// A label's estimate is between its warps' times.
TEST_P(GpuOrderTest, TimesOfWarpsAreLearned) {
  std::mt19937 random(37);
  install_keys(random);
  ordered_ = true;
  make(GpuPath::direct);
  ASSERT_NO_FATAL_FAILURE(make_jobs(random, 600, Size::tiny, 1552));
  for (std::uint32_t i = 0; i < 600; ++i) {
    jobs_[i].key = i % 2;
    jobs_[i].cipher_length = i < 300 ? 16 : 1280;
    fit(jobs_[i]);
  }
  ASSERT_NO_FATAL_FAILURE(run(600));
  const std::span labels(labels_.data(), places_ / 32);
  warp_times_.learn(labels, std::span(times_, labels.size()));
  std::map<std::uint16_t, std::pair<std::uint32_t, std::uint32_t>> range;
  for (std::size_t w = 0; w < labels.size(); ++w) {
    const auto [at, is_new] = range.try_emplace(labels[w], times_[w], times_[w]);
    at->second = {std::min(at->second.first, times_[w]), std::max(at->second.second, times_[w])};
  }
  range.erase(device::mixed_label);
  ASSERT_GE(range.size(), 2U);
  for (const auto& [label, times] : range) {
    EXPECT_GE(warp_times_.of(label) * 1.001F, static_cast<float>(times.first)) << label;
    EXPECT_LE(warp_times_.of(label) * 0.999F, static_cast<float>(times.second)) << label;
  }
}

}  // namespace
}  // namespace sluice::crypto
