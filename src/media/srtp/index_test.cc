#include "media/srtp/index.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "media/srtp/stream_pool.h"

namespace sluice::srtp {
namespace {

TEST(Index, IsGuessedFromSixteenBits) {
  struct Case {
    std::uint64_t highest;
    std::uint16_t sequence;
    std::uint64_t index;
  };
  for (const Case& c : {
           Case{0, 0, 0},
           Case{0, 1, 1},
           Case{0, 0x8000, 0x8000},
           Case{0, 0x8001, 0x8001},   // would be below 0
           Case{0, 0xffff, 0xffff},   // likewise
           Case{0xffff, 0, 0x10000},  // the counter rolls over
           Case{0xffff, 0x7ffe, 0x17ffe},
           Case{0xffff, 0x7fff, 0x7fff},  // just as far on both sides: the RFC takes the older
           Case{0x10000, 0xffff, 0xffff},
           Case{0x10000, 0x8001, 0x8001},
           Case{0x10000, 0x8000, 0x18000},
           Case{0x17fff, 0xffff, 0x1ffff},
           Case{0x18000, 0, 0x10000},
           Case{0x18001, 0, 0x20000},
           Case{max_rtp_index, 0, max_rtp_index + 1},
       }) {
    EXPECT_EQ(guess_index(c.highest, c.sequence), c.index) << std::hex << c.highest << ' ' << c.sequence;
  }
}

// RFC 3711 appendix A as it stands there, with signed numbers.
TEST(Index, IsGuessedAsInAppendixA) {
  const auto appendix_a = [](std::int64_t roc, std::int64_t s_l, std::int64_t seq) {
    std::int64_t v = roc;
    if (s_l < 32768) {
      if (seq - s_l > 32768) {
        v = roc - 1;
      }
    } else if (s_l - 32768 > seq) {
      v = roc + 1;
    }
    return v * 65536 + seq;
  };
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t highest = (random() % 5 + 1) << 16 | (random() & 0xffff);
    const auto sequence = static_cast<std::uint16_t>(random());
    ASSERT_EQ(
        static_cast<std::int64_t>(guess_index(highest, sequence)),
        appendix_a(static_cast<std::int64_t>(highest >> 16), static_cast<std::int64_t>(highest & 0xffff), sequence));
  }
}

// Against a set of all indexes that were ever marked, with steps and jumps of all sizes.
TEST(Window, KnowsWhatASetKnows) {
  for (const std::uint32_t bits : {64U, 128U, 256U, 1024U}) {
    std::vector<std::uint64_t> words(bits / 64);
    std::mt19937_64 random(bits);
    std::set<std::uint64_t> seen;
    std::uint64_t highest = 5000;
    mark_window(words, highest, highest);
    seen.insert(highest);
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t scale[] = {2, 8, bits, 3 * bits};
      const std::uint64_t span = scale[random() % 4];
      const std::uint64_t index = random() % 2 == 0 ? highest + random() % span : highest - random() % span;
      const Status status = check_window(words, highest, index);
      if (index + bits <= highest) {
        ASSERT_EQ(status, Status::too_old);
      } else {
        ASSERT_EQ(status, seen.contains(index) ? Status::replayed : Status::ok) << index << " of " << highest;
      }
      if (status == Status::ok) {
        mark_window(words, highest, index);
        seen.insert(index);
        ASSERT_EQ(highest, *seen.rbegin());
      }
    }
  }
}

TEST(StreamPool, IsBoundedAndGivesCleanStreams) {
  for (const std::uint32_t window : {0U, 32U, 96U, 100U, 32768U}) {
    EXPECT_EQ(StreamPool::make(1, window).error().message,
              "a replay window of " + std::to_string(window) + " packets: must be a power of two from 64 to 16384");
  }
  auto pool = StreamPool::make(2, 64);
  ASSERT_TRUE(pool);
  const std::uint32_t a = pool->take(7, 3);
  const std::uint32_t b = pool->take(8, 0);
  EXPECT_NE(a, b);
  EXPECT_EQ(pool->take(9, 0), no_stream_slot);
  EXPECT_EQ((*pool)[a].highest, 3U << 16);
  pool->window(a)[0] = 1;
  pool->give_back(a);
  EXPECT_EQ(pool->used(), 1U);
  const std::uint32_t c = pool->take(9, 0);
  EXPECT_EQ(c, a);
  EXPECT_EQ(pool->window(c)[0], 0U);
  EXPECT_EQ((*pool)[c].ssrc, 9U);
}

}  // namespace
}  // namespace sluice::srtp
