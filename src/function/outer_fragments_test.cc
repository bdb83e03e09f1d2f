#include "function/outer_fragments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "flow/fragment_test.h"
#include "function/trial_batch_test.h"
#include "packet/builder.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using Taken = OuterFragments::Taken;

constexpr std::uint32_t now = 100;

std::string_view view(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<Bytes> pieces_of(int family, std::uint32_t id = 7) {
  packet::PacketBuilder builder;
  family == 4 ? builder.ipv4("192.0.2.2", "192.0.2.1") : builder.ipv6("2001:db8::2", "2001:db8::1");
  return flow::test::fragments_of(builder.udp(4500, 4500).payload(2000).build(), id, 800);
}

TEST(OuterFragments, ArePutTogetherInAnyOrderWhereEachIsOwn) {
  for (const int family : {4, 6}) {
    std::vector<Bytes> pieces = pieces_of(family);
    ASSERT_EQ(pieces.size(), 3U);
    std::ranges::reverse(pieces);
    OuterFragments fragments;
    EXPECT_EQ(fragments.take(view(pieces[0]), true, now), Taken::kept);
    EXPECT_EQ(fragments.take(view(pieces[1]), true, now), Taken::kept);
    EXPECT_EQ(fragments.take(view(pieces[2]), true, now), Taken::whole);
    EXPECT_EQ(fragments.datagram().size(), 14U + (family == 4 ? 20 : 40) + 8 + 2000);
  }
}

TEST(OuterFragments, WhereTheFirstOneSaysItComesFirst) {
  for (const int family : {4, 6}) {
    const std::vector<Bytes> pieces = pieces_of(family), others = pieces_of(family, 8);
    OuterFragments fragments;
    EXPECT_EQ(fragments.take(view(pieces[1]), false, now), Taken::no);
    EXPECT_EQ(fragments.take(view(pieces[0]), true, now), Taken::kept);
    EXPECT_EQ(fragments.take(view(others[1]), false, now), Taken::no) << "of another packet";
    EXPECT_EQ(fragments.take(view(pieces[1]), false, now), Taken::kept);
    EXPECT_EQ(fragments.take(view(pieces[2]), false, now), Taken::whole);
  }
}

TEST(OuterFragments, ThatOverlapAreRefused) {
  std::vector<Bytes> pieces = pieces_of(4);
  OuterFragments fragments;
  EXPECT_EQ(fragments.take(view(pieces[0]), true, now), Taken::kept);
  Bytes other = pieces[0];
  other.back() ^= 1;
  EXPECT_EQ(fragments.take(view(other), true, now), Taken::refused);
  EXPECT_EQ(fragments.take(view(pieces[1]), true, now), Taken::refused) << "the packet is given up";
  EXPECT_EQ(fragments.counters().conflicts, 1U);
}

TEST(OuterFragments, WaitForHalfAMinute) {
  const std::vector<Bytes> pieces = pieces_of(6);
  constexpr auto seconds = static_cast<std::uint32_t>(OuterFragments::timeout / 1000);
  OuterFragments fragments;
  EXPECT_EQ(fragments.take(view(pieces[0]), true, now), Taken::kept);
  fragments.expire(now + seconds - 1);
  EXPECT_EQ(fragments.counters().incomplete, 0U);
  fragments.expire(now + seconds);
  EXPECT_EQ(fragments.counters().incomplete, 1U);
  EXPECT_EQ(fragments.take(view(pieces[1]), true, now + seconds), Taken::kept) << "begins anew";
}

TEST(OuterFragments, AreRefusedWhereMemoryIsUsedUp) {
  OuterFragments fragments;
  std::uint32_t kept = 0;
  for (std::uint32_t id = 0; id < 4000; ++id)
    kept += fragments.take(view(pieces_of(4, id)[0]), true, now) == Taken::kept;
  EXPECT_LT(std::uint64_t{kept} * 800, 16 * OuterFragments::piece_bytes);
  EXPECT_GT(fragments.counters().no_memory, 0U);
}

TEST(OuterFragments, WholePacketsAreNone) {
  OuterFragments fragments;
  const Bytes whole = packet::PacketBuilder().ipv4("192.0.2.2", "192.0.2.1").udp(4500, 4500).payload(100).build();
  EXPECT_EQ(fragments.take(view(whole), false, now), Taken::no);
  EXPECT_EQ(fragments.take(view(whole), true, now), Taken::refused);
}

// Rows of a batch, as elements have them.
TEST(OuterFragments, OfRowsBecomeThePacketWhereItIsWhole) {
  for (const int family : {4, 6}) {
    const std::vector<Bytes> pieces = pieces_of(family);
    TrialBatch frames(nullptr, 4, 4, 2304);
    frames.clear();
    for (const Bytes& piece : pieces) frames.add(piece, 128, 0);
    engine::Batch& batch = frames.batch();
    OuterFragments fragments;
    EXPECT_EQ(fragments.put_together(batch, 0, true, now), Taken::kept);
    EXPECT_EQ(fragments.put_together(batch, 1, true, now), Taken::kept);
    EXPECT_EQ(fragments.put_together(batch, 2, true, now), Taken::whole);
    EXPECT_EQ(batch.row[0].fate, engine::Fate::absorbed);
    EXPECT_TRUE(batch.goes_on(2));
    EXPECT_EQ(batch.length[2], 14U + (family == 4 ? 20 : 40) + 8 + 2000);
    EXPECT_EQ(frames.mbuf(2).data_len, batch.length[2]);
    EXPECT_EQ(view(frames.frame(2)), fragments.datagram());
  }
}

TEST(OuterFragments, OfAPacketThatIsTooLongForTheBufferLeaveTheFrameAsItIs) {
  const std::vector<Bytes> pieces = pieces_of(4);
  TrialBatch frames(nullptr, 4, 4, 2048);
  frames.clear();
  for (const Bytes& piece : pieces) frames.add(piece, 128, 0);
  OuterFragments fragments;
  EXPECT_EQ(fragments.put_together(frames.batch(), 0, true, now), Taken::kept);
  EXPECT_EQ(fragments.put_together(frames.batch(), 1, true, now), Taken::kept);
  EXPECT_EQ(fragments.put_together(frames.batch(), 2, true, now), Taken::too_long);
  EXPECT_EQ(frames.frame(2), pieces[2]);
}

TEST(OuterFragments, WithAWrongHeaderChecksumAreNotTaken) {
  Bytes piece = pieces_of(4)[0];
  piece[14 + 10] ^= 1;
  TrialBatch frames(nullptr, 4, 4, 2304);
  frames.clear();
  frames.add(piece, 128, 0);
  OuterFragments fragments;
  EXPECT_EQ(fragments.put_together(frames.batch(), 0, true, now), Taken::no);
  EXPECT_TRUE(frames.batch().goes_on(0));
}

}  // namespace
}  // namespace sluice::function
