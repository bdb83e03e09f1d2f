// What `bench match` says is verified is: of keys that were reported, of those that were not, and of the techniques.
#include "bench/match_verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "../tests/support/gpu.h"
#include "bench/match_patterns.h"
#include "bench/match_techniques.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t frame_count = 40;

TEST(IsReported, UpToEightKeysAndThatThereAreMore) {
  const std::vector<std::uint32_t> ten{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  struct Case {
    std::size_t there;  // the first of ten
    std::uint32_t found;
    std::vector<std::uint32_t> reported;
    bool right;
  };
  const Case cases[] = {
      {0, 0, {}, true},
      {0, 1, {0}, false},
      {2, 2, {1, 0}, true},
      {2, 1, {0}, false},
      {2, 2, {0, 0}, false},
      {2, 2, {0, 5}, false},
      {8, 8, {0, 1, 2, 3, 4, 5, 6, 7}, true},
      {8, 9, {0, 1, 2, 3, 4, 5, 6, 7}, false},
      {10, 9, {9, 8, 7, 6, 5, 4, 3, 2}, true},
      {10, 8, {9, 8, 7, 6, 5, 4, 3, 2}, false},
      {10, 9, {9, 8, 7, 6, 5, 4, 3, 3}, false},
  };
  for (const Case& one : cases) {
    std::vector<std::uint32_t> reported = one.reported;
    reported.resize(match::max_hits, 0);
    EXPECT_EQ(is_reported({ten.data(), one.there}, one.found, reported.data()), one.right)
        << one.there << " keys, reported " << one.found << ": " << testing::PrintToString(one.reported);
  }
}

// Frames made of patterns, which all have more than eight keys or are short.
class MatchVerify : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = sluice::test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    gpu_ = std::move(device::Gpu::open(0, 1).value());
    void* const memory = gpu_->allocate_host(std::size_t{frame_count} * MatchFrames::pitch).value();
    frames_ = std::make_unique<MatchFrames>(
        MatchFrames::make(*gpu_, memory, frame_count, "heavy-tail", PayloadKind::attack, patterns_).value());
    matcher_ =
        match::GpuMatcher::create(*gpu_, match::GramTable(keys_), match::GpuMatcher::default_sync_bytes, true).value();
  }
  Expected<void> compare(const match::CpuMatcher& reference, const BenchOptions& options = {}) {
    return compare_techniques(options, *gpu_, {"made up", *matcher_, reference, keys_}, patterns_, *frames_,
                              "heavy-tail");
  }

  const std::vector<match::Pattern> patterns_ = make_patterns(300), others_ = make_patterns(299);
  const match::KeySet keys_{patterns_};
  std::unique_ptr<device::Gpu> gpu_;
  std::unique_ptr<MatchFrames> frames_;
  std::unique_ptr<match::GpuMatcher> matcher_;
};

// From any byte on, and anew behind its end.
TEST_F(MatchVerify, PayloadsArePiecesOfWhatIsGiven) {
  constexpr std::uint32_t count = 200;
  void* const memory = gpu_->allocate_host(std::size_t{count} * MatchFrames::pitch).value();
  const std::string given = "a capture's bytes, which are few";
  std::string twice = given + given;
  const auto frames =
      MatchFrames::make(*gpu_, memory, count, "heavy-tail", PayloadKind::given, patterns_, given).value();
  std::set<std::size_t> begins;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string_view payload = frames.payload(i);
    ASSERT_GE(payload.size(), 6U);
    for (std::size_t at = given.size(); at < payload.size(); ++at) ASSERT_EQ(payload[at], payload[at - given.size()]);
    const std::size_t begin = twice.find(payload.substr(0, given.size()));
    ASSERT_NE(begin, std::string::npos) << payload;
    begins.insert(begin);
  }
  EXPECT_GT(begins.size(), given.size() / 2);
}

TEST_F(MatchVerify, EveryKeyIsMarkedAlsoBehindTheEighth) {
  const auto reference = matcher_of(keys_);
  ASSERT_TRUE(reference);
  const auto marked = verify_every_key(**reference, keys_, *frames_, *matcher_, gpu_->stream(0));
  ASSERT_TRUE(marked) << marked.error().message;
  EXPECT_GT(*marked, std::uint64_t{frame_count} * match::max_hits);
}

TEST_F(MatchVerify, AKeyThatIsMarkedAndNotThereIsAnError) {
  const auto reference = matcher_of(match::KeySet(others_));
  ASSERT_TRUE(reference);
  const auto marked = verify_every_key(**reference, keys_, *frames_, *matcher_, gpu_->stream(0));
  ASSERT_FALSE(marked);
  EXPECT_THAT(marked.error().message, testing::StartsWith("NOT VERIFIED: frame "));
}

TEST_F(MatchVerify, EachTechniqueAndTheFilterHaveARowInBothPlaces) {
  const auto reference = matcher_of(keys_);
  ASSERT_TRUE(reference);
  BenchOptions options;
  options.csv = testing::TempDir() + "techniques-" + std::to_string(getpid()) + ".csv";
  const auto ok = compare(**reference, options);
  ASSERT_TRUE(ok) << ok.error().message;
  std::ifstream file(options.csv);
  const std::string rows((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(options.csv);
  for (const std::string name :
       {"base", "cites_prefetch", "segments", "segments_pairs", "filter", "gathered-filter", "gathered-automaton"}) {
    EXPECT_THAT(rows, testing::HasSubstr("technique," + name + " in device memory,"));
    EXPECT_THAT(rows, testing::HasSubstr("technique," + name + " over the link,"));
  }
}

TEST_F(MatchVerify, AFilterThatFindsOtherKeysHasNoRow) {
  const auto reference = matcher_of(match::KeySet(others_));
  ASSERT_TRUE(reference);
  const auto ok = compare(**reference);
  ASSERT_FALSE(ok);
  EXPECT_THAT(ok.error().message, testing::StartsWith("NOT VERIFIED: filter: packet "));
}

}  // namespace
}  // namespace sluice::cli::bench
