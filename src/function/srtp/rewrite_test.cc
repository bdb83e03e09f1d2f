// New ends for packets: their checksums, what the element makes of streams that have them, and where the router sends
// them.
#include "function/srtp/rewrite.h"

#include <random>

#include "engine/pipeline.h"
#include "function/await_gpu_test.h"
#include "function/route/route_trial_test.h"
#include "function/srtp/srtp_trial_test.h"
#include "function/srtp/stream_settings.h"

namespace sluice::function {
namespace {

packet::IpAddress address(const char* text) {
  return *packet::IpAddress::parse(text);
}

struct Ends {
  const char* source;
  std::uint16_t source_port;
  const char* destination;
  std::uint16_t destination_port;

  MediaKey key() const { return media_key(address(source), source_port, address(destination), destination_port); }
  PacketBuilder frame(const Bytes& payload) const {
    PacketBuilder builder;
    builder.eth(host_mac, router_mac);
    address(source).family == 4 ? builder.ipv4(source, destination) : builder.ipv6(source, destination);
    return builder.udp(source_port, destination_port).payload(payload);
  }
};

constexpr Ends from_server{"10.2.0.2", 5004, "10.1.0.1", 20000}, to_client{"10.1.0.1", 20000, "203.0.113.7", 6000};
constexpr Ends from_server6{"2001:db8:9::2", 5004, "2001:db8:1::1", 20000},
    to_client6{"2001:db8:1::1", 20000, "2001:db8:77::1", 6000};

Bytes rewritten(Bytes frame, const Ends& ends) {
  MediaFrame media;
  read_media_frame(frame.data(), static_cast<std::uint32_t>(frame.size()), media);
  EXPECT_EQ(media.kind, MediaFrameKind::plain);
  rewrite_ends(frame.data(), media.udp_offset, ends.key());
  return frame;
}

TEST(RewriteEnds, IsWhatASenderWithTheseEndsWouldSend) {
  for (std::size_t length = 12; length < 300; ++length) {
    const Bytes payload = rtp(static_cast<std::uint16_t>(length * 77), length);
    EXPECT_EQ(rewritten(from_server.frame(payload).build(), to_client), to_client.frame(payload).build());
    EXPECT_EQ(rewritten(from_server6.frame(payload).build(), to_client6), to_client6.frame(payload).build());
  }
}

TEST(RewriteEnds, OfAnyEnds) {
  std::mt19937 random(7);
  const Bytes payload = rtp(1, 33);
  for (unsigned i = 0; i < 20'000; ++i) {
    const auto end = [&] { return packet::IpAddress::v4(random()); };
    const auto port = [&] { return static_cast<std::uint16_t>(random()); };
    const packet::IpAddress ends[] = {end(), end(), end(), end()};
    const std::uint16_t ports[] = {port(), port(), port(), port()};
    Bytes frame = PacketBuilder().ipv4(ends[0], ends[1]).udp(ports[0], ports[1]).payload(payload).build();
    rewrite_ends(frame.data(), 34, media_key(ends[2], ports[2], ends[3], ports[3]));
    ASSERT_EQ(frame, PacketBuilder().ipv4(ends[2], ends[3]).udp(ports[2], ports[3]).payload(payload).build()) << i;
  }
}

TEST(RewriteEnds, AbsentChecksumsStayAbsentAndWrongOnesWrong) {
  const Bytes payload = rtp(1, 33);
  EXPECT_EQ(rewritten(from_server.frame(payload).transport_checksum(0).build(), to_client),
            to_client.frame(payload).transport_checksum(0).build());
  for (const std::uint16_t wrong : {1, 0x1234, 0xffff}) {
    Bytes frame = rewritten(from_server.frame(payload).transport_checksum(wrong).build(), to_client);
    MediaFrame media;
    read_media_frame(frame.data(), static_cast<std::uint32_t>(frame.size()), media);
    EXPECT_FALSE(udp_checksum_ok(frame.data(), media)) << wrong;
  }
  Bytes frame = rewritten(from_server.frame(payload).ip_checksum(0x1234).build(), to_client);
  EXPECT_FALSE(packet::ipv4_checksum_ok(frame.data() + 14));
}

const std::string section = "[srtp.rtsp]\nlisten = [\"10.1.0.1\"]\n[[srtp.rtsp.server]]\naddress = \"10.2.0.2\"\n";

MediaStreamSettings stream(const Ends& comes, const Ends& leaves, const std::string& action = "protect") {
  auto all = *read_stream_text(
      "action = \"" + action + "\"\nsource = \"10.0.0.1\"\nsource_port = 1\ndestination = \"10.0.0.2\"\n" +
          "destination_port = 2\ncrypto = \"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "\"\n",
      "a test", 1514);
  all[0].origin = MediaOrigin::rtsp;
  all[0].key = comes.key();
  all[0].leaves = leaves.key();
  all[0].name = "a test";
  return all[0];
}

std::unique_ptr<SrtpTrial> trial_with(const std::vector<MediaStreamSettings>& streams) {
  auto trial = std::make_unique<SrtpTrial>(section);
  EXPECT_TRUE(trial->streams().add(streams));
  return trial;
}

// What an ordinary stream between the new ends makes of it.
TEST_P(SrtpOn, AProxysStreamLeavesWithOtherEnds) {
  for (const auto& [comes, leaves] : {std::pair{from_server, to_client}, std::pair{from_server6, to_client6}}) {
    const auto proxy = trial_with({stream(comes, leaves)});
    const auto ordinary = trial_with({stream(leaves, leaves)});
    const auto back = trial_with({stream(leaves, comes, "unprotect")});
    for (const Bytes& payload : {rtp(1, 100), rtp(2, 1), rtcp()}) {
      const Judged sealed = proxy->one(comes.frame(payload).build());
      EXPECT_EQ(sealed.name(), "passes");
      EXPECT_EQ(sealed.frame, ordinary->one(leaves.frame(payload).build()).frame);
      const Judged opened = back->one(sealed.frame);
      EXPECT_EQ(opened.name(), "passes");
      EXPECT_EQ(opened.frame, comes.frame(payload).build());
    }
    EXPECT_EQ(back->streams().noted(leaves.key()), 1U) << "RTCP that was authenticated";
  }
}

// So much of a payload's words that the frame's UDP checksum is 0xffff.
Bytes with_highest_checksum(const Ends& ends, Bytes payload) {
  constexpr std::size_t word = 12;  // behind RTP's header
  payload[word] = payload[word + 1] = 0;
  const Bytes frame = ends.frame(payload).build();
  const std::size_t checksum = frame.size() - payload.size() - 2;
  payload[word] = frame[checksum];
  payload[word + 1] = frame[checksum + 1];
  const Bytes built = ends.frame(payload).build();
  EXPECT_TRUE(built[checksum] == 0xff && built[checksum + 1] == 0xff);
  return payload;
}

// A frame has its new ends when its checksum is compared with a device's sum: it is found to be right exactly where it
// was with the old ones, also where one of the two is 0xffff, which stands for 0.
TEST_P(SrtpOn, ChecksumsOfAProxysStreamAreComparedAsTheyCame) {
  for (const auto& [comes, leaves] : {std::pair{from_server, to_client}, std::pair{from_server6, to_client6}}) {
    for (const bool on_core : {false, true}) {
      SCOPED_TRACE(std::string(comes.source) + (on_core ? ", on the core" : ""));
      const auto proxy = trial_with({stream(comes, leaves)});
      const auto ordinary = trial_with({stream(leaves, leaves)});
      EXPECT_EQ(proxy->one(comes.frame(rtp(0, 9)).build()).name(), "passes");
      EXPECT_EQ(ordinary->one(leaves.frame(rtp(0, 9)).build()).name(), "passes");
      const std::uint64_t kept = proxy->metric("srtp_kept_from_device");  // until a cycle has brought the key
      const bool has_none = address(comes.source).family == 4;
      struct Case {
        Bytes frame;
        Bytes passes_as;  // empty: it does not
      };
      std::vector<Case> cases;
      for (std::uint16_t i = 1; i <= 12; i += 3) {
        const Bytes some = rtp(i, 30 + i), comes_highest = with_highest_checksum(comes, rtp(i + 1, 40)),
                    leaves_highest = with_highest_checksum(leaves, rtp(i + 2, 41));
        for (const Bytes& payload : {some, comes_highest, leaves_highest}) {
          const Bytes right = comes.frame(payload).build();
          const std::size_t checksum = right.size() - payload.size() - 2;
          for (const unsigned bit : {0U, 7U, 8U, 15U}) {
            Bytes wrong = right;
            wrong[checksum + bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
            cases.push_back({wrong, {}});
          }
          cases.push_back({right, leaves.frame(payload).build()});
        }
      }
      const Bytes none = rtp(13, 50);
      cases.push_back({comes.frame(none).transport_checksum(0).build(),
                       has_none ? leaves.frame(none).transport_checksum(0).build() : Bytes()});
      ASSERT_LE(cases.size(), SrtpTrial::capacity);
      std::vector<Bytes> frames;
      for (const Case& one : cases) frames.push_back(one.frame);
      const std::vector<Judged> judged = proxy->run(frames, {.on_core = on_core});
      for (std::size_t i = 0; i < cases.size(); ++i) {
        const bool passes = !cases[i].passes_as.empty();
        ASSERT_EQ(judged[i].name(), passes ? "passes" : "srtp_bad_checksum") << i;
        if (!passes) continue;
        EXPECT_EQ(judged[i].frame, ordinary->one(cases[i].passes_as).frame) << i;
      }
      EXPECT_EQ(proxy->metric("srtp_kept_from_device"), kept) << "the sums were the device's";
    }
  }
}

TEST_P(SrtpOn, WhatAProxysStreamDropsKeepsItsEnds) {
  const Bytes forged = from_server.frame(rtp(1, 100)).build();
  EXPECT_EQ(trial_with({stream(from_server, to_client, "unprotect")})->one(forged).name(), "srtp_auth_failed");
  const auto trial = trial_with({stream(from_server, to_client)});
  ASSERT_EQ(trial->streams().remove(std::vector{from_server.key()}, MediaOrigin::rtsp, true), 1U);
  EXPECT_EQ(trial->one(forged).name(), "srtp_ended");
  EXPECT_EQ(trial->one(forged).frame, forged);
}

TEST(Srtp, WithoutAKeyAProxysPacketsPassWithOtherEnds) {
  MediaStreamSettings opening = stream(from_server, to_client), reports = opening;
  opening.carries = Carries::rtp;
  opening.keyless = Keyless::passes;
  const Ends reports_come{"10.2.0.2", 5005, "10.1.0.1", 20001}, reports_leave{"10.1.0.1", 20001, "203.0.113.7", 6001};
  reports.key = reports_come.key();
  reports.leaves = reports_leave.key();
  reports.carries = Carries::rtcp;
  reports.keyless = Keyless::passes_rtcp;
  const auto trial = trial_with({opening, reports});
  for (const Bytes& payload : {rtp(1, 100), Bytes(4, 0), Bytes()}) {
    const Judged passed = trial->one(from_server.frame(payload).build());
    EXPECT_EQ(passed.name(), "passes");
    EXPECT_EQ(passed.frame, to_client.frame(payload).build());
  }
  EXPECT_EQ(trial->metric("srtp_passed_others"), 3U);
  EXPECT_EQ(trial->one(reports_come.frame(rtcp()).build()).frame, reports_leave.frame(rtcp()).build());
  EXPECT_EQ(trial->metric("srtp_clear_rtcp_passed"), 1U);
}

TEST(Srtp, CountsWhatComesForTheProxysPortsAndIsNoStreams) {
  const auto trial = trial_with({stream({"10.2.0.2", 5004, "10.1.0.77", 20000}, to_client)});
  const auto unmatched_after = [&](const Ends& ends, const char* becomes = "passes") {
    const Bytes frame = ends.frame(rtp(1, 9)).build();
    const Judged judged = trial->one(frame);
    EXPECT_EQ(judged.name(), becomes);
    EXPECT_EQ(judged.frame, frame);
    return trial->metric("srtp_media_to_host");
  };
  EXPECT_EQ(unmatched_after({"10.9.0.2", 5004, "10.1.0.1", 20002}), 1U) << "the address that clients open";
  EXPECT_EQ(unmatched_after({"10.9.0.2", 5004, "10.1.0.1", 30000}), 1U) << "another port";
  EXPECT_EQ(unmatched_after({"10.9.0.2", 5004, "10.1.0.2", 20002}), 1U) << "another host";
  EXPECT_EQ(unmatched_after({"10.9.0.2", 5004, "10.1.0.77", 29999}), 1U) << "where servers' streams come";
  EXPECT_EQ(unmatched_after({"10.2.0.2", 5004, "10.1.0.77", 29999}, "srtp_unprotected"), 1U) << "a server's own";
  EXPECT_EQ(unmatched_after({"10.2.0.2", 5004, "10.1.0.77", 80}), 1U);
}

// On an engine: the proxy's own addresses are the host's, and the new destination is routed.
class RewriteOn : public testing::TestWithParam<std::string> {};

TEST_P(RewriteOn, IsRoutedByTheNewDestination) {
  if (const std::string why = missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
  std::vector<Bytes> frames, expected;
  const auto ordinary = trial_with({stream(to_client, to_client), stream(to_client6, to_client6)});
  for (unsigned i = 0; i < engine::burst_size; ++i) {  // those that AwaitGpu holds up
    frames.push_back(v4("203.0.113.9").udp(1, 2).payload(i).build());
    expected.push_back(frames.back());
  }
  for (std::uint16_t i = 0; i < 60; ++i) {
    frames.push_back(from_server.frame(rtp(i, 200)).build());
    frames.push_back(from_server6.frame(rtp(i, 200)).build());
    frames.push_back(v4("203.0.113.9").udp(1, 2).payload(i).build());
    expected.push_back(ordinary->one(to_client.frame(rtp(i, 200)).build()).frame);
    expected.push_back(ordinary->one(to_client6.frame(rtp(i, 200)).build()).frame);
    expected.push_back(frames.back());
  }
  const CaptureTrial trial(GetParam(), 256);
  auto engine = trial.make(frames, [&](const engine::PortTable& ports) {
    std::vector<std::unique_ptr<engine::Element>> elements;
    elements.push_back(std::make_unique<AwaitGpu>());
    elements.push_back(srtp_of(section));
    const Router::RouterOptions options{.max_ipv4 = 10000, .max_ipv6 = 10000, .any_mac = true, .statics = {}};
    elements.push_back(std::make_unique<Router>(options, ports));
    return std::make_unique<engine::Pipeline>(std::move(elements));
  });
  ASSERT_TRUE(engine);
  fill(engine->pipeline().first<Routing>()->table());
  ASSERT_TRUE(engine->pipeline().first<MediaStreams>()->add(
      {stream(from_server, to_client), stream(from_server6, to_client6)}));
  const engine::EngineStats stats = CaptureTrial::run(*engine, frames.size());
  engine.reset();
  const std::vector<Bytes> sent = trial.sent();
  EXPECT_EQ(stats.imbalance(), 0);
  ASSERT_EQ(sent.size(), expected.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    packet::MacAddress port_mac;
    std::copy(sent[i].begin() + 6, sent[i].begin() + 12, port_mac.bytes.begin());
    EXPECT_EQ(sent[i], forwarded(expected[i], next_mac, port_mac)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RewriteOn, testing::Values("cpu", "cuda:0"),
                         [](const auto& info) { return info.param.substr(0, info.param.find(':')); });

}  // namespace
}  // namespace sluice::function
