#include "port/replay_conversations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "packet/checksum.h"
#include "packet/header_facts.h"
#include "packet/headers.h"
#include "port/replay_codings.h"

namespace sluice::port {
namespace {

using Frames = std::vector<std::vector<std::uint8_t>>;

Frames make(bool http, const std::string& mix_name, unsigned count, int family = 4, std::uint64_t seed = 1,
            bool codings = false) {
  auto mix = packet::FrameMix::make(mix_name, seed);
  EXPECT_TRUE(mix);
  std::mt19937_64 random(seed);
  ConversationSource source;
  source.http = http;
  source.codings = codings;
  source.family = family;
  source.frames = count;
  source.seed = seed;
  source.own_mac = "02:00:00:00:00:09";
  source.mix = &*mix;
  source.address = [&] {
    std::uint8_t bytes[16] = {0x20};
    const std::uint64_t words[] = {random(), random()};
    std::memcpy(bytes + 1, words, 15);
    return packet::IpAddress::from_bytes(family, bytes);
  };
  source.fill = [&](std::span<std::uint8_t> bytes) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  };
  return make_conversations(source);
}

packet::HeaderFacts read(const std::vector<std::uint8_t>& frame) {
  packet::HeaderFacts facts;
  packet::read_headers({reinterpret_cast<const char*>(frame.data()), frame.size()}, facts);
  return facts;
}

// A TCP that believes nothing: what each side has sent, and what the other has said that it has of it.
struct Side {
  std::optional<std::uint32_t> next, acknowledged;
  bool syn = false, fin = false;
  std::string bytes;
  unsigned waiting = 0;
};
struct Both {
  Side side[2];  // of the lower port, of the higher one
};

struct Seen {
  std::map<std::uint16_t, Both> conversations;  // by the client's port
  std::size_t most_open = 0;
  double mean = 0;
};

void take(const packet::HeaderFacts& facts, Side& from, Side& to) {
  ASSERT_TRUE(facts.has_tcp);
  const bool syn = (facts.tcp_flags & packet::tcp_syn) != 0, fin = (facts.tcp_flags & packet::tcp_fin) != 0;
  ASSERT_FALSE(from.fin && (syn || fin || !facts.payload.empty()));
  ASSERT_EQ(syn, !from.next);
  if (from.next) {
    ASSERT_EQ(facts.tcp_sequence, *from.next);
  }
  from.next = facts.tcp_sequence + static_cast<std::uint32_t>(facts.payload.size()) + (syn || fin ? 1 : 0);
  from.syn |= syn;
  from.fin |= fin;
  from.bytes += facts.payload;
  from.waiting += facts.payload.empty() ? 0 : 1;
  ASSERT_LE(from.waiting, 2U);
  const bool ack = (facts.tcp_flags & packet::tcp_ack) != 0;
  ASSERT_EQ(ack, to.next.has_value());
  if (!ack) return;
  ASSERT_EQ(facts.tcp_acknowledgement, *to.next);
  to.acknowledged = facts.tcp_acknowledgement;
  to.waiting = 0;
}

Seen follow(const Frames& frames, std::uint16_t server_port) {
  Seen seen;
  std::size_t open = 0;
  for (const auto& frame : frames) {
    const packet::HeaderFacts facts = read(frame);
    const bool up = facts.destination_port == server_port;
    EXPECT_EQ(up ? facts.destination_port : facts.source_port, server_port);
    Both& both = seen.conversations[up ? facts.source_port : facts.destination_port];
    open += (facts.tcp_flags & (packet::tcp_syn | packet::tcp_ack)) == packet::tcp_syn ? 1 : 0;
    seen.most_open = std::max(seen.most_open, open);
    take(facts, both.side[up ? 0 : 1], both.side[up ? 1 : 0]);
    if (testing::Test::HasFatalFailure()) return seen;
    open -= both.side[0].fin && both.side[1].fin && both.side[1].acknowledged == both.side[1].next ? 1 : 0;
    seen.mean += static_cast<double>(frame.size()) / static_cast<double>(frames.size());
  }
  EXPECT_EQ(open, 0U);
  for (const auto& [port, both] : seen.conversations) {
    for (const Side& side : both.side) EXPECT_TRUE(side.syn && side.fin && side.acknowledged == side.next) << port;
  }
  return seen;
}

TEST(ReplayConversations, EachIsWholeAndManyAreUnderWayAtOnce) {
  for (const bool http : {false, true}) {
    for (const char* const mix : {"heavy-tail", "1500", "64", "imix"}) {
      for (const int family : {4, 6}) {
        for (const unsigned count : {64U, 100U, 4096U}) {
          SCOPED_TRACE(testing::Message() << (http ? "http " : "streams ") << mix << " " << family << " " << count);
          const Frames frames = make(http, mix, count, family);
          ASSERT_EQ(frames.size(), count);
          const Seen seen = follow(frames, http ? 80 : 4000);
          ASSERT_FALSE(HasFatalFailure());
          EXPECT_EQ(seen.most_open, count / 64);
          EXPECT_GE(seen.conversations.size(), count / 64);
          EXPECT_LE(seen.conversations.size(), count / 12);
        }
      }
    }
  }
}

TEST(ReplayConversations, FramesAreWellFormed) {
  for (const bool http : {false, true}) {
    for (const auto& frame : make(http, "heavy-tail", 1024)) {
      EXPECT_GE(frame.size(), 64U);
      EXPECT_EQ(frame[0], 0x02);
      EXPECT_EQ(frame[5], 0x09) << "to the port";
      const std::uint8_t* const ip = frame.data() + 14;
      const std::uint32_t total = ip[2] * 256U + ip[3];
      ASSERT_LE(14 + total, frame.size());
      EXPECT_EQ(ip[8], 255);
      EXPECT_EQ(packet::internet_checksum(ip, 20), 0) << "of the header";
      std::vector<std::uint8_t> pseudo(ip + 12, ip + 20);
      pseudo.insert(pseudo.end(),
                    {0, 6, static_cast<std::uint8_t>((total - 20) >> 8), static_cast<std::uint8_t>(total - 20)});
      pseudo.insert(pseudo.end(), ip + 20, ip + total);
      EXPECT_EQ(packet::internet_checksum(pseudo.data(), static_cast<std::uint32_t>(pseudo.size())), 0) << "of TCP";
    }
  }
}

TEST(ReplayConversations, SizesAreThoseOfTheMixButForWhatAConversationNeeds) {
  const struct {
    bool http;
    const char* mix;
    double least, most;  // of the mean
  } cases[] = {{false, "heavy-tail", 540, 590},
               {true, "heavy-tail", 465, 515},
               {false, "1500", 840, 890},
               {true, "1500", 695, 745}};
  for (const auto& one : cases) {
    const Frames frames = make(one.http, one.mix, 16384);
    const double mean = follow(frames, one.http ? 80 : 4000).mean;
    EXPECT_GE(mean, one.least) << one.http << one.mix;
    EXPECT_LE(mean, one.most) << one.http << one.mix;
  }
  for (const auto& frame : make(false, "1500", 4096)) {
    const packet::HeaderFacts facts = read(frame);
    EXPECT_EQ(frame.size(), facts.payload.empty() ? 64U : 1500U);
  }
}

// The lengths that responses of HTTP declare are those that they have, and requests and responses are as many.
void expect_whole(const Frames& frames, bool codings) {
  unsigned requests = 0, planted = 0;
  for (const auto& [port, both] : follow(frames, 80).conversations) {
    std::string_view up = both.side[0].bytes, down = both.side[1].bytes;
    while (!up.empty()) {
      ASSERT_TRUE(up.starts_with("GET /")) << up;
      planted += up.starts_with("GET " + planted_path.whole() + " HTTP/1.1\r\n") ? 1 : 0;
      up.remove_prefix(up.find("\r\n\r\n") + 4);
      ASSERT_TRUE(down.starts_with("HTTP/1.1 200 OK\r\n")) << down;
      constexpr std::string_view length = "\r\nContent-Length: ";
      const std::size_t body = std::stoul(std::string(down.substr(down.find(length) + length.size(), 8)));
      down.remove_prefix(down.find("\r\n\r\n") + 4);
      ASSERT_LE(body, down.size());
      EXPECT_EQ(std::ranges::count(coded_bodies(), down.substr(0, body)), codings ? 1 : 0);
      down.remove_prefix(body);
      ++requests;
    }
    EXPECT_TRUE(down.empty());
  }
  EXPECT_GT(requests, 1000U);
  EXPECT_GT(planted, 5U);
}

TEST(ReplayConversations, HttpIsWhole) {
  for (const bool codings : {false, true}) {
    const Frames frames = make(true, "heavy-tail", 16384, 4, 1, codings);
    expect_whole(frames, codings);
    for (const auto& frame : frames) EXPECT_LE(frame.size(), 1514U);
  }
}

// A stream for each 256 frames: a handshake, then data from its second byte on, and at the end of all a reset where the
// first one would be.
TEST(ReplayConversations, ResetsComeTogetherBehindAllThatWaitsForThem) {
  for (const unsigned count : {64U, 1000U, 4096U}) {
    SCOPED_TRACE(count);
    auto mix = packet::FrameMix::make("heavy-tail", 1);
    ASSERT_TRUE(mix);
    ConversationSource source;
    source.resets = true;
    source.frames = count;
    source.own_mac = "02:00:00:00:00:09";
    source.mix = &*mix;
    source.address = [] { return packet::IpAddress::from_bytes(4, std::array<std::uint8_t, 4>{10, 0, 0, 1}.data()); };
    source.fill = [](std::span<std::uint8_t>) {};
    const Frames frames = make_conversations(source);
    ASSERT_EQ(frames.size(), count);
    const std::size_t streams = std::max(1U, count / 256);
    std::map<std::uint16_t, std::uint32_t> next;  // by the client's port: what its data goes on with
    std::map<std::uint16_t, std::uint32_t> missing;
    for (std::size_t f = 0; f < frames.size(); ++f) {
      const packet::HeaderFacts facts = read(frames[f]);
      ASSERT_TRUE(facts.has_tcp);
      const bool resets = (facts.tcp_flags & packet::tcp_rst) != 0;
      EXPECT_EQ(resets, f >= frames.size() - streams) << f;
      if (resets) {
        EXPECT_EQ(facts.tcp_sequence, missing.at(facts.source_port));
        missing.erase(facts.source_port);
      } else if ((facts.tcp_flags & packet::tcp_syn) != 0 && facts.destination_port == 4000) {
        missing[facts.source_port] = facts.tcp_sequence + 1;
        next[facts.source_port] = facts.tcp_sequence + 2;
      } else if (!facts.payload.empty()) {
        EXPECT_EQ(facts.tcp_sequence, next.at(facts.source_port));
        next[facts.source_port] += static_cast<std::uint32_t>(facts.payload.size());
      }
    }
    EXPECT_EQ(next.size(), streams);
    EXPECT_TRUE(missing.empty());
  }
}

TEST(ReplayConversations, SomethingLiesAcrossTwoSegments) {
  for (const bool http : {false, true}) {
    const Planted& what = http ? planted_path : planted_text;
    const Frames frames = make(http, "heavy-tail", 16384);
    unsigned ends = 0, begins = 0, whole = 0;
    for (const auto& frame : frames) {
      const std::string_view payload = read(frame).payload;
      ends += payload.ends_with(what.first) ? 1 : 0;
      begins += payload.starts_with(what.second) ? 1 : 0;
      EXPECT_EQ(payload.find(what.whole()), payload.npos);
    }
    const Seen seen = follow(frames, http ? 80 : 4000);
    for (const auto& [port, both] : seen.conversations)
      whole += both.side[0].bytes.find(what.whole()) != std::string::npos ? 1 : 0;
    EXPECT_EQ(whole, (seen.conversations.size() + 31) / 32);
    EXPECT_EQ(ends, whole);
    EXPECT_EQ(begins, whole);
  }
}

TEST(ReplayConversations, TheSameSourceGivesTheSameFrames) {
  EXPECT_EQ(make(true, "heavy-tail", 640), make(true, "heavy-tail", 640));
  EXPECT_NE(make(true, "heavy-tail", 640), make(true, "heavy-tail", 640, 4, 2));
}

}  // namespace
}  // namespace sluice::port
