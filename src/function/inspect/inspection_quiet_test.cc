// A frame that is known to be quiet is judged as any other with the same keys: none.
#include <gtest/gtest.h>

#include <random>

#include "function/inspect/inspection_trial_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;

// Rules without a pattern, or whose pattern has one byte: a device's keys do not lead to them.
constexpr const char* rules_text =
    "alert tcp any any -> any 80 (content:\"x\"; dsize:1; sid:1;)\n"
    "alert tcp any any -> any [21,25] (flags:A; dsize:>30; sid:2;)\n"
    "alert tcp any 6000:6010 -> any any (flags:SF; sid:3;)\n"
    "alert tcp any any <> any 139 (dsize:0; sid:4;)\n"
    "alert tcp any any -> any any (flags:F; sid:5;)\n"
    "alert udp any any -> any 53 (dsize:<5; sid:6;)\n"
    "alert udp any 67 -> any !68 (content:\"|00|\"; depth:1; sid:7;)\n"
    "alert udp any any -> any any (content:\"|01|\"; depth:1; dsize:2; sid:8;)\n"
    "alert ip any any -> any any (ip_proto:2; sid:9;)\n"
    "alert icmp any any -> any any (itype:8; sid:10;)\n"
    "alert tcp any any -> any 81 (content:\"long enough\"; sid:11;)\n";

class QuietFrames : public testing::Test, public AlertSink {
 protected:
  void SetUp() override {
    rules_ = test::rules_of(rules_text);
    ASSERT_NE(rules_, nullptr);
  }
  void alert(const Alert& alert) override { sids_.push_back(rules_->detector().rules().rules[alert.rule].sid); }
  std::unique_ptr<Inspection> make() {
    InspectionSettings settings = test::small_settings();
    settings.conversations.flows.capacity = 1 << 14;
    settings.conversations.flows.seed = 1;
    return std::make_unique<Inspection>(std::make_unique<InspectionSearch>(rules_), settings, *this);
  }

  std::shared_ptr<InspectionRules> rules_;
  std::vector<std::uint32_t> sids_;
};

Bytes random_frame(std::mt19937& random) {
  static constexpr std::uint16_t ports[] = {80, 21, 25, 6000, 6010, 6011, 139, 53, 67, 68, 1024, 0, 65535};
  static constexpr std::uint8_t flags[] = {
      packet::tcp_ack, packet::tcp_ack, packet::tcp_fin, packet::tcp_syn | packet::tcp_fin, packet::tcp_rst, 0xff};
  PacketBuilder builder;
  random() % 2 == 0 ? builder.ipv4("10.0.0.1", "10.0.0.2") : builder.ipv6("2001:db8::1", "2001:db8::2");
  const auto port = [&] { return ports[random() % std::size(ports)]; };
  switch (random() % 8) {
    case 0:
      builder.icmp(random() % 2 == 0 ? 8 : 0, 0);
      break;
    case 1:
    case 2:
    case 3:
      builder.udp(port(), port());
      break;
    default:
      builder.tcp(port(), port()).tcp_flags(flags[random() % std::size(flags)]);
  }
  static constexpr std::size_t sizes[] = {0, 1, 2, 5, 31, 40};
  Bytes payload(sizes[random() % std::size(sizes)], random() % 2 == 0 ? 'x' : static_cast<std::uint8_t>(random() % 3));
  return builder.payload(payload).build();
}

TEST_F(QuietFrames, are_judged_as_without_that_knowledge) {
  const auto known = make(), unknown = make();
  std::mt19937 random(3);
  unsigned quiet = 0, alerts = 0;
  for (unsigned round = 1; round <= 50'000; ++round) {
    const Bytes bytes = random_frame(random);
    const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    const FrameBrief brief = known->brief_of(frame);
    const match::PacketFacts facts = match::facts_of(frame);
    ASSERT_EQ(brief.payload, facts.payload);
    ASSERT_EQ(brief.klass, rules_->detector().classes().class_of(facts));
    quiet += brief.quiet ? 1 : 0;
    KeyHits hits{rules_->generation(), nullptr, 0};
    sids_.clear();
    unknown->frame(frame, round * 1000, hits);
    const std::vector<std::uint32_t> expected = std::exchange(sids_, {});
    hits.quiet = brief.quiet;
    known->frame(frame, round * 1000, hits);
    ASSERT_EQ(sids_, expected) << "in round " << round;
    alerts += static_cast<unsigned>(expected.size());
  }
  EXPECT_GT(quiet, 10'000U);
  EXPECT_GT(alerts, 1'000U);
  EXPECT_EQ(known->counters().frames, unknown->counters().frames);
  EXPECT_EQ(known->conversations().table().counters().made, unknown->conversations().table().counters().made);
  EXPECT_EQ(known->conversations().table().counters().bad_sequence,
            unknown->conversations().table().counters().bad_sequence);
  EXPECT_EQ(known->counters().searched, unknown->counters().searched);
}

// `quiet` says what rules say: others that come meanwhile look at the frame.
TEST_F(QuietFrames, are_none_by_other_rules) {
  const auto inspection = make();
  const Bytes bytes =
      PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(7, 7).payload(Bytes{'l', 'a', 't', 'e', 'r'}).build();
  const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const FrameBrief brief = inspection->brief_of(frame);
  ASSERT_TRUE(brief.quiet);
  const KeyHits hits{rules_->generation(), nullptr, 0, true};
  rules_ = test::rules_of("alert udp any any -> any 7 (content:\"later\"; sid:99;)\n");
  ASSERT_NE(rules_, nullptr);
  inspection->exchange(std::make_unique<InspectionSearch>(rules_));
  inspection->frame(frame, 1000, hits, brief.hash);
  EXPECT_EQ(sids_, std::vector<std::uint32_t>{99});
}

}  // namespace
}  // namespace sluice::function
