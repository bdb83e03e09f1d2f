// The element "srtp" in a chain on an engine: before a bridge, behind an acl, and with a GPU that fails.
#include <algorithm>

#include "engine/pipeline.h"
#include "function/acl/acl_trial_test.h"
#include "function/srtp/srtp_trial_test.h"

namespace sluice::function {
namespace {

// On an engine, with mbufs, a batch's pinned area, and a bridge.
class SrtpChain : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  static AclTrial::Maker behind_an_acl(const std::string& text,
                                       const std::string& rule = "source_port = \"9\"\naction = \"deny\"") {
    return [text, rule](const engine::PortTable&) {
      std::vector<std::unique_ptr<engine::Element>> elements;
      elements.push_back(std::make_unique<AwaitGpu>());
      elements.push_back(acl_of("[[acl.rule]]\nprotocol = \"udp\"\n" + rule + "\n"));
      elements.push_back(srtp_of(text));
      elements.push_back(std::make_unique<Bridge>(std::vector<std::uint16_t>{1, 0}));
      return std::make_unique<engine::Pipeline>(std::move(elements));
    };
  }
};

TEST_P(SrtpChain, BeforeABridge) {
  AclTrial trial(GetParam());
  const Bytes other = udp_frame(rtp(1, 30), false, 7, 8).build();
  std::vector<Bytes> clear;
  for (std::uint16_t i = 0; i < 200; ++i) clear.push_back(udp_frame(rtp(i, i * 7)).build());
  clear.push_back(other);
  clear.push_back(udp_frame(rtp(150, 30)).build());
  const Outcome out = trial.run(clear, srtp_of(stream_text("protect")));
  ASSERT_EQ(out.sent.size(), 201U);
  EXPECT_EQ(out.sent.back(), other);
  EXPECT_EQ(out.metrics.at("srtp_protected_rtp"), 200U);
  EXPECT_EQ(out.metrics.at("srtp_kept_from_device"), 0U);
  EXPECT_EQ(out.stats.drops[srtp_replayed], 1U);
  const Outcome back = trial.run(out.sent, srtp_of(stream_text("unprotect")));
  clear.pop_back();
  EXPECT_EQ(back.sent, clear);
}

// The acl's answer and the jobs are of one stream, and what the acl drops is nobody's packet.
TEST_P(SrtpChain, BehindAnAcl) {
  AclTrial trial(GetParam());
  std::vector<Bytes> frames;
  for (std::uint16_t i = 0; i < 100; ++i) {
    frames.push_back(udp_frame(rtp(i, 1000)).build());
    frames.push_back(udp_frame(rtp(i, 100), false, 9, 8).build());
    frames.push_back(PacketBuilder().ethertype(0x88b5).payload(Bytes(46)).build());
  }
  const Outcome out = trial.run(frames, behind_an_acl(stream_text("protect")));
  EXPECT_EQ(out.stats.drops[acl_denied], 100U);
  EXPECT_EQ(out.metrics.at("srtp_protected_rtp"), 100U);
  EXPECT_EQ(out.sent.size(), 200U + engine::burst_size);
  const Outcome back = trial.run(out.sent, srtp_of(stream_text("unprotect")));
  std::vector<Bytes> media;
  for (const Bytes& frame : back.sent) {
    if (frame.size() > 1000) media.push_back(frame);
  }
  ASSERT_EQ(media.size(), 100U);
  for (std::size_t i = 0; i < media.size(); ++i) EXPECT_EQ(media[i], frames[3 * i]) << i;
}

// It is in clear by the time that the acl answers.
TEST_P(SrtpChain, AnAclInFrontQuotesNothingOfWhatWasProtected) {
  AclTrial trial(GetParam());
  std::vector<Bytes> clear;
  for (std::uint16_t i = 0; i < 20; ++i) clear.push_back(udp_frame(rtp(i, 300)).build());
  const Outcome sealed = trial.run(clear, srtp_of(stream_text("protect")));
  ASSERT_EQ(sealed.sent.size(), clear.size());
  const Outcome out =
      trial.run(sealed.sent, behind_an_acl(stream_text("unprotect"), "source_port = \"5004\"\naction = \"reject\""));
  ASSERT_EQ(out.back.size(), clear.size());
  constexpr std::size_t payload = 14 + 20 + 8, ip_and_udp = 28;
  for (std::size_t i = 0; i < out.back.size(); ++i) {
    const Bytes& answer = out.back[i];
    ASSERT_EQ(answer.size(), payload + ip_and_udp) << "ICMP, and the headers that it quotes";
    EXPECT_TRUE(std::equal(answer.end() - 8, answer.end(), sealed.sent[i].begin() + payload - 8)) << "the UDP header";
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, SrtpChain, testing::Values("cpu", "cuda:0"),
                         [](const auto& info) { return info.param.substr(0, info.param.find(':')); });

// Of packets that no key opens, so that they are prepared each time they come: how many are dropped because the device
// had them when it failed.
std::uint64_t lost_in_the_middle() {
  std::vector<Bytes> frames;
  for (std::uint16_t i = 0; i < 50; ++i) {
    frames.push_back(udp_frame(rtp(i, 1000)).build());
    frames.push_back(udp_frame(rtp(i, 1000), false, 7, 8).build());
  }
  AclTrial trial("cuda:0");
  const auto engine = trial.start(frames, srtp_of(stream_text("unprotect")), true);
  if (!engine) return 0;
  const auto until = [&](const auto& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds(engine->stats()) && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_TRUE(holds(engine->stats()));
  };
  until([](const engine::EngineStats& stats) { return stats.total.frames_gpu > 1000; });
  engine->gpu()->lose("for a test");
  until([](const engine::EngineStats& stats) { return !stats.gpu_up; });
  const std::uint64_t then = engine->stats().drops[srtp_auth_failed];
  until([&](const engine::EngineStats& stats) { return stats.drops[srtp_auth_failed] > then + 1000; });
  engine->stop();
  const engine::EngineStats stats = engine->stats();
  EXPECT_EQ(stats.imbalance(), 0);
  EXPECT_GT(stats.total.frames_rescued, 0U);
  const std::uint64_t media =
      stats.drops[srtp_auth_failed] + stats.drops[engine::device_lost] + stats.drops[engine::stopped];
  EXPECT_GE(media + stats.total.tx_frames + 1, stats.total.rx_frames);
  EXPECT_GE(stats.total.tx_frames * 2 + 1000, stats.total.rx_frames) << "other frames are never lost";
  return stats.drops[engine::device_lost];
}

// Whether the device has a batch at that moment is chance.
TEST(SrtpOnGpu, FailsInTheMiddle) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  std::uint64_t lost = 0;
  for (int time = 0; time < 200 && lost == 0 && !HasFailure(); ++time) lost = lost_in_the_middle();
  EXPECT_GT(lost, 0U);
}

}  // namespace
}  // namespace sluice::function
