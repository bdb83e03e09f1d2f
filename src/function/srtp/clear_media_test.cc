// UDP that looks like media and is of no stream, with [srtp] unprotected = "drop".
#include "function/srtp/clear_media.h"

#include "function/srtp/srtp_trial_test.h"

namespace sluice::function {
namespace {

struct Case {
  std::string what, name;
  Bytes frame;
};

Bytes begins_with(std::uint8_t first) {
  Bytes bytes(40, 0x55);
  bytes[0] = first;
  return bytes;
}

// The stream of these trials comes from 10.0.0.1:5004 and goes to 10.0.0.2:6000.
TEST(Srtp, WhatLooksLikeMediaAndIsOfNoStreamGoesNowhere) {
  SrtpTrial trial("[srtp]\nunprotected = \"drop\"\n" + stream_text("protect"));
  SrtpTrial lets("[srtp]\nunprotected = \"pass\"\n" + stream_text("protect"));
  SrtpTrial usual(stream_text("protect"));
  const auto of = [](const Bytes& payload, std::uint16_t source_port = 5004, bool ipv6 = false) {
    return udp_frame(payload, ipv6, source_port, 6002);
  };
  Bytes cut = of(rtp(1, 100)).build();
  cut.resize(42);
  const Case cases[] = {
      {"RTP", "srtp_unprotected", of(rtp(1, 100)).build()},
      {"RTCP", "srtp_unprotected", of(rtcp()).build()},
      {"IPv6", "srtp_unprotected", of(rtp(1, 100), 5004, true).build()},
      {"the lowest port", "srtp_unprotected", of(rtp(1, 100), 1024).build()},
      {"the first byte of version 2", "srtp_unprotected", of(begins_with(128)).build()},
      {"its last", "srtp_unprotected", of(begins_with(191)).build()},
      {"another length", "srtp_unprotected", of(rtp(1, 100)).udp_length(30).build()},
      {"a VLAN", "srtp_unprotected", of(rtp(1, 100)).vlan(7).build()},
      {"options", "srtp_unprotected", of(rtp(1, 100)).options({1, 1, 1, 1}).build()},
      {"a first fragment", "srtp_unprotected", of(rtp(1, 100)).fragment(0, true).build()},
      {"the way back", "srtp_unprotected",
       PacketBuilder().ipv4("10.0.0.2", "10.0.0.1").udp(6001, 5005).payload(rtcp()).build()},
      {"a later fragment to whom no stream goes", "passes",
       PacketBuilder().ipv4("10.0.0.1", "10.0.0.9").udp(1, 2).fragment(800, false).payload(80).build()},
      {"DTLS", "passes", of(begins_with(63)).build()},
      {"before version 2", "passes", of(begins_with(127)).build()},
      {"behind it", "passes", of(begins_with(192)).build()},
      {"something else in a VLAN", "passes", of(begins_with(22)).vlan(7).build()},
      {"DNS", "passes", of(begins_with(150), 53).build()},
      {"DNS in a VLAN", "passes", of(begins_with(150), 53).vlan(7).build()},
      {"without payload", "passes", of({}).build()},
      {"cut behind UDP's header", "passes", cut},
      {"TCP", "passes", PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(5004, 6000).payload(rtp(1, 100)).build()},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(trial.one(one.frame).name(), one.name) << one.what;
    EXPECT_EQ(lets.one(one.frame).name(), "passes") << one.what;
    EXPECT_EQ(usual.one(one.frame).name(), "passes") << one.what;
    EXPECT_EQ(usual.one(one.frame).frame, one.frame) << one.what;
    for (const auto transit : {SrtpTrial::How::Transit::before, SrtpTrial::How::Transit::behind}) {
      EXPECT_EQ(trial.one(one.frame, {.transit = transit}).name(), one.name) << one.what;
    }
  }
  EXPECT_EQ(trial.one(udp_frame(rtp(1, 100)).build()).name(), "passes") << "protected";
  EXPECT_EQ(trial.metric("srtp_protected_rtp"), 1U);
}

TEST(Srtp, AReloadChangesWhatBecomesOfWhatNobodyProtects) {
  SrtpTrial trial("");
  const Bytes frame = udp_frame(rtp(1, 100)).build();
  EXPECT_EQ(trial.one(frame).name(), "passes");
  trial.element().reload(*srtp_of("[srtp]\nunprotected = \"drop\"\n"))->commit();
  EXPECT_EQ(trial.one(frame).name(), "srtp_unprotected");
  trial.element().reload(*srtp_of(""))->commit();
  EXPECT_EQ(trial.one(frame).name(), "passes");
}

TEST(Srtp, WhatLooksLikeMediaAndGoesToTheProxyItselfIsTheHosts) {
  SrtpTrial trial(
      "[srtp]\nunprotected = \"drop\"\n[srtp.rtsp]\nlisten = [\"10.0.0.2\"]\n[[srtp.rtsp.server]]\naddress = "
      "\"10.0.0.3\"\n");
  EXPECT_EQ(trial.one(udp_frame(rtp(1, 100), false, 5004, 20000).build()).name(), "passes");
  EXPECT_EQ(trial.metric("srtp_media_to_host"), 1U);
}

}  // namespace
}  // namespace sluice::function
