// What becomes of frames in the element "srtp".
#include <gtest/gtest.h>

#include "function/srtp/srtp_trial_test.h"

namespace sluice::function {
namespace {

struct Form {
  std::string suite, key;
  bool ipv6;
  std::size_t rtp_tag, rtcp_tag;
};

const std::string key46 = "bGQnJWX5NH/6YyrIV0lQT3S8DiZ/IYkBi1f0q51hY0tDM2YgYkTrQHRBhJbElg==";
const std::string key44 = "bGQnJWX5NH/6YyrIV0lQT3S8DiZ/IYkBi1f0q51hY0tDM2YgYkTrQHRBhJY=";
const std::string key28 = "bGQnJWX5NH/6YyrIV0lQT3S8DiZ/IYkBi1f0qw==";

// The UDP payload of a frame that PacketBuilder has made.
Bytes payload_of(const Bytes& frame, bool ipv6) {
  return Bytes(frame.begin() + (ipv6 ? 62 : 42), frame.end());
}

const Form forms[] = {
    {"AES_CM_128_HMAC_SHA1_80", key30, false, 10, 10}, {"AES_CM_128_HMAC_SHA1_80", key30, true, 10, 10},
    {"AES_CM_128_HMAC_SHA1_32", key30, false, 4, 10},  {"AES_256_CM_HMAC_SHA1_80", key46, true, 10, 10},
    {"AEAD_AES_128_GCM", key28, false, 16, 16},        {"AEAD_AES_256_GCM", key44, true, 16, 16}};

void there_and_back(const Form& form) {
  SCOPED_TRACE(form.suite + (form.ipv6 ? ", IPv6" : ", IPv4"));
  SrtpTrial protects(stream_text("protect", "", form.key, form.suite, form.ipv6));
  SrtpTrial unprotects(stream_text("unprotect", "", form.key, form.suite, form.ipv6));
  std::vector<Bytes> clear;
  std::uint16_t sequence = 65530;  // which wraps
  for (const std::size_t length : {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 160, 999, 1000, 1370, 1400}) {
    clear.push_back(udp_frame(rtp(sequence++, length), form.ipv6).build());
    clear.push_back(udp_frame(rtcp(), form.ipv6).build());
  }
  const std::vector<Judged> sealed = protects.run(clear);
  std::vector<Bytes> between;
  for (std::size_t i = 0; i < clear.size(); ++i) {
    ASSERT_EQ(sealed[i].name(), "passes") << i;
    const Bytes before = payload_of(clear[i], form.ipv6), after = payload_of(sealed[i].frame, form.ipv6);
    EXPECT_EQ(after.size(), before.size() + (i % 2 == 0 ? form.rtp_tag : form.rtcp_tag + 4)) << i;
    if (before.size() >= 28) {
      EXPECT_NE(Bytes(before.begin() + 12, before.end()),
                Bytes(after.begin() + 12, after.begin() + static_cast<long>(before.size())));
    }
    EXPECT_EQ(sealed[i].frame, udp_frame(after, form.ipv6).build()) << "lengths and checksums " << i;
    between.push_back(sealed[i].frame);
  }
  // The stream is known before its sequence wraps (media/srtp/channel.h).
  ASSERT_EQ(unprotects.one(between[0]).frame, clear[0]);
  const std::vector<Judged> opened = unprotects.run(between);
  EXPECT_EQ(opened[0].name(), "srtp_replayed");
  for (std::size_t i = 1; i < clear.size(); ++i) {
    ASSERT_EQ(opened[i].name(), "passes") << i;
    EXPECT_EQ(opened[i].frame, clear[i]) << i;
  }
  EXPECT_EQ(protects.metric("srtp_protected_rtp"), 15U);
  EXPECT_EQ(protects.metric("srtp_protected_rtcp"), 15U);
  EXPECT_EQ(unprotects.metric("srtp_unprotected_rtp"), 15U);
  EXPECT_EQ(unprotects.metric("srtp_unprotected_rtcp"), 15U);
  EXPECT_EQ(unprotects.metric("srtp_protected_rtp"), 0U);
}

TEST_P(SrtpOn, ThereAndBack) {
  for (const Form& form : forms) there_and_back(form);
}

INSTANTIATE_TEST_SUITE_P(Devices, SrtpOn, testing::Values("cpu", "cuda:0"),
                         [](const auto& info) { return info.param.substr(0, info.param.find(':')); });

TEST_P(SrtpOn, WhatIsNoStreamsPassesUntouched) {
  SrtpTrial trial(stream_text("protect"));
  std::vector<Bytes> frames = {
      udp_frame(rtp(1, 100), false, 5004, 6001).build(),
      udp_frame(rtp(1, 100), false, 6000, 5004).build(),
      udp_frame(rtp(1, 100), true).build(),
      PacketBuilder().ipv4("10.0.0.2", "10.0.0.1").udp(5004, 6000).payload(rtp(1, 20)).build(),
      PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(5004, 6000).payload(100).build(),
      PacketBuilder().ipv4("10.0.0.1", "10.0.0.3").udp(1, 2).fragment(800, true).payload(80).build(),
      PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(7, 8).fragment(0, true).payload(80).build(),
      PacketBuilder().vlan(5).ipv4("10.0.0.1", "10.0.0.2").udp(7, 8).payload(80).build(),
      PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").icmp6(128, 0).payload(40).build(),
      PacketBuilder().arp_request("10.0.0.1", "10.0.0.2").build(),
      Bytes{1, 2, 3},
      udp_frame(rtp(1, 100)).cut_to(40).build(),
  };
  const std::vector<Judged> judged = trial.run(frames);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(judged[i].name(), "passes") << i;
    EXPECT_EQ(judged[i].frame, frames[i]) << i;
  }
  EXPECT_EQ(trial.metric("srtp_protected_rtp"), 0U);
}

TEST_P(SrtpOn, WhatCannotBeProtectedIsDroppedByName) {
  SrtpTrial trial(stream_text("protect", "max_ssrcs = 2"));
  ASSERT_EQ(trial.one(udp_frame(rtp(100, 20)).build()).name(), "passes");
  ASSERT_EQ(trial.one(udp_frame(rtp(100, 20, 2)).build()).name(), "passes");
  Bytes version = rtp(101, 20);
  version[0] = 0xc0;
  Bytes csrcs = rtp(101, 4);
  csrcs[0] = 0x8f;
  Bytes cut = rtp(101, 0);
  cut.pop_back();
  const std::pair<Bytes, std::string> cases[] = {
      {udp_frame(rtp(100, 20)).build(), "srtp_replayed"},
      {udp_frame(rtp(100, 20, 3)).build(), "srtp_no_ssrc"},
      {udp_frame(rtp(101, 1452)).build(), "srtp_too_big"},
      {udp_frame(rtp(101, 1451)).build(), "srtp_too_big"},
      {udp_frame(rtp(101, 20)).transport_checksum(0x1234).build(), "srtp_bad_checksum"},
      {udp_frame(rtp(101, 20)).udp_length(30).build(), "srtp_malformed"},
      {udp_frame(rtp(101, 20)).udp_length(4).build(), "srtp_malformed"},
      {udp_frame(rtp(101, 20)).cut_to(60).build(), "srtp_malformed"},
      {udp_frame(csrcs).build(), "srtp_malformed"},
      {udp_frame(cut).build(), "srtp_malformed"},
      {udp_frame(version).build(), "srtp_not_media"},
      {udp_frame({0, 1, 0, 0}).build(), "srtp_not_media"},
      {udp_frame({}).build(), "srtp_not_media"},
      {udp_frame(rtp(101, 20)).vlan(7).build(), "srtp_not_plain"},
      {udp_frame(rtp(101, 20)).options({1, 1, 1, 1}).build(), "srtp_not_plain"},
      {udp_frame(rtp(101, 20)).fragment(0, true).build(), "srtp_not_plain"},
      {udp_frame(rtp(101, 20)).fragment(800, false).build(), "srtp_not_plain"},
  };
  for (const auto& [frame, name] : cases) EXPECT_EQ(trial.one(frame).name(), name);
  EXPECT_EQ(trial.one(udp_frame(rtp(101, 1448 - 10)).build()).name(), "passes") << "1,500 bytes with its tag";
  EXPECT_EQ(trial.metric("srtp_protected_rtp"), 3U);
}

TEST_P(SrtpOn, Ipv6ThatIsNotPlain) {
  SrtpTrial trial(stream_text("protect", "", key30, "AES_CM_128_HMAC_SHA1_80", true));
  EXPECT_EQ(trial.one(udp_frame(rtp(1, 20), true).fragment(0, true).build()).name(), "srtp_not_plain");
  EXPECT_EQ(trial.one(udp_frame(rtp(1, 20), true).fragment(800, true).build()).name(), "srtp_not_plain");
  EXPECT_EQ(trial.one(udp_frame(rtp(1, 20), true).extension(60, Bytes(6)).build()).name(), "srtp_not_plain");
  EXPECT_EQ(trial.one(udp_frame(rtp(1, 20), true).transport_checksum(0).build()).name(), "srtp_bad_checksum");
  EXPECT_EQ(trial.one(udp_frame(rtp(1, 20), true).build()).name(), "passes");
}

TEST_P(SrtpOn, Ipv4WithoutAUdpChecksumStaysWithout) {
  SrtpTrial protects(stream_text("protect")), unprotects(stream_text("unprotect"));
  const Bytes clear = udp_frame(rtp(1, 33)).transport_checksum(0).build();
  const Judged sealed = protects.one(clear);
  ASSERT_EQ(sealed.name(), "passes");
  EXPECT_EQ(sealed.frame, udp_frame(payload_of(sealed.frame, false)).transport_checksum(0).build());
  EXPECT_EQ(unprotects.one(sealed.frame).frame, clear);
}

// What a wrong checksum has, its sequence number perhaps, changes nothing for the packets around it, wherever those are
// computed, and whether its sum, or the channel, finds it.
TEST_P(SrtpOn, AWrongChecksumIsFoundAndMovesNothing) {
  for (const Form& form : forms) {
    for (const bool on_core : {false, true}) {
      SCOPED_TRACE(form.suite + (on_core ? ", on the core" : ""));
      SrtpTrial trial(stream_text("protect", "max_ssrcs = 1", form.key, form.suite, form.ipv6));
      SrtpTrial clean(stream_text("protect", "", form.key, form.suite, form.ipv6));
      const auto wrong = [&](const Bytes& payload) {
        return udp_frame(payload, form.ipv6).transport_checksum(0x1234).build();
      };
      const auto right = [&](const Bytes& payload) { return udp_frame(payload, form.ipv6).build(); };
      Bytes control = rtcp(), version = rtp(104, 33);
      control[20] ^= 1;
      version[0] = 0xb0;  // an extension that does not fit
      struct Case {
        Bytes frame;
        bool passes;
      };
      const Case cases[] = {
          {wrong(rtp(9000, 20)), false},  // the first of all
          {right(rtp(100, 33)), true},   {wrong(rtp(20100, 33)), false}, {right(rtp(101, 32)), true},
          {wrong(rtp(102, 31)), false},  {wrong(rtp(40000, 1)), false},  {right(rtp(102, 31)), true},
          {wrong(rtp(101, 32)), false},  // it was used
          {wrong(control), false},       {right(rtcp()), true},          {wrong(rtp(103, 5, 77)), false},
          {wrong(version), false},       {right(rtp(103, 0)), true},     {right(rtp(230, 7)), true},
          {wrong(rtp(103, 0)), false},
      };
      for (const bool at_once : {true, false}) {
        std::vector<Bytes> frames;
        for (const Case& one : cases) frames.push_back(one.frame);
        if (!at_once) frames = {wrong(rtp(30000, 9)), right(rtp(231, 9))};
        const std::vector<Judged> judged = trial.run(frames, {.on_core = on_core});
        for (std::size_t i = 0; i < frames.size(); ++i) {
          const bool passes = at_once ? cases[i].passes : i == 1;
          ASSERT_EQ(judged[i].name(), passes ? "passes" : "srtp_bad_checksum") << i;
          if (!passes) continue;
          EXPECT_EQ(judged[i].frame, clean.one(frames[i]).frame) << i;
        }
      }
    }
  }
}

// Behind the tag is what no job holds, and where that is at an odd place the words are others.
TEST_P(SrtpOn, ChecksumsOfPacketsWithAnMki) {
  for (const Form& form : forms) {
    for (const std::string mki : {"|1:1", "|515:2", "|70000:3"}) {
      SCOPED_TRACE(form.suite + mki);
      const std::string key = form.key + mki;
      SrtpTrial protects(stream_text("protect", "", key, form.suite, form.ipv6));
      SrtpTrial unprotects(stream_text("unprotect", "", key, form.suite, form.ipv6));
      for (std::uint16_t i = 0; i < 12; ++i) {
        const Bytes clear = udp_frame(i % 4 == 3 ? rtcp() : rtp(i, 40 + i), form.ipv6).build();
        const Judged sealed = protects.one(clear);
        ASSERT_EQ(sealed.name(), "passes");
        EXPECT_EQ(sealed.frame, udp_frame(payload_of(sealed.frame, form.ipv6), form.ipv6).build()) << i;
        EXPECT_EQ(unprotects.one(sealed.frame).frame, clear) << i;
      }
    }
  }
}

TEST_P(SrtpOn, EthernetsPaddingGoes) {
  SrtpTrial protects(stream_text("protect")), unprotects(stream_text("unprotect"));
  const Bytes clear = udp_frame(rtp(1, 3)).build();
  Bytes padded = clear;
  padded.resize(60, 0);
  const Judged sealed = protects.one(padded);
  EXPECT_EQ(sealed.frame.size(), clear.size() + 10);
  EXPECT_EQ(unprotects.one(sealed.frame).frame, clear);
}

TEST_P(SrtpOn, WhatIsFalsifiedNeverPasses) {
  SrtpTrial protects(stream_text("protect")), unprotects(stream_text("unprotect"));
  const Bytes sealed = protects.one(udp_frame(rtp(1, 30)).build()).frame;
  for (std::size_t at = 43; at < sealed.size(); ++at) {
    Bytes changed = payload_of(sealed, false);
    changed[at - 42] ^= 0x10;
    const std::string name = unprotects.one(udp_frame(changed).build()).name();
    EXPECT_TRUE(name == "srtp_auth_failed" || name == "srtp_malformed") << at << " " << name;
  }
  EXPECT_EQ(unprotects.one(udp_frame(rtp(1, 30)).build()).name(), "srtp_auth_failed") << "clear where SRTP is due";
  EXPECT_EQ(unprotects.one(sealed).name(), "passes");
  EXPECT_EQ(unprotects.one(sealed).name(), "srtp_replayed");
  EXPECT_EQ(SrtpTrial(stream_text("unprotect", "", other_key30)).one(sealed).name(), "srtp_auth_failed");
  EXPECT_EQ(unprotects.metric("srtp_unprotected_rtp"), 1U);
}

TEST_P(SrtpOn, TwiceInOneBatchPassesOnce) {
  SrtpTrial protects(stream_text("protect")), unprotects(stream_text("unprotect"));
  const Bytes sealed = protects.one(udp_frame(rtp(1, 30)).build()).frame;
  const std::vector<Judged> judged = unprotects.run({sealed, sealed, sealed});
  EXPECT_EQ(judged[0].name(), "passes");
  EXPECT_EQ(judged[1].name(), "srtp_replayed");
  EXPECT_EQ(judged[2].name(), "srtp_replayed");
}

TEST_P(SrtpOn, MkiAndItsAbsence) {
  const std::string keys = key30 + "|1:4;inline:" + other_key30 + "|2:4";
  SrtpTrial protects(stream_text("protect", "", keys));
  SrtpTrial unprotects(stream_text("unprotect", "", keys));
  SrtpTrial others(stream_text("unprotect", "", key30 + "|9:4"));
  const Judged sealed = protects.one(udp_frame(rtp(1, 30)).build());
  EXPECT_EQ(payload_of(sealed.frame, false).size(), 42U + 4 + 10);
  EXPECT_EQ(others.one(sealed.frame).name(), "srtp_no_key");
  EXPECT_EQ(unprotects.one(sealed.frame).frame, udp_frame(rtp(1, 30)).build());
}

TEST_P(SrtpOn, RolloverCounterThatWasSignalled) {
  const std::string begins = "ssrc = 0x11223344\nroc = 7";
  SrtpTrial protects(stream_text("protect", begins));
  const Bytes sealed = protects.one(udp_frame(rtp(1, 30)).build()).frame;
  EXPECT_EQ(SrtpTrial(stream_text("unprotect")).one(sealed).name(), "srtp_auth_failed");
  EXPECT_EQ(SrtpTrial(stream_text("unprotect", begins)).one(sealed).name(), "passes");
}

TEST_P(SrtpOn, RtcpOnPortsOfItsOwn) {
  const std::string ports = "rtcp_source_port = 5005\nrtcp_destination_port = 6001";
  SrtpTrial protects(stream_text("protect", ports));
  EXPECT_EQ(protects.metric("srtp_streams"), 2U);
  const Judged control = protects.one(udp_frame(rtcp(), false, 5005, 6001).build());
  EXPECT_EQ(payload_of(control.frame, false).size(), rtcp().size() + 14);
  Bytes type72 = rtp(1, 30);  // RTP of payload type 72 with the marker looks like RTCP
  type72[1] = 200;
  EXPECT_EQ(payload_of(protects.one(udp_frame(type72).build()).frame, false).size(), type72.size() + 10);
  EXPECT_EQ(protects.metric("srtp_protected_rtcp"), 1U);
  EXPECT_EQ(protects.metric("srtp_protected_rtp"), 1U);
  EXPECT_EQ(protects.one(udp_frame(rtp(1, 30), false, 5005, 6001).build()).name(), "srtp_malformed");
}

TEST_P(SrtpOn, OthersPassIfTheyMay) {
  SrtpTrial trial(stream_text("protect", "others = \"pass\""));
  const Bytes stun = udp_frame({0, 1, 0, 0}).build();
  EXPECT_EQ(trial.one(stun).name(), "passes");
  EXPECT_EQ(trial.one(stun).frame, stun);
  EXPECT_EQ(trial.metric("srtp_passed_others"), 2U);
}

TEST_P(SrtpOn, AStreamIsOneLanes) {
  SrtpTrial trial(stream_text("protect"), 2);
  EXPECT_EQ(trial.one(udp_frame(rtp(1, 30)).build(), 1).name(), "passes");
  EXPECT_EQ(trial.one(udp_frame(rtp(2, 30)).build(), 0).name(), "srtp_other_lane");
  EXPECT_EQ(trial.one(udp_frame(rtp(2, 30)).build(), 1).name(), "passes");
}

// Who forges a first frame on another lane has not got the stream.
TEST_P(SrtpOn, AStreamToUnprotectIsTheLanesThatBringsTheFirstAuthenticFrame) {
  for (const std::string begins : {"", "ssrc = 0x11223344\nroc = 7"}) {
    SrtpTrial protects(stream_text("protect", begins));
    SrtpTrial trial(stream_text("unprotect", begins), 3);
    std::vector<Bytes> sealed;
    for (std::uint16_t i = 0; i < 4; ++i) sealed.push_back(protects.one(udp_frame(rtp(i, 30)).build()).frame);
    const Bytes control = protects.one(udp_frame(rtcp()).build()).frame;
    const Bytes forged = udp_frame(rtp(0, 40)).build(), forged_control = udp_frame(rtcp()).build();
    EXPECT_EQ(trial.one(forged, 1).name(), "srtp_auth_failed");
    EXPECT_EQ(trial.one(forged_control, 2).name(), "srtp_auth_failed");
    EXPECT_EQ(trial.one(udp_frame(rtp(3, 40, 5)).build(), 2).name(), "srtp_auth_failed");
    EXPECT_EQ(trial.one(control, 0).frame, udp_frame(rtcp()).build());
    EXPECT_EQ(trial.one(sealed[0], 0).frame, udp_frame(rtp(0, 30)).build());
    EXPECT_EQ(trial.one(forged, 1).name(), "srtp_other_lane");
    EXPECT_EQ(trial.one(sealed[1], 1).name(), "srtp_other_lane") << "it has come by another lane";
    EXPECT_EQ(trial.one(sealed[0], 0).name(), "srtp_replayed");
    EXPECT_EQ(trial.one(sealed[1], 0).name(), "passes");
  }
}

TEST_P(SrtpOn, ForgedFramesAndTheFirstAuthenticOnesInOneBatch) {
  SrtpTrial protects(stream_text("protect")), trial(stream_text("unprotect"), 2);
  const auto sealed = protects.run({udp_frame(rtp(7, 30)).build(), udp_frame(rtp(8, 30)).build()});
  const Bytes forged = udp_frame(rtp(9, 40)).build();
  const std::string names[] = {"srtp_auth_failed", "passes", "srtp_auth_failed", "srtp_replayed", "passes"};
  const auto judged = trial.run({forged, sealed[0].frame, forged, sealed[0].frame, sealed[1].frame}, {.lane = 1});
  for (std::size_t i = 0; i < judged.size(); ++i) EXPECT_EQ(judged[i].name(), names[i]) << i;
  EXPECT_EQ(trial.one(protects.one(udp_frame(rtp(10, 30)).build()).frame, 0).name(), "srtp_other_lane");
}

// Both lanes have begun before either knows: the first whose frame is judged has the stream.
TEST_P(SrtpOn, TwoLanesWithAFirstFrameUnderWay) {
  SrtpTrial protects(stream_text("protect"));
  SrtpTrial first(stream_text("unprotect"), 2);
  SrtpTrial second(first);
  const Bytes sealed[] = {protects.one(udp_frame(rtp(1, 30)).build()).frame,
                          protects.one(udp_frame(rtp(2, 30)).build()).frame};
  first.begin({sealed[0]}, {.lane = 0});
  second.begin({sealed[1]}, {.lane = 1});
  EXPECT_EQ(second.end().front().name(), "passes");
  EXPECT_EQ(first.end().front().name(), "srtp_other_lane");
  EXPECT_EQ(first.one(sealed[0], 1).name(), "passes") << "its index is not used";
}

// What is clear nobody can authenticate; by which port it comes is known.
TEST_P(SrtpOn, AStreamWithAnIngressComesByThatPortAlone) {
  SrtpTrial trial(stream_text("protect", "ingress = \"lan\"\nrate = 1\nburst = 3028"), 3);
  for (std::uint16_t i = 0; i < 60; ++i) {
    ASSERT_EQ(trial.one(udp_frame(rtp(i, 30)).build(), 1).name(), "srtp_wrong_port") << "and takes nothing of its rate";
  }
  EXPECT_EQ(trial.one(udp_frame(rtp(1, 30)).build(), 0).name(), "passes");
  EXPECT_EQ(trial.one(udp_frame(rtp(2, 30)).build(), 2).name(), "srtp_wrong_port");
  EXPECT_EQ(trial.one(udp_frame(rtp(2, 30)).build(), 0).name(), "passes");

  SrtpTrial protects(stream_text("protect")), opens(stream_text("unprotect", "ingress = \"wan\""), 3);
  const Bytes sealed = protects.one(udp_frame(rtp(1, 30)).build()).frame;
  EXPECT_EQ(opens.one(sealed, 0).name(), "srtp_wrong_port");
  EXPECT_EQ(opens.one(sealed, 2).name(), "passes");
  EXPECT_EQ(opens.one(sealed, 1).name(), "srtp_other_lane");
}

TEST(Srtp, HasNoForwarders) {
  const auto stage = srtp_of(stream_text("protect"));
  const auto prepared = stage->prepare({.lanes = 1, .forwarders = true});
  ASSERT_FALSE(prepared);
  EXPECT_NE(prepared.error().message.find("forwarder_cores"), std::string::npos) << prepared.error().message;
}

// What is asked of the type before there is an element.
TEST(Srtp, ItsTypeSaysWhatTheElementDoes) {
  const engine::ElementType* const type = engine::find_element("srtp");
  ASSERT_NE(type, nullptr);
  EXPECT_TRUE(type->one_thread);
  EXPECT_EQ(type->divides, srtp_of(stream_text("protect"))->trait<engine::Divisible>() != nullptr);
  EXPECT_EQ(type->launches_alone, srtp_of(stream_text("protect"))->trait<engine::Grouping>() != nullptr);
}

// A lane derives these keys as they are needed: a stream of them is the lane's that brings any frame.
TEST(Srtp, AStreamWithADerivationRateIsTheFirstLanes) {
  const std::string rate = key30 + " KDR=1";
  SrtpTrial protects(stream_text("protect", "", rate)), trial(stream_text("unprotect", "", rate), 2);
  EXPECT_EQ(trial.one(udp_frame(rtp(9, 30)).build(), 1).name(), "srtp_auth_failed");
  const Bytes sealed = protects.one(udp_frame(rtp(9, 30)).build()).frame;
  EXPECT_EQ(trial.one(sealed, 0).name(), "srtp_other_lane");
  EXPECT_EQ(trial.one(sealed, 1).name(), "passes");
}

TEST(Srtp, WhatAnotherElementDropsLeavesNothingInFlight) {
  SrtpTrial protects(stream_text("protect")), unprotects(stream_text("unprotect"));
  std::vector<Bytes> sealed;
  for (std::uint16_t i = 0; i < 4; ++i) sealed.push_back(protects.one(udp_frame(rtp(i, 30)).build()).frame);
  ASSERT_EQ(unprotects.one(sealed[0]).name(), "passes");
  for (unsigned round = 0; round < srtp::max_in_flight + 10; ++round) unprotects.run({sealed[1]}, {.skipped = 0});
  EXPECT_EQ(unprotects.one(sealed[1]).name(), "passes") << "its index was not taken";
}

TEST(Srtp, WhatOnlyTheKernelCouldForward) {
  SrtpTrial trial(stream_text("protect"));
  SrtpTrial passing(stream_text("protect", "others = \"pass\""));
  const Bytes other = udp_frame(Bytes(30, 0)).build();
  EXPECT_EQ(passing.one(other).name(), "passes");
  for (const auto transit : {SrtpTrial::How::Transit::before, SrtpTrial::How::Transit::behind}) {
    const SrtpTrial::How how{.transit = transit};
    EXPECT_EQ(trial.one(udp_frame(rtp(1, 30)).build(), how).name(), "srtp_not_plain");
    EXPECT_EQ(trial.one(udp_frame(rtp(1, 30)).vlan(3).build(), how).name(), "srtp_not_plain");
    EXPECT_EQ(trial.one(udp_frame(rtp(1, 30), false, 1, 2).build(), how).name(), "passes");
  }
  EXPECT_EQ(passing.one(other, {.transit = SrtpTrial::How::Transit::before}).name(), "srtp_not_plain");
  EXPECT_EQ(passing.metric("srtp_passed_others"), 1U);
}

void reload(SrtpTrial& trial, const std::string& text, const std::string& answer) {
  const auto fresh = srtp_of(text);
  const auto change = trial.element().reload(*fresh);
  ASSERT_TRUE(change) << change.error().message;
  EXPECT_EQ(change->text, answer);
  change->commit();
}

TEST_P(SrtpOn, ReloadKeepsWhatStays) {
  const std::string second =
      "[[srtp.stream]]\naction = \"protect\"\nsource = \"10.0.0.1\"\nsource_port = 7\n"
      "destination = \"10.0.0.2\"\ndestination_port = 8\n"
      "crypto = \"1 AES_CM_128_HMAC_SHA1_80 inline:" +
      other_key30 + "\"\n";
  SrtpTrial trial(stream_text("protect"));
  const Bytes first_frame = udp_frame(rtp(9, 30)).build(), second_frame = udp_frame(rtp(9, 30), false, 7, 8).build();
  ASSERT_EQ(trial.one(first_frame).name(), "passes");
  EXPECT_EQ(trial.one(second_frame).frame, second_frame);

  reload(trial, stream_text("protect") + second, "2 SRTP streams are in force");
  EXPECT_EQ(trial.one(first_frame).name(), "srtp_replayed") << "its index is known still";
  EXPECT_NE(trial.one(second_frame).frame, second_frame);

  reload(trial, stream_text("protect", "", other_key30), "1 SRTP stream is in force");
  EXPECT_EQ(trial.one(first_frame).name(), "passes") << "another key";
  EXPECT_EQ(trial.one(second_frame).name(), "srtp_ended");
  EXPECT_EQ(trial.metric("srtp_streams"), 1U);
}

TEST_P(SrtpOn, ReloadThatHasNoCapacityChangesNothing) {
  SrtpTrial trial("[srtp]\nmax_keys = 2\n" + stream_text("protect"));
  const auto fresh = srtp_of("[srtp]\nmax_keys = 2\n" + stream_text("protect", "", other_key30));
  EXPECT_FALSE(trial.element().reload(*fresh)) << "both keys are there for a moment";
  const auto more = srtp_of("[srtp]\nmax_keys = 3\n" + stream_text("protect"));
  EXPECT_FALSE(trial.element().reload(*more));
  const Bytes sealed = trial.one(udp_frame(rtp(1, 30)).build()).frame;
  EXPECT_EQ(SrtpTrial(stream_text("unprotect")).one(sealed).name(), "passes");
}

// A bit a second: the burst alone passes. A frame of 30 bytes of payload is 84 bytes long.
TEST(Srtp, WhatExceedsTheStreamsRateIsDropped) {
  const std::string rate = "rate = 1\nburst = 3028";
  for (const std::string& text : {stream_text("protect", rate), stream_text("protect", "rate = 1")}) {
    SrtpTrial trial(text);
    std::vector<Bytes> frames;
    for (std::uint16_t i = 0; i < 60; ++i) frames.push_back(udp_frame(rtp(i, 30)).build());
    ASSERT_EQ(frames[0].size(), 84U);
    std::size_t passed = 0, policed = 0;
    for (const Judged& judged : trial.run(frames)) {
      passed += judged.name() == "passes" ? 1 : 0;
      policed += judged.name() == "srtp_policed" ? 1 : 0;
    }
    EXPECT_EQ(passed, 3028U / 84);
    EXPECT_EQ(policed, 60U - passed);
    EXPECT_EQ(trial.metric("srtp_protected_rtp"), passed);
    // It has used no index, and another 5-tuple's frames pass.
    EXPECT_EQ(trial.one(udp_frame(rtp(1, 30), false, 7, 8).build()).name(), "passes");
  }
}

TEST(Srtp, ReloadChangesTheRateAndNothingElse) {
  SrtpTrial trial(stream_text("protect", "rate = 1\nburst = 3028"));
  std::vector<Bytes> frames;
  for (std::uint16_t i = 0; i < 40; ++i) frames.push_back(udp_frame(rtp(i, 30)).build());
  EXPECT_EQ(trial.run(frames).back().name(), "srtp_policed");
  reload(trial, stream_text("protect", "rate = 1\nburst = 3028"), "1 SRTP stream is in force");
  EXPECT_EQ(trial.one(frames[39]).name(), "srtp_policed") << "the same rate: the bucket is as it was";
  // Worked out, and not in force.
  const auto fresh = srtp_of(stream_text("protect"));
  ASSERT_TRUE(trial.element().reload(*fresh));
  EXPECT_EQ(trial.one(frames[39]).name(), "srtp_policed");
  reload(trial, stream_text("protect"), "1 SRTP stream is in force");
  EXPECT_EQ(trial.one(frames[39]).name(), "passes");
  EXPECT_EQ(trial.one(frames[0]).name(), "srtp_replayed") << "its indexes are known";
  reload(trial, stream_text("protect", "rate = 1\nburst = 4000"), "1 SRTP stream is in force");
  frames.clear();
  for (std::uint16_t i = 40; i < 90; ++i) frames.push_back(udp_frame(rtp(i, 30)).build());
  EXPECT_EQ(trial.run(frames).back().name(), "srtp_policed");
}

// The table has capacity for the keys, but the GPU has not got them yet.
TEST(SrtpOnGpu, AStreamThatHasJustComeIsComputedByTheCore) {
  GpuForTest gpu;
  if (!gpu) GTEST_SKIP() << gpu.why;
  const std::string second = stream_text("protect", "", other_key30, "AES_CM_128_HMAC_SHA1_80", true);
  SrtpTrial trial(stream_text("protect")), opens(stream_text("unprotect") + [&] {
    std::string text = second;
    return text.replace(text.find("protect"), 7, "unprotect");
  }());
  ASSERT_EQ(trial.one(udp_frame(rtp(1, 30)).build()).name(), "passes");
  EXPECT_EQ(trial.metric("srtp_kept_from_device"), 0U);
  reload(trial, stream_text("protect") + second, "2 SRTP streams are in force");
  const auto both = [&](std::uint16_t sequence) {
    return std::vector<Bytes>{udp_frame(rtp(sequence, 30)).build(), udp_frame(rtp(sequence, 30), true).build(),
                              udp_frame(rtp(sequence + 1, 99), true).build(), udp_frame(rtp(sequence + 1, 7)).build()};
  };
  const auto are_right = [&](const std::vector<Judged>& sealed, const std::vector<Bytes>& clear) {
    for (std::size_t i = 0; i < clear.size(); ++i) {
      EXPECT_EQ(sealed[i].name(), "passes") << i;
      EXPECT_EQ(opens.one(sealed[i].frame).frame, clear[i]) << i;
    }
  };
  are_right(trial.run(both(10), {.new_cycle = false}), both(10));
  EXPECT_EQ(trial.metric("srtp_kept_from_device"), 2U) << "those of the new stream";
  trial.begin_cycle();
  are_right(trial.run(both(20)), both(20));
  EXPECT_EQ(trial.metric("srtp_kept_from_device"), 2U);
  EXPECT_EQ(trial.metric("srtp_protected_rtp"), 9U);
}

TEST(SrtpOnGpu, KeysDerivedOnTheWayAndShortBuffersAreTheCores) {
  GpuForTest gpu;
  if (!gpu) GTEST_SKIP() << gpu.why;
  const std::string rate = key30 + " KDR=1";  // anew for every second packet
  SrtpTrial protects(stream_text("protect", "", rate)), unprotects(stream_text("unprotect", "", rate));
  std::vector<Bytes> clear, between;
  for (std::uint16_t i = 0; i < 6; ++i) clear.push_back(udp_frame(rtp(i, 100)).build());
  for (const Judged& judged : protects.run(clear)) between.push_back(judged.frame);
  EXPECT_EQ(protects.metric("srtp_kept_from_device"), 6U);
  const std::vector<Judged> opened = unprotects.run(between);
  for (std::size_t i = 0; i < clear.size(); ++i) EXPECT_EQ(opened[i].frame, clear[i]) << opened[i].name();

  SrtpTrial trial(stream_text("protect")), opens(stream_text("unprotect"));
  const Judged sealed = trial.one(clear[0], {.headroom = 128});
  EXPECT_EQ(trial.metric("srtp_kept_from_device"), 1U);
  EXPECT_EQ(opens.one(sealed.frame).frame, clear[0]);
}

TEST_P(SrtpOn, WhatAFailingDeviceHadBegunIsDroppedAndTheRestGoesOn) {
  SrtpTrial protects(stream_text("protect")), unprotects(stream_text("unprotect"));
  std::vector<Bytes> sealed;
  for (std::uint16_t i = 0; i < 4; ++i) sealed.push_back(protects.one(udp_frame(rtp(i, 30)).build()).frame);
  ASSERT_EQ(unprotects.one(sealed[0]).name(), "passes");
  const Bytes other = udp_frame(rtp(1, 30), false, 7, 8).build();
  const std::vector<Judged> judged = unprotects.run({other, sealed[1], sealed[0], other, sealed[2]}, {.lost = true});
  const std::string names[] = {"passes", "device_lost", "srtp_replayed", "passes", "device_lost"};
  for (std::size_t i = 0; i < judged.size(); ++i) EXPECT_EQ(judged[i].name(), names[i]) << i;
  EXPECT_EQ(judged[0].frame, other);
  EXPECT_EQ(unprotects.one(sealed[2]).name(), "passes") << "its index was not taken";
  // No index of what is lost is used a second time.
  const Bytes clear = udp_frame(rtp(9, 30)).build();
  EXPECT_EQ(protects.one(clear, {.lost = true}).name(), "device_lost");
  EXPECT_EQ(protects.one(clear).name(), "srtp_replayed");
}

TEST(Srtp, WhatIsLostLeavesNothingInFlight) {
  SrtpTrial protects(stream_text("protect")), unprotects(stream_text("unprotect"));
  std::vector<Bytes> sealed;
  for (std::uint16_t i = 0; i < 2; ++i) sealed.push_back(protects.one(udp_frame(rtp(i, 30)).build()).frame);
  ASSERT_EQ(unprotects.one(sealed[0]).name(), "passes");
  for (unsigned round = 0; round < srtp::max_in_flight + 10; ++round) unprotects.run({sealed[1]}, {.lost = true});
  EXPECT_EQ(unprotects.one(sealed[1]).name(), "passes");
}

}  // namespace
}  // namespace sluice::function
