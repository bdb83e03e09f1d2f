// What a stream's row says of its packets: each is in it once, under what became of it.
#include "function/srtp/stream_rows.h"

#include "function/srtp/streams_trial_test.h"

namespace sluice::function {
namespace {

using Drops = std::array<std::uint64_t, stream_losses>;

MediaStreamRow row_to(SrtpTrial& trial, unsigned port) {
  std::size_t count = 0;
  const std::string end = ":" + std::to_string(port);
  for (MediaStreamRow& row : streams_of(trial).list(100, {}, count)) {
    if (row.name.ends_with(end)) return std::move(row);
  }
  ADD_FAILURE() << port;
  return {};
}

// auth_failed, replayed, too_old, policed, wrong_port, other_lane, ended, others
void expect_drops(const MediaStreamRow& row, const Drops& drops) {
  EXPECT_EQ(row.lost, drops) << row.name << " " << row.action;
}

Bytes rtcp_to(unsigned port) {
  return udp_frame(rtcp(), false, 5004, static_cast<std::uint16_t>(port)).build();
}

TEST(StreamRows, CountWhatLeavesByProtocolAndInBytesAsItLeaves) {
  SrtpTrial protects("[[srtp.stream]]\n" + text_of(7000));
  SrtpTrial opens("[[srtp.stream]]\n" + text_of(7000, "unprotect"));
  const MediaStreamRow none = row_to(protects, 7000);
  EXPECT_EQ(none.rtp.packets + none.rtcp.packets + none.ssrcs, 0U);
  EXPECT_FALSE(none.age);
  std::vector<Bytes> clear = {frame_to(7000, 1), frame_to(7000, 2, 40), rtcp_to(7000)};
  clear.push_back(udp_frame(rtp(9, 30, 5), false, 5004, 7000).build());
  std::vector<Bytes> sealed;
  for (const Judged& judged : protects.run(clear)) sealed.push_back(judged.frame);
  for (const auto& [trial, left] : {std::pair{&protects, &sealed}, std::pair{&opens, &clear}}) {
    if (trial == &opens) opens.run(sealed);
    const MediaStreamRow row = row_to(*trial, 7000);
    EXPECT_EQ(row.rtp.packets, 3U);
    EXPECT_EQ(row.rtp.bytes, (*left)[0].size() + (*left)[1].size() + (*left)[3].size());
    EXPECT_EQ(row.rtcp.packets, 1U);
    EXPECT_EQ(row.rtcp.bytes, (*left)[2].size());
    EXPECT_EQ(row.ssrcs, 2U);
    EXPECT_EQ(row.passed, 0U);
    ASSERT_TRUE(row.age);
    EXPECT_LT(*row.age, std::chrono::minutes(1));
    expect_drops(row, {});
  }
}

TEST(StreamRows, CountDropsByName) {
  SrtpTrial protects("[[srtp.stream]]\n" + text_of(7000));
  SrtpTrial trial("[[srtp.stream]]\n" + text_of(7000, "unprotect"), 2);
  const auto sealed = [&](std::uint16_t sequence) { return protects.one(frame_to(7000, sequence)).frame; };
  const Bytes early = sealed(1), first = sealed(1000), late = sealed(1001);
  const std::pair<Bytes, std::string> cases[] = {
      {frame_to(7000, 5), "srtp_auth_failed"},
      {first, "passes"},
      {first, "srtp_replayed"},
      {early, "srtp_too_old"},
      {udp_frame(rtp(1002, 40, 0x99), false, 5004, 7000).build(), "srtp_auth_failed"},
      {udp_frame({0, 1, 0, 0}, false, 5004, 7000).build(), "srtp_not_media"},
      {udp_frame(rtp(1, 20), false, 5004, 7000).udp_length(30).build(), "srtp_malformed"},
      {udp_frame(rtp(1, 20), false, 5004, 7000).vlan(7).build(), "srtp_not_plain"},
      {udp_frame(rtp(1, 20), false, 5004, 7000).fragment(800, false).build(), "srtp_not_plain"},
  };
  for (const auto& [frame, name] : cases) EXPECT_EQ(trial.one(frame).name(), name);
  EXPECT_EQ(trial.one(late, 1).name(), "srtp_other_lane");
  const MediaStreamRow row = row_to(trial, 7000);
  EXPECT_EQ(row.rtp.packets, 1U);
  EXPECT_EQ(row.ssrcs, 1U) << "none of what was forged";
  expect_drops(row, {2, 1, 1, 0, 0, 1, 0, 3});  // of a later fragment nobody knows whose it is
}

TEST(StreamRows, CountWhatWasPolicedWhatCameByAnotherPortAndWhatHasEnded) {
  SrtpTrial trial("[[srtp.stream]]\n" + text_of(7000) + "rate = 1\nburst = 3028\n[[srtp.stream]]\n" + text_of(7001) +
                      "ingress = \"wan\"\nothers = \"pass\"\n",
                  2);
  std::uint64_t policed = 0;
  for (std::uint16_t i = 0; i < 60; ++i) policed += trial.one(frame_to(7000, i)).name() == "srtp_policed" ? 1 : 0;
  EXPECT_GT(policed, 10U);
  expect_drops(row_to(trial, 7000), {0, 0, 0, policed, 0, 0, 0, 0});
  EXPECT_EQ(row_to(trial, 7000).rtp.packets, 60 - policed);

  EXPECT_EQ(trial.one(frame_to(7001, 1), 0).name(), "srtp_wrong_port");
  EXPECT_TRUE(row_to(trial, 7001).age) << "something came, though not by its port";
  EXPECT_EQ(trial.one(udp_frame({0, 1, 0, 0}, false, 5004, 7001).build(), 1).name(), "passes");
  expect_drops(row_to(trial, 7001), {0, 0, 0, 0, 1, 0, 0, 0});
  EXPECT_EQ(row_to(trial, 7001).passed, 1U);

  trial.element().reload(*srtp_of(""))->commit();
  EXPECT_EQ(trial.one(frame_to(7001, 1)).name(), "srtp_ended");
  expect_drops(row_to(trial, 7001), {0, 0, 0, 0, 0, 0, 1, 0});
}

// Who fails to do it drops them.
TEST(StreamRows, CountWhatALostDeviceHad) {
  SrtpTrial trial("[[srtp.stream]]\n" + text_of(7000));
  EXPECT_EQ(trial.one(frame_to(7000, 1), {.lost = true}).name(), "device_lost");
  expect_drops(row_to(trial, 7000), {0, 0, 0, 0, 0, 0, 0, 1});
}

TEST(StreamRows, ClearRtcpHasPassed) {
  SrtpTrial trial("");
  auto passes = settings_of(7001, Keyless::passes_rtcp);
  passes[0].carries = Carries::rtcp;
  ASSERT_TRUE(streams_of(trial).add(passes));
  EXPECT_EQ(trial.one(rtcp_to(7001)).name(), "passes");
  const MediaStreamRow row = row_to(trial, 7001);
  EXPECT_EQ(row.passed, 1U);
  EXPECT_EQ(row.rtcp.packets, 0U);
  EXPECT_TRUE(row.age);
}

TEST(StreamRows, AreFoundByAnAddressAtEitherEnd) {
  SrtpTrial trial(stream_text("protect") + stream_text("protect", "", key30, "AES_CM_128_HMAC_SHA1_80", true));
  auto explicit_ones = settings_of(7000);
  explicit_ones[0].leaves = media_key(packet::IpAddress::v4(0x0a000009), 1, packet::IpAddress::v4(0x0a000008), 2);
  ASSERT_TRUE(streams_of(trial).add(explicit_ones));
  const std::pair<const char*, std::size_t> cases[] = {{"10.0.0.1", 2},    {"10.0.0.2", 2},    {"10.0.0.8", 1},
                                                       {"10.0.0.9", 1},    {"10.0.0.3", 0},    {"2001:db8::1", 1},
                                                       {"2001:db8::2", 1}, {"2001:db8::3", 0}, {"a00:1::", 0}};
  for (const auto& [address, expected] : cases) {
    std::size_t count = 9;
    EXPECT_EQ(streams_of(trial).list(1, *packet::IpAddress::parse(address), count).size(),
              std::min<std::size_t>(expected, 1));
    EXPECT_EQ(count, expected) << address;
  }
  std::size_t count = 0;
  EXPECT_EQ(streams_of(trial).list(2, {}, count).size(), 2U);
  EXPECT_EQ(count, 3U);
}

}  // namespace
}  // namespace sluice::function
