// Runs of frames: what travels as one 2-D copy.
#include "device/frame_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace sluice::device {
namespace {

struct Expected {
  std::uint64_t address;
  std::uint32_t first, count, stride, width;
  bool descending;
};

struct Case {
  const char* name;
  std::vector<std::uint64_t> frame;
  std::vector<std::uint16_t> length;
  std::uint64_t piece_bytes;
  std::vector<Expected> runs;
};

constexpr std::uint64_t whole = 1 << 30;

class FindRuns : public testing::TestWithParam<Case> {};

TEST_P(FindRuns, Finds) {
  const Case& c = GetParam();
  std::array<FrameRun, 8> runs;
  const unsigned count = find_runs(c.frame.data(), c.length.data(), static_cast<std::uint32_t>(c.frame.size()),
                                   runs.data(), runs.size(), c.piece_bytes);
  ASSERT_EQ(count, c.runs.size());
  for (unsigned r = 0; r < count; ++r) {
    SCOPED_TRACE(r);
    EXPECT_EQ(runs[r].address, c.runs[r].address);
    EXPECT_EQ(runs[r].first, c.runs[r].first);
    EXPECT_EQ(runs[r].count, c.runs[r].count);
    EXPECT_EQ(runs[r].stride, c.runs[r].stride);
    EXPECT_EQ(runs[r].width, c.runs[r].width);
    EXPECT_EQ(runs[r].descending, c.runs[r].descending);
  }
}

void expect_alike(const FrameRun& one, const FrameRun& other) {
  EXPECT_EQ(one.address, other.address);
  EXPECT_EQ(one.first, other.first);
  EXPECT_EQ(one.count, other.count);
  EXPECT_EQ(one.stride, other.stride);
  EXPECT_EQ(one.descending, other.descending);
  EXPECT_GE(one.width, other.width);
}

// Met one by one, the same runs are found; pieces are as wide as their run.
TEST_P(FindRuns, FindsThemOneByOne) {
  const Case& c = GetParam();
  RunList list;
  list.clear();
  for (std::size_t i = 0; i < c.frame.size(); ++i) list.add(c.frame[i], c.length[i]);
  std::array<FrameRun, 8> runs, wanted;
  const auto frames = static_cast<std::uint32_t>(c.frame.size());
  const unsigned count =
      find_runs(c.frame.data(), c.length.data(), frames, wanted.data(), wanted.size(), c.piece_bytes);
  EXPECT_EQ(list.frames, frames);
  ASSERT_EQ(list.split(runs.data(), runs.size(), c.piece_bytes), count);
  for (unsigned r = 0; r < count; ++r) {
    SCOPED_TRACE(r);
    expect_alike(runs[r], wanted[r]);
  }
}

TEST(RunList, IsAsWhatFindsRunsAtRandom) {
  std::mt19937 random(11);
  for (unsigned trial = 0; trial < 500; ++trial) {
    std::vector<std::uint64_t> frame;
    std::vector<std::uint16_t> length;
    RunList list;
    list.clear();
    std::uint64_t bytes = 0, at = 1 << 20;
    for (unsigned run = random() % 6 + 1; run != 0; --run) {
      const std::int64_t step = (static_cast<int>(random() % 5) - 2) * 1024 + (random() % 8 == 0 ? 8 : 0);
      for (unsigned i = random() % 9; i != 0; --i) {
        frame.push_back(at += static_cast<std::uint64_t>(step));
        length.push_back(static_cast<std::uint16_t>(random() % 1200));
        list.add(frame.back(), length.back());
        bytes += length.back();
      }
    }
    EXPECT_EQ(list.bytes, bytes);
    std::array<FrameRun, 64> runs, wanted;
    const unsigned count = find_runs(frame.data(), length.data(), static_cast<std::uint32_t>(frame.size()),
                                     wanted.data(), wanted.size(), whole);
    ASSERT_EQ(list.split(runs.data(), runs.size(), whole), count <= RunList::max_runs ? count : 0);
    EXPECT_EQ(list.complete, count <= RunList::max_runs);
    for (unsigned r = 0; r < count && list.complete; ++r) {
      expect_alike(runs[r], wanted[r]);
      EXPECT_EQ(runs[r].width, wanted[r].width);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    cases, FindRuns,
    testing::Values(
        Case{"nothing", {}, {}, whole, {}}, Case{"one", {0x1000}, {60}, whole, {{0x1000, 0, 1, 0, 60, false}}},
        Case{"ascending", {0x1000, 0x1800, 0x2000}, {60, 1500, 64}, whole, {{0x1000, 0, 3, 0x800, 1500, false}}},
        Case{"descending", {0x2000, 0x1800, 0x1000}, {60, 70, 64}, whole, {{0x1000, 0, 3, 0x800, 70, true}}},
        Case{"a_gap_ends_a_run",
             {0x1000, 0x1800, 0x2800, 0x3000},
             {60, 60, 60, 70},
             whole,
             {{0x1000, 0, 2, 0x800, 60, false}, {0x2800, 2, 2, 0x800, 70, false}}},
        Case{"a_turn_ends_a_run",
             {0x1000, 0x1800, 0x1000},
             {60, 60, 60},
             whole,
             {{0x1000, 0, 2, 0x800, 60, false}, {0x1000, 2, 1, 0, 60, false}}},
        Case{"rows_do_not_overlap",
             {0x1000, 0x1040, 0x1080},
             {60, 64, 65},
             whole,
             {{0x1000, 0, 2, 0x40, 64, false}, {0x1080, 2, 1, 0, 65, false}}},
        Case{"lines_keep_their_alignment",
             {0x1000, 0x1802},
             {60, 60},
             whole,
             {{0x1000, 0, 1, 0, 60, false}, {0x1802, 1, 1, 0, 60, false}}},
        Case{"far_apart",
             {0x1000, 0x40001000},
             {60, 60},
             whole,
             {{0x1000, 0, 1, 0, 60, false}, {0x40001000, 1, 1, 0, 60, false}}},
        Case{"pieces_are_even",
             {0x1000, 0x1800, 0x2000, 0x2800},
             {100, 100, 90, 80},
             200,
             {{0x1000, 0, 2, 0x800, 100, false}, {0x2000, 2, 2, 0x800, 90, false}}},
        Case{"pieces_of_a_descending_run",
             {0x2800, 0x2000, 0x1800, 0x1000},
             {100, 100, 90, 80},
             200,
             {{0x2000, 0, 2, 0x800, 100, true}, {0x1000, 2, 2, 0x800, 90, true}}}),
    [](const auto& info) { return info.param.name; });

TEST(FindRunsLimits, TooManyRunsAreNone) {
  std::array<FrameRun, 2> runs;
  const std::array<std::uint64_t, 3> frame{0x1000, 0x9000, 0x2000};
  const std::array<std::uint16_t, 3> length{60, 60, 60};
  EXPECT_EQ(find_runs(frame.data(), length.data(), 3, runs.data(), 2, whole), 2u) << "two rows 0x8000 apart, then one";
  const std::array<std::uint64_t, 3> scattered{0x1000, 0x9004, 0x2002};
  EXPECT_EQ(find_runs(scattered.data(), length.data(), 3, runs.data(), 2, whole), 0u);
}

// Two halves of a run that was found in one piece are that run again; nothing else is joined.
TEST(JoinRuns, JoinsWhatStandsBehindOneAnother) {
  for (const bool descending : {false, true}) {
    std::vector<std::uint64_t> frame;
    for (std::uint64_t i = 0; i < 10; ++i) frame.push_back(0x10000 + (descending ? 9 - i : i) * 2048);
    const std::vector<std::uint16_t> length{100, 200, 300, 400, 500, 600, 700, 800, 900, 1000};
    const auto run_of = [&](std::uint32_t first, std::uint32_t count) {
      std::array<FrameRun, 2> runs;
      EXPECT_EQ(find_runs(frame.data() + first, length.data() + first, count, runs.data(), runs.size(), whole), 1U);
      runs[0].first += first;
      return runs[0];
    };
    FrameRun run = run_of(0, 4);
    ASSERT_TRUE(join_runs(run, run_of(4, 6)));
    const FrameRun all = run_of(0, 10);
    expect_alike(run, all);
    EXPECT_EQ(run.width, all.width);
    const FrameRun before = run_of(0, 4);
    const auto refused = [&](FrameRun next) {
      FrameRun one = before;
      EXPECT_FALSE(join_runs(one, next));
      expect_alike(one, before);
      EXPECT_EQ(one.width, before.width);
    };
    FrameRun next = run_of(4, 6);
    refused(run_of(5, 5));  // one is missing
    next.first = 5;
    refused(next);  // no row of the staging memory may be empty
    next = run_of(4, 6);
    next.address += 16;
    refused(next);
    next = run_of(4, 6);
    next.stride = 4096;
    refused(next);
    next = run_of(4, 6);
    next.width = 2049;  // into the frame behind it
    refused(next);
    next = run_of(4, 6);
    next.descending = !descending;
    refused(next);
    refused(run_of(4, 1));  // of one frame nobody knows what lies behind
  }
}

TEST(WorthCopying, IsWhatMovesMuchAtATimeAndLittleBesideFrames) {
  const auto runs_of = [](std::uint32_t rows, std::uint32_t width) { return FrameRun{0, 0, rows, 2048, width, false}; };
  const FrameRun large = runs_of(1000, 1408), small = runs_of(100, 1408);
  EXPECT_TRUE(worth_copying(&large, 1, 1000 * 1408)) << "1.4 MB of frames of one size";
  EXPECT_FALSE(worth_copying(&large, 1, 1000 * 600)) << "rows as wide as the longest frame, most of them shorter";
  EXPECT_FALSE(worth_copying(&small, 1, 100 * 1408)) << "a copy costs as much as 100 KB";
  const std::array<FrameRun, 2> both{large, small};
  EXPECT_TRUE(worth_copying(both.data(), 2, 1100 * 1408)) << "on average";
  EXPECT_FALSE(worth_copying(nullptr, 0, 0));
}

TEST(Staging, KeepsTheAlignmentOfTheHostAndTheOrderOfMemory) {
  alignas(128) static std::array<std::byte, 4 * 256> staging;
  const auto base = reinterpret_cast<std::uint64_t>(staging.data());
  const StagedFrames up = staged_frames({0x10042, 1, 3, 0x800, 100, false}, staging.data(), 256);
  EXPECT_EQ(up.address, base + 256 + 0x42);
  EXPECT_EQ(up.step, 256);
  const StagedFrames down = staged_frames({0x10042, 1, 3, 0x800, 100, true}, staging.data(), 256);
  EXPECT_EQ(down.address, base + 3 * 256 + 0x42) << "the first frame of a descending run is its highest row";
  EXPECT_EQ(down.step, -256);
  EXPECT_GE(staging_pitch(1), 1u + 127);
  EXPECT_EQ(staging_pitch(1514) % row_alignment, 0u);
}

}  // namespace
}  // namespace sluice::device
