#include "flow/fragments.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "flow/fragment_test.h"

namespace sluice::flow {
namespace {

using packet::PacketBuilder;
using test::Bytes;
using test::fragment_of;
using test::fragments_of;
using Taken = Fragments::Taken;

std::string_view view(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes udp(bool v4, std::size_t payload = 100) {
  PacketBuilder builder;
  v4 ? builder.ipv4("10.0.0.1", "10.0.0.2") : builder.ipv6("2001:db8::1", "2001:db8::2");
  return builder.udp(4000, 53).payload(payload).build();
}
Bytes tcp() {
  return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(4000, 80).payload(100).build();
}

// Feeds frames, and sees that all memory comes back.
struct Rig {
  explicit Rig(const FragmentSettings& settings = {}) : fragments(settings), timeout(settings.timeout) {}
  ~Rig() {
    fragments.expire(now + timeout, ~std::uint32_t{0});
    EXPECT_EQ(fragments.waiting(), 0U);
    EXPECT_EQ(fragments.pool().in_use(), 0U);
  }
  Taken take(const Bytes& frame) {
    packet::HeaderFacts facts;
    packet::read_headers(view(frame), facts);
    EXPECT_TRUE(facts.fragment() && facts.whole);
    return fragments.take(view(frame), facts, now);
  }
  const FragmentCounters& counters() const { return fragments.counters(); }

  Fragments fragments;
  Milliseconds now = 1'000'000;
  Milliseconds timeout;
};

TEST(Fragments, AnyOrderWithRepetitionsMakesTheDatagramOnce) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const bool v4 = round % 2 == 0;
    const Bytes whole = udp(v4, 1 + random() % (round < 10 ? 65'000 : 3000));
    const std::size_t size = 8 * (1 + whole.size() / 8 / (2 + random() % 100));
    std::vector<Bytes> frames = fragments_of(whole, static_cast<std::uint32_t>(round), size);
    if (frames.size() < 2) continue;
    frames.insert(frames.end(), frames[random() % frames.size()]);
    std::shuffle(frames.begin(), frames.end(), random);
    Rig rig;
    unsigned whole_ones = 0;
    for (const Bytes& frame : frames) {
      const Taken taken = rig.take(frame);
      ASSERT_NE(taken, Taken::refused) << round;
      if (taken != Taken::whole) continue;
      ++whole_ones;
      Bytes expected = whole;
      if (v4) {  // it keeps its identification
        auto& ip = packet::header_at<packet::Ipv4Header>(expected.data(), 14);
        ip.id = packet::be16(static_cast<std::uint16_t>(round));
        ip.checksum = packet::ipv4_header_checksum(ip);
      }
      EXPECT_EQ(rig.fragments.datagram(), view(expected)) << round;
    }
    EXPECT_EQ(whole_ones, 1U) << round;
    EXPECT_EQ(rig.counters().fragments, frames.size());
    EXPECT_EQ(rig.counters().whole, 1U);
  }
}

struct Cut {
  std::size_t begin, end;
  bool more;
  Taken taken;
  char changed = 0;  // of its last byte
};
struct Case {
  const char* name;
  std::vector<Cut> cuts;
  std::uint64_t malformed = 0, conflicts = 0;
  int family = 0;  // 0: both
};

// Of a UDP datagram of 108 bytes.
const std::vector<Case> cases{
    {"an exact repetition passes",
     {{0, 48, true, Taken::kept}, {0, 48, true, Taken::kept}, {48, 108, false, Taken::whole}}},
    {"a repetition behind the end passes",
     {{0, 48, true, Taken::kept}, {48, 108, false, Taken::whole}, {0, 48, true, Taken::kept}}},
    {"the last one first", {{48, 108, false, Taken::kept}, {0, 48, true, Taken::whole}}},
    {"other bytes in the same place, and then all of it",
     {{0, 48, true, Taken::kept},
      {0, 48, true, Taken::refused, 1},
      {48, 108, false, Taken::refused},
      {0, 48, true, Taken::refused}},
     0,
     1},
    {"a second version of a fragment of a datagram that is whole",
     {{0, 48, true, Taken::kept}, {48, 108, false, Taken::whole}, {0, 48, true, Taken::refused, 1}},
     0,
     1},
    {"an overlap of a part", {{0, 48, true, Taken::kept}, {40, 108, false, Taken::refused}}, 0, 1},
    {"an overlap that covers", {{16, 48, true, Taken::kept}, {0, 64, true, Taken::refused}}, 0, 1},
    {"cut otherwise, same bytes",
     {{0, 48, true, Taken::kept},
      {48, 96, true, Taken::kept},
      {8, 56, true, Taken::kept},
      {96, 108, false, Taken::whole}},
     0,
     0,
     4},
    {"cut otherwise, same bytes",
     {{0, 48, true, Taken::kept}, {48, 96, true, Taken::kept}, {8, 56, true, Taken::refused}},
     0,
     1,
     6},
    {"a last one that shrinks", {{56, 64, true, Taken::kept}, {16, 48, false, Taken::refused}}, 0, 1},
    {"two ends", {{48, 108, false, Taken::kept}, {24, 40, false, Taken::refused}}, 0, 1},
    {"behind the end", {{24, 40, false, Taken::kept}, {48, 56, true, Taken::refused}}, 0, 1},
    {"the same as an end, and not as one", {{48, 56, true, Taken::kept}, {48, 56, false, Taken::refused}}, 0, 1},
    {"the end as none", {{48, 56, false, Taken::kept}, {48, 56, true, Taken::refused}}, 0, 1},
    {"more to come, and no multiple of eight",
     {{0, 47, true, Taken::refused}, {0, 48, true, Taken::kept}, {48, 108, false, Taken::whole}},
     1},
    {"without bytes", {{48, 48, true, Taken::refused}, {108, 108, false, Taken::refused}}, 2},
    {"as long as can be", {{65'496, 65'515, false, Taken::kept}}},
    {"too long for IPv4", {{65'496, 65'516, false, Taken::refused}}, 1, 0, 4},
    {"as long as can be", {{65'520, 65'535, false, Taken::kept}}, 0, 0, 6},
    {"too long for IPv6", {{65'520, 65'536, false, Taken::refused}}, 1, 0, 6},
};

TEST(Fragments, WhatDoesNotFitIsRefused) {
  for (const Case& one : cases) {
    for (const int family : {4, 6}) {
      if (one.family != 0 && one.family != family) continue;
      const Bytes whole = udp(family == 4);
      Rig rig;
      for (std::size_t i = 0; i < one.cuts.size(); ++i) {
        const Cut& cut = one.cuts[i];
        Bytes frame = fragment_of(whole, 7, cut.begin, cut.end, cut.more);
        frame.back() ^= static_cast<std::uint8_t>(cut.changed);
        EXPECT_EQ(rig.take(frame), cut.taken) << one.name << ", IPv" << family << ", fragment " << i;
      }
      EXPECT_EQ(rig.counters().malformed, one.malformed) << one.name << ", IPv" << family;
      EXPECT_EQ(rig.counters().conflicts, one.conflicts) << one.name << ", IPv" << family;
    }
  }
}

// RFC 1858 and RFC 3128: whoever sees the datagram is not deceived by a header in pieces, nor by one that is replaced.
TEST(Fragments, ATcpHeaderMayComeInPiecesAndNotTwice) {
  const Bytes whole = tcp();
  Rig rig;
  EXPECT_EQ(rig.take(fragment_of(whole, 7, 0, 8, true)), Taken::kept);
  EXPECT_EQ(rig.take(fragment_of(whole, 7, 8, 16, true)), Taken::kept);
  EXPECT_EQ(rig.take(fragment_of(whole, 7, 16, 120, false)), Taken::whole);
  EXPECT_EQ(rig.take(fragment_of(whole, 8, 0, 24, true)), Taken::kept);
  EXPECT_EQ(rig.take(fragment_of(whole, 8, 8, 120, false)), Taken::refused);
}

TEST(Fragments, TheKeyIsOfAddressesIdentificationAndOverIpv4TheProtocol) {
  for (const bool v4 : {true, false}) {
    Rig rig;
    const Bytes one = udp(v4), reply = PacketBuilder(v4 ? PacketBuilder().ipv4("10.0.0.2", "10.0.0.1")
                                                        : PacketBuilder().ipv6("2001:db8::2", "2001:db8::1"))
                                           .udp(4000, 53)
                                           .payload(100)
                                           .build();
    EXPECT_EQ(rig.take(fragment_of(one, 7, 0, 48, true)), Taken::kept);
    EXPECT_EQ(rig.take(fragment_of(one, 8, 48, 108, false)), Taken::kept);
    EXPECT_EQ(rig.take(fragment_of(reply, 7, 48, 108, false)), Taken::kept);
    Bytes other = fragment_of(one, 7, 48, 108, false);
    if (v4) {
      auto& ip = packet::header_at<packet::Ipv4Header>(other.data(), 14);
      ip.protocol = packet::protocol_icmp;
    } else {
      other[54] = packet::protocol_icmpv6;
    }
    EXPECT_EQ(rig.take(other), v4 ? Taken::kept : Taken::whole);
    EXPECT_EQ(rig.fragments.waiting(), v4 ? 4U : 2U);
    if (!v4) {
      EXPECT_EQ(rig.fragments.datagram()[20], static_cast<char>(packet::protocol_udp)) << "of the first one";
    }
  }
}

TEST(Fragments, HeadersBeforeTheFragmentHeaderStay) {
  const Bytes plain = udp(false);
  const Bytes first = PacketBuilder()
                          .vlan(5)
                          .ipv6("2001:db8::1", "2001:db8::2")
                          .extension(packet::protocol_destination_options, Bytes(6, 1))
                          .id(7)
                          .fragment(0, true)
                          .protocol(packet::protocol_udp)
                          .payload(Bytes(plain.begin() + 54, plain.begin() + 102))
                          .build();
  Rig rig;
  EXPECT_EQ(rig.take(first), Taken::kept);
  ASSERT_EQ(rig.take(fragment_of(plain, 7, 48, 108, false)), Taken::whole);
  packet::HeaderFacts facts;
  packet::read_headers(rig.fragments.datagram(), facts);
  EXPECT_FALSE(facts.fragment());
  EXPECT_TRUE(facts.whole);
  EXPECT_EQ(facts.ip_header.size(), 48U);
  EXPECT_EQ(facts.ip_length, 40U + 8 + 108);
  EXPECT_EQ(facts.destination_port, 53);
  EXPECT_EQ(facts.payload, view(plain).substr(62));
}

TEST(Fragments, OneThatDoesNotSayHowLongItIsIsRefused) {
  const auto built = [](std::optional<std::uint16_t> length) {
    PacketBuilder builder;
    builder.ipv6("2001:db8::1", "2001:db8::2").extension(packet::protocol_hop_by_hop, Bytes{1, 4, 0, 0, 0, 0});
    if (length) builder.ip_length(*length);
    return builder.id(7).fragment(0, true).protocol(packet::protocol_udp).payload(Bytes(48)).build();
  };
  Rig rig;
  EXPECT_EQ(rig.take(built(0)), Taken::refused);
  EXPECT_EQ(rig.counters().malformed, 1U);
  EXPECT_EQ(rig.take(built({})), Taken::kept);
}

TEST(Fragments, ASecondFragmentHeaderIsRefused) {
  const Bytes whole = udp(false);
  Bytes nested = fragment_of(whole, 7, 0, 48, true);
  // An atomic one in front: its own next header is a fragment header again.
  const std::uint8_t atomic[] = {packet::protocol_fragment, 0, 0, 0, 0, 0, 0, 1};
  nested.insert(nested.begin() + 54, std::begin(atomic), std::end(atomic));
  packet::header_at<packet::Ipv6Header>(nested.data(), 14).payload_length = packet::be16(48 + 16);
  Rig rig;
  EXPECT_EQ(rig.take(nested), Taken::refused);
  EXPECT_EQ(rig.counters().malformed, 1U);
}

TEST(Fragments, WhatIsMissingTooLongIsForgotten) {
  for (const bool v4 : {true, false}) {
    Rig rig;
    const std::vector<Bytes> frames = fragments_of(udp(v4), 7, 56);
    ASSERT_EQ(frames.size(), 2U);
    rig.take(frames[0]);
    rig.now += 59'999;
    EXPECT_EQ(rig.take(frames[1]), Taken::whole);
    rig.now += v4 ? 1999 : 59'999;
    EXPECT_EQ(rig.take(frames[1]), Taken::kept) << "a repetition";
    ++rig.now;
    EXPECT_EQ(rig.fragments.waiting(), 0U);
    EXPECT_EQ(rig.take(frames[1]), Taken::kept) << "of another one";
    EXPECT_EQ(rig.fragments.waiting(), 1U);
    rig.now += 60'000;
    EXPECT_EQ(rig.take(frames[0]), Taken::kept);
    EXPECT_EQ(rig.counters().incomplete, 1U);
  }
}

// Behind a completed one of IPv6, which is remembered for longer.
TEST(Fragments, AnIdentificationOfIpv4CountsAnewSoon) {
  Rig rig;
  for (const Bytes& frame : fragments_of(udp(false), 1, 56)) rig.take(frame);
  const std::vector<Bytes> frames = fragments_of(udp(true), 7, 56);
  for (const Bytes& frame : frames) rig.take(frame);
  EXPECT_EQ(rig.counters().whole, 2U);
  rig.now += 2000;
  EXPECT_EQ(rig.take(frames[0]), Taken::kept);
  EXPECT_EQ(rig.take(frames[1]), Taken::whole);
}

TEST(Fragments, ADatagramThatMayNotPassStaysRefused) {
  Rig rig;
  const std::vector<Bytes> frames = fragments_of(udp(true), 7, 56);
  rig.take(frames[0]);
  ASSERT_EQ(rig.take(frames[1]), Taken::whole);
  rig.fragments.forbid();
  EXPECT_EQ(rig.take(frames[1]), Taken::refused);
  rig.now += 59'999;
  EXPECT_EQ(rig.take(frames[0]), Taken::refused);
  ++rig.now;
  EXPECT_EQ(rig.take(frames[0]), Taken::kept);
}

TEST(Fragments, SoManyThatAreWholeAreRemembered) {
  Rig rig(FragmentSettings{.remembered = 2});
  for (std::uint32_t id = 1; id < 4; ++id) {
    const std::vector<Bytes> frames = fragments_of(udp(true), id, 56);
    rig.take(frames[0]);
    EXPECT_EQ(rig.take(frames[1]), Taken::whole);
  }
  for (std::uint32_t id = 1; id < 4; ++id) {
    Bytes other = fragments_of(udp(true), id, 56)[0];
    other.back() ^= 1;
    EXPECT_EQ(rig.take(other), id == 1 ? Taken::kept : Taken::refused) << id;
  }
}

TEST(Fragments, PiecesAreBounded) {
  Rig rig(FragmentSettings{.pieces = 4});
  const std::vector<Bytes> frames = fragments_of(udp(true), 7, 16);
  ASSERT_GT(frames.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(rig.take(frames[i]), Taken::kept);
  EXPECT_EQ(rig.take(frames[4]), Taken::refused);
  EXPECT_EQ(rig.take(frames[5]), Taken::refused);
  EXPECT_EQ(rig.counters().no_memory, 1U);
}

// Who has begun keeps its place: else a flood would have the last fragment of another one pass by itself.
TEST(Fragments, AFloodOfDatagramsTakesNoPlace) {
  Rig rig(FragmentSettings{.memory = 1 << 20});
  const std::vector<Bytes> mine = fragments_of(udp(true), 7, 56);
  rig.take(mine[0]);
  unsigned kept = 0;
  for (std::uint32_t id = 0; id < 5000; ++id) kept += rig.take(fragment_of(udp(false), id, 0, 8, true)) == Taken::kept;
  EXPECT_EQ(kept, 2047U) << "a record for each 512 bytes";
  EXPECT_EQ(rig.counters().no_memory, 5000U - kept);
  EXPECT_EQ(rig.counters().refused, 5000U - kept);
  EXPECT_EQ(rig.take(mine[1]), Taken::whole);
  EXPECT_EQ(rig.take(fragment_of(udp(true), 8, 0, 8, true)), Taken::kept) << "in the place of the one that is whole";
  EXPECT_EQ(rig.take(mine[1]), Taken::refused) << "which is forgotten";
}

TEST(Fragments, WhoWaitsLongestGivesItsBytesAndStaysRefused) {
  Rig rig(FragmentSettings{.memory = 1 << 20});
  const Bytes whole = udp(true, 2000);
  const std::vector<Bytes> done = fragments_of(whole, 60'000, 1400), mine = fragments_of(whole, 7, 1400);
  for (const Bytes& frame : done) rig.take(frame);
  rig.take(mine[0]);
  std::uint32_t id = 100;
  while (rig.counters().no_memory == 0) {
    EXPECT_EQ(rig.take(fragment_of(whole, id++, 0, 1400, true)), Taken::kept);
    EXPECT_LE(rig.fragments.pool().in_use(), 1U << 20);
  }
  EXPECT_EQ(id, 100U + 512) << "blocks of 2 KiB, and one more: what is done goes first, then the oldest";
  EXPECT_EQ(rig.take(mine[1]), Taken::refused);
  EXPECT_EQ(rig.take(fragment_of(whole, 101, 1400, 2008, false)), Taken::whole);
}

// However many datagrams run out of time together: nobody waits until all are forgotten, and none is found meanwhile.
TEST(Fragments, AFloodRunsOutAFewAtATime) {
  Rig rig(FragmentSettings{.memory = 1 << 20});
  constexpr std::uint32_t records = 2048, given_up = 500;
  for (std::uint32_t id = 0; id < records; ++id) {
    ASSERT_EQ(rig.take(fragment_of(udp(true), id, 0, 48, true)), Taken::kept);
    if (id >= given_up) continue;
    Bytes other = fragment_of(udp(true), id, 0, 48, true);
    other.back() ^= 1;
    ASSERT_EQ(rig.take(other), Taken::refused);
  }
  ASSERT_EQ(rig.fragments.waiting(), records - given_up);
  rig.now += 60'000;
  rig.fragments.expire(rig.now, 64);
  EXPECT_EQ(rig.fragments.waiting(), records - given_up - 64);
  EXPECT_EQ(rig.counters().incomplete, 64U);
  // Of those that are not forgotten yet: new datagrams, of which nothing is there.
  for (const std::uint32_t id : {records - 1, given_up - 1}) {
    const std::uint32_t before = rig.fragments.waiting();
    EXPECT_EQ(rig.take(fragment_of(udp(true), id, 48, 108, false)), Taken::kept) << id;
    EXPECT_GE(rig.fragments.waiting() + 4, before);
    EXPECT_EQ(rig.take(fragment_of(udp(true), id, 0, 48, true)), Taken::whole) << id;
  }
  // And their places are there for as many as come.
  for (std::uint32_t id = 0; id < records; ++id) {
    ASSERT_EQ(rig.take(fragment_of(udp(false), id, 0, 48, true)), Taken::kept) << id;
  }
  EXPECT_EQ(rig.counters().incomplete, records - given_up);
  EXPECT_EQ(rig.counters().no_memory, 0U);
  EXPECT_EQ(rig.fragments.waiting(), records);
}

TEST(Fragments, BytesOfWhatHasRunOutAreTakenFirst) {
  Rig rig(FragmentSettings{.memory = 1 << 20});
  const Bytes whole = udp(true, 2000);
  for (std::uint32_t id = 0; id < 512; ++id) {
    ASSERT_EQ(rig.take(fragment_of(whole, id, 0, 1400, true)), Taken::kept);
  }
  rig.now += 60'000;
  const Bytes large = udp(false, 60'000);
  ASSERT_EQ(rig.take(fragment_of(large, 7, 0, 40'000, true)), Taken::kept);
  EXPECT_EQ(rig.counters().no_memory, 0U) << "nothing was given up for it";
  EXPECT_EQ(rig.take(fragment_of(large, 7, 40'000, 60'008, false)), Taken::whole);
}

TEST(Fragments, MemoryIsWhatIsSaid) {
  const Fragments fragments(FragmentSettings{.memory = 32 << 20});
  EXPECT_GE(fragments.memory_bytes(), Fragments::memory_bytes(32 << 20));
  EXPECT_LE(fragments.memory_bytes(), Fragments::memory_bytes(32 << 20) * 102 / 100);
}

// The same, slowly: all fragments of a key are kept, and each new one is held against them byte by byte.
class Reference {
 public:
  struct Seen {
    std::size_t begin;
    std::string bytes;
    bool last;
    std::size_t end() const { return begin + bytes.size(); }
    bool operator==(const Seen&) const = default;
  };

  Taken take(unsigned key, bool v4, const Seen& seen, Milliseconds now) {
    if (seen.bytes.empty() || (!seen.last && seen.bytes.size() % 8 != 0)) return Taken::refused;
    const auto found = known_.find({key, v4});
    if (found != known_.end() && now - found->second.since >= (found->second.state == whole && v4 ? 2000 : 60'000)) {
      known_.erase(found);
    }
    One& one = known_.try_emplace({key, v4}, One{collecting, now, {}}).first->second;
    if (one.state == refused) return Taken::refused;
    if (is_repeated(one, v4, seen)) return Taken::kept;
    if (!is_new(one, seen)) {
      if (one.state == collecting || !v4) one = {refused, now, {}};
      return Taken::refused;
    }
    one.seen.push_back(seen);
    if (datagram(one).empty()) return Taken::kept;
    one.state = whole;
    one.since = now;
    last_ = datagram(one);
    return Taken::whole;
  }
  const std::string& last() const { return last_; }

 private:
  enum State { collecting, whole, refused };
  struct One {
    State state;
    Milliseconds since;
    std::vector<Seen> seen;
  };
  static bool is_repeated(const One& one, bool v4, const Seen& seen) {
    if (std::find(one.seen.begin(), one.seen.end(), seen) != one.seen.end()) return true;
    if (!v4) return false;
    for (std::size_t at = seen.begin; at < seen.end(); ++at) {
      const bool there = std::any_of(one.seen.begin(), one.seen.end(), [&](const Seen& other) {
        return other.begin <= at && at < other.end() && other.bytes[at - other.begin] == seen.bytes[at - seen.begin];
      });
      if (!there) return false;
    }
    const bool is_end = std::any_of(one.seen.begin(), one.seen.end(),
                                    [&](const Seen& other) { return other.last && other.end() == seen.end(); });
    return is_end == seen.last;
  }
  static bool is_new(const One& one, const Seen& seen) {
    return std::none_of(one.seen.begin(), one.seen.end(), [&](const Seen& other) {
      const bool overlap = other.begin < seen.end() && seen.begin < other.end();
      const bool behind = (other.last && seen.end() > other.end()) || (seen.last && other.end() > seen.end());
      return overlap || behind || (other.last && seen.last);
    });
  }
  static std::string datagram(const One& one) {
    std::map<std::size_t, std::string> parts;
    bool ends = false;
    for (const Seen& seen : one.seen) {
      parts[seen.begin] = seen.bytes;
      ends |= seen.last;
    }
    std::string all;
    for (const auto& [begin, bytes] : parts) {
      if (begin != all.size()) return "";
      all += bytes;
    }
    return ends ? all : "";
  }
  std::map<std::pair<unsigned, bool>, One> known_;
  std::string last_;
};

TEST(Fragments, TheReferenceTakesTheSame) {
  std::mt19937 random(7);
  const auto below = [&](unsigned number) { return static_cast<unsigned>(random() % number); };
  Rig rig;
  Reference reference;
  std::array<unsigned, 3> outcomes{};
  for (int i = 0; i < 300'000; ++i) {
    const bool v4 = below(2) == 0;
    const unsigned key = below(3);
    const std::size_t length = 8 * (2 + key);
    Reference::Seen seen{8UL * below(static_cast<unsigned>(length / 8)), "", false};
    seen.last = below(20) == 0 || below(3) == 0;
    const std::size_t end = seen.last && below(4) != 0 ? length : std::min(length, seen.begin + 8 * (1 + below(3)));
    for (std::size_t at = seen.begin; at < end; ++at) seen.bytes += static_cast<char>('a' + at % 26);
    if (seen.last && end != length && below(4) != 0) seen.last = false;
    if (!seen.last && end == length && below(20) != 0) seen.last = true;
    if (below(40) == 0) seen.bytes[below(static_cast<unsigned>(seen.bytes.size()))] = '!';
    if (below(100) == 0) seen.bytes.pop_back();
    rig.now += below(10) == 0 ? below(20'000) : below(300);
    PacketBuilder builder;
    v4 ? builder.ipv4("10.0.0.1", "10.0.0.2") : builder.ipv6("2001:db8::1", "2001:db8::2");
    // A protocol without ports, so that any bytes will do.
    const Bytes frame = builder.id(key)
                            .fragment(static_cast<std::uint16_t>(seen.begin), !seen.last)
                            .protocol(253)
                            .payload(Bytes(seen.bytes.begin(), seen.bytes.end()))
                            .build();
    packet::HeaderFacts facts;
    packet::read_headers(view(frame), facts);
    if (!facts.fragment()) continue;  // whole in one: atomic
    const Taken taken = rig.take(frame);
    ASSERT_EQ(taken, reference.take(key, v4, seen, rig.now)) << i;
    ++outcomes[static_cast<std::size_t>(taken)];
    if (taken != Taken::whole) continue;
    packet::HeaderFacts of_whole;
    packet::read_headers(rig.fragments.datagram(), of_whole);
    ASSERT_EQ(of_whole.payload, reference.last()) << i;
  }
  for (const unsigned count : outcomes) EXPECT_GT(count, 3000U);
}

}  // namespace
}  // namespace sluice::flow
