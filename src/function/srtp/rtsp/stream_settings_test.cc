// What a medium of RTSP's becomes in the element's table; and the budget of rates.
#include "function/srtp/rtsp/stream_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "function/srtp/rtsp/admission.h"

namespace sluice::function::rtsp {
namespace {

using function::Carries;
using function::Keyless;

media::rtsp::Stream stream_of(media::rtsp::PortPair client, media::rtsp::PortPair server) {
  media::rtsp::Stream stream;
  stream.client_side = {*packet::IpAddress::parse("10.1.0.2"), client, *packet::IpAddress::parse("10.2.0.2"), server};
  stream.server_side = stream.client_side;
  stream.to_client = media::MasterKey(std::vector<std::uint8_t>(30, 7));
  return stream;
}

TEST(RtspStreams, OfAClientWithAKey) {
  auto stream = stream_of({5000, 5001}, {6000, 6001});
  stream.from_client.emplace();
  stream.from_client->key = media::MasterKey(std::vector<std::uint8_t>(30, 9));
  stream.from_client->mki = {1, 2, 3};
  const auto all = streams_of(stream, true, {});
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 3U);
  const auto& [rtp, rtcp, back] = std::tie((*all)[0], (*all)[1], (*all)[2]);
  EXPECT_EQ(rtp.name, "10.2.0.2:6000 -> 10.1.0.2:5000");
  EXPECT_EQ(rtcp.name, "10.2.0.2:6001 -> 10.1.0.2:5001");
  EXPECT_EQ(back.name, "10.1.0.2:5001 -> 10.2.0.2:6001");
  EXPECT_EQ(rtp.carries, Carries::rtp);
  EXPECT_EQ(rtcp.carries, Carries::rtcp);
  EXPECT_EQ(back.carries, Carries::rtcp);
  EXPECT_EQ(rtp.direction, srtp::Direction::protect);
  EXPECT_EQ(rtcp.direction, srtp::Direction::protect);
  EXPECT_EQ(back.direction, srtp::Direction::unprotect);
  EXPECT_EQ(rtp.crypto.keys.at(0).key, stream.to_client);
  EXPECT_EQ(rtcp.crypto.keys.at(0).key, stream.to_client);
  EXPECT_EQ(back.crypto.keys.at(0).key, stream.from_client->key);
  EXPECT_EQ(back.crypto.keys.at(0).mki, 0x010203U);
  EXPECT_EQ(back.crypto.keys.at(0).mki_length, 3U);
  for (const auto& one : *all) {
    EXPECT_EQ(one.keyless, Keyless::no);
    EXPECT_EQ(one.origin, function::MediaOrigin::rtsp);
  }
  stream.from_client->mki = media::SecretBytes(9, 1);
  EXPECT_FALSE(streams_of(stream, true, {}));
}

TEST(RtspStreams, ComeByThePortOfTheirSide) {
  const auto all = streams_of(stream_of({5000, 5001}, {6000, 6001}), true, {.client = 1, .server = 2});
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ((*all)[0].ingress, 2);
  EXPECT_EQ((*all)[1].ingress, 2);
  EXPECT_EQ((*all)[2].ingress, 1);
  const auto any = streams_of(stream_of({5000, 5001}, {6000, 6001}), true, {});
  for (const auto& one : *any) EXPECT_FALSE(one.ingress);
}

// Each has its index, and none gives way: a server that begins anew under another SSRC is heard so many times.
TEST(RtspStreams, MayHaveAsManySsrcsAsIsSet) {
  auto keys = crypto::KeyTable::make(8, false);
  for (const std::uint32_t most : {function::RtspOptions().max_ssrcs, 1U, 100U}) {
    const auto all = streams_of(stream_of({5000, 5001}, {6000, 6001}), true, {}, most);
    ASSERT_TRUE(all);
    for (const std::size_t which : {0U, 1U}) {  // RTP, RTCP
      const auto stream = function::MediaStream::make((*all)[which], *keys);
      ASSERT_TRUE(stream);
      std::uint32_t heard = 0;
      for (std::uint32_t ssrc = 0; ssrc < most + 3; ++ssrc) {
        std::uint8_t packet[100] = {0x80, 96, 0, 1};
        if (which == 1) std::copy_n("\x80\xc8\x00\x06", 4, packet);
        packet[which == 0 ? 11 : 7] = static_cast<std::uint8_t>(ssrc);
        bool rtcp = false;
        function::MediaLeg* const leg = (*stream)->leg_for({packet, 28}, rtcp);
        ASSERT_NE(leg, nullptr);
        crypto::Job job;
        srtp::Pending pending;
        const srtp::Status status = leg->channel->prepare({packet, 28, sizeof packet}, job, pending);
        EXPECT_EQ(status, ssrc < most ? srtp::Status::ok : srtp::Status::no_stream) << ssrc;
        heard += status == srtp::Status::ok ? 1 : 0;
      }
      EXPECT_EQ(heard, most);
    }
  }
  EXPECT_GT(function::RtspOptions().max_ssrcs, 16U);
}

TEST(RtspStreams, OfAClientWhoseRtcpIsClear) {
  const auto stream = stream_of({5000, 5001}, {6000, 6001});
  EXPECT_EQ(streams_of(stream, true, {})->back().keyless, Keyless::passes_rtcp);
  EXPECT_EQ(streams_of(stream, false, {})->back().keyless, Keyless::drops_rtcp);
}

TEST(RtspStreams, RtpAndRtcpOnOnePort) {
  const auto all = streams_of(stream_of({5000, 5000}, {6000, 6000}), true, {});
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ(all->front().carries, Carries::both);
  EXPECT_EQ(all->back().carries, Carries::both);
  EXPECT_EQ(all->back().name, "10.1.0.2:5000 -> 10.2.0.2:6000");
}

// The server's 10.2.0.2 knows the proxy as 10.2.0.1, the client's 10.1.0.2 as 10.1.0.1.
media::rtsp::Stream explicit_stream(media::rtsp::PortPair client, media::rtsp::PortPair own,
                                    media::rtsp::PortPair server) {
  auto stream = stream_of(client, server);
  stream.client_side.server = *packet::IpAddress::parse("10.1.0.1");
  stream.server_side.client = *packet::IpAddress::parse("10.2.0.1");
  stream.client_side.server_ports = stream.server_side.client_ports = own;
  return stream;
}

std::vector<std::string> names_of(const media::rtsp::Stream& stream) {
  std::vector<std::string> names;
  const auto all = streams_of(stream, true, {});
  for (const auto& one : all.value()) {
    EXPECT_TRUE(one.leaves);
    names.push_back(one.name);
  }
  return names;
}

TEST(RtspStreams, OfAnExplicitProxyComeByOneLegAndLeaveByTheOther) {
  const auto stream = explicit_stream({5000, 5001}, {20000, 20001}, {6000, 6001});
  const auto all = streams_of(stream, true, {});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(names_of(stream),
            (std::vector<std::string>{"10.2.0.2:6000 -> 10.2.0.1:20000 as 10.1.0.1:20000 -> 10.1.0.2:5000",
                                      "10.2.0.2:6001 -> 10.2.0.1:20001 as 10.1.0.1:20001 -> 10.1.0.2:5001",
                                      "10.1.0.2:5000 -> 10.1.0.1:20000 as 10.2.0.1:20000 -> 10.2.0.2:6000",
                                      "10.1.0.2:5001 -> 10.1.0.1:20001 as 10.2.0.1:20001 -> 10.2.0.2:6001"}));
  const auto end = [](const char* text) { return *packet::IpAddress::parse(text); };
  EXPECT_EQ((*all)[0].key, function::media_key(end("10.2.0.2"), 6000, end("10.2.0.1"), 20000));
  EXPECT_EQ((*all)[0].leaves, function::media_key(end("10.1.0.1"), 20000, end("10.1.0.2"), 5000));
  EXPECT_EQ((*all)[3].leaves, function::media_key(end("10.2.0.1"), 20001, end("10.2.0.2"), 6001));
  EXPECT_EQ((*all)[0].keyless, Keyless::no);
  EXPECT_EQ((*all)[2].keyless, Keyless::passes);
  EXPECT_EQ((*all)[2].carries, Carries::rtp);
  EXPECT_EQ((*all)[3].keyless, Keyless::passes_rtcp);
  EXPECT_FALSE(streams_of(stream_of({5000, 5001}, {6000, 6001}), true, {})->front().leaves) << "a transparent one";
}

TEST(RtspStreams, OfAnExplicitProxyWithSharedPorts) {
  EXPECT_EQ(names_of(explicit_stream({5000, 5000}, {20000, 20000}, {6000, 6000})),
            (std::vector<std::string>{"10.2.0.2:6000 -> 10.2.0.1:20000 as 10.1.0.1:20000 -> 10.1.0.2:5000",
                                      "10.1.0.2:5000 -> 10.1.0.1:20000 as 10.2.0.1:20000 -> 10.2.0.2:6000"}));
  EXPECT_EQ(names_of(explicit_stream({5000, 5000}, {20000, 20000}, {6000, 6001})),
            (std::vector<std::string>{"10.2.0.2:6000 -> 10.2.0.1:20000 as 10.1.0.1:20000 -> 10.1.0.2:5000",
                                      "10.2.0.2:6001 -> 10.2.0.1:20000 as 10.1.0.1:20000 -> 10.1.0.2:5000",
                                      "10.1.0.2:5000 -> 10.1.0.1:20000 as 10.2.0.1:20000 -> 10.2.0.2:6001"}));
  EXPECT_EQ(names_of(explicit_stream({5000, 5001}, {20000, 20001}, {6000, 6000})).size(), 4U);
}

TEST(RateBudget, HoldsToItsSum) {
  RateBudget budget(1000, 300, 10);
  EXPECT_TRUE(budget.admit({600}));
  EXPECT_EQ(budget.held_to({600}).media, 660U);
  EXPECT_EQ(budget.held_to({0}).media, 330U);
  EXPECT_TRUE(budget.admit({0}));  // 300
  EXPECT_FALSE(budget.admit({101}));
  EXPECT_FALSE(budget.admit({std::numeric_limits<std::uint64_t>::max()}));
  EXPECT_TRUE(budget.admit({100}));
  budget.ended({600});
  EXPECT_TRUE(budget.admit({600}));
  EXPECT_FALSE(budget.admit({1}));
  RateBudget none(0, 300, 10);
  EXPECT_TRUE(none.admit({std::numeric_limits<std::uint64_t>::max()}));
  EXPECT_TRUE(none.admit({std::numeric_limits<std::uint64_t>::max()}));
  EXPECT_EQ(none.held_to({600}).media, 0U) << "who admits all holds nobody to anything";
}

}  // namespace
}  // namespace sluice::function::rtsp
