// What rules ask for besides the 5-tuple: ports that frames come in and leave by, named sets, and what becomes of
// frames that are rejected; on the CPU and on the GPU's code.
#include <gtest/gtest.h>

#include <algorithm>

#include "function/acl/acl_trial_test.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

class AclWide : public testing::TestWithParam<const char*> {
 protected:
  AclTrial trial_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, AclWide, testing::Values("cpu", "cuda:0"));

const engine::PortTable ports({{.name = "in", .mac = {}, .peer = 1}, {.name = "out", .mac = {}, .peer = 0}});

std::unique_ptr<engine::Stage> wide_acl(const std::string& text) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "a.toml", diagnostics);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  Settings section = file->section("acl");
  auto stage = engine::find_function("acl")->make_stage(section, ports);
  section.finish();
  EXPECT_EQ(diagnostics.lines, std::vector<std::string>());
  return std::move(*stage);
}

std::vector<std::uint64_t> frames_of(const Outcome& outcome) {
  std::vector<std::uint64_t> all;
  for (const engine::CountedRule& rule : outcome.counted.rules) all.push_back(rule.frames);
  return all;
}

Bytes to_port(std::uint16_t port, const char* from = "192.0.2.1") {
  return PacketBuilder().ipv4(from, "192.0.2.200").udp(7, port).payload(20).build();
}

// Frames come in by "in" and leave by "out".
TEST_P(AclWide, PortsThatFramesComeInAndLeaveBy) {
  const Outcome outcome =
      trial_.run({to_port(1), to_port(2), to_port(3), to_port(4), to_port(5), to_port(6)}, wide_acl(R"(
[[acl.rule]]
ingress = "out"
action = "deny"
[[acl.rule]]
egress = "in"
action = "deny"
[[acl.rule]]
destination_port = 1
ingress = "in"
action = "deny"
[[acl.rule]]
destination_port = 2
egress = "out"
action = "deny"
[[acl.rule]]
destination_port = 3
egress = "!out"
action = "deny"
[[acl.rule]]
destination_port = [3, 4]
ingress = "!out"
egress = ["in", "out"]
action = "deny"
[[acl.rule]]
name = "five"
destination_port = 5
action = "deny"
)"));
  EXPECT_EQ(frames_of(outcome), (std::vector<std::uint64_t>{0, 0, 1, 1, 0, 2, 1}));
  EXPECT_EQ(outcome.sent, std::vector<Bytes>{to_port(6)});
  EXPECT_EQ(outcome.counted.rules[6].name, "five");
  EXPECT_EQ(outcome.counted.count, 7U);
}

TEST_P(AclWide, Sets) {
  const auto v6 = [](const char* from) { return PacketBuilder().ipv6(from, "2001:db8::99").tcp(9, 443).build(); };
  const Outcome outcome =
      trial_.run({to_port(1, "192.0.2.1"), to_port(1, "192.0.2.7"), to_port(80, "192.0.2.200"),
                  to_port(81, "192.0.2.9"), to_port(9000, "192.0.2.8"), v6("2001:db8:1::5"), v6("2001:db8:2::5")},
                 wide_acl(R"(
[[acl.set]]
name = "bad"
entries = ["192.0.2.1", "192.0.2.6-192.0.2.7", "2001:db8:1::/48"]
[[acl.set]]
name = "web"
type = "ports"
entries = [80, "9000-9010"]
[[acl.rule]]
source = "@bad"
action = "deny"
[[acl.rule]]
destination_port = "@web"
source = "!@bad"
action = "deny"
[[acl.rule]]
destination = "@bad"
action = "deny"
)"));
  EXPECT_EQ(frames_of(outcome), (std::vector<std::uint64_t>{3, 2, 0}));
  EXPECT_EQ(outcome.sent, (std::vector<Bytes>{to_port(81, "192.0.2.9"), v6("2001:db8:2::5")}));
}

TEST_P(AclWide, RejectedFramesAreAnsweredOnTheWayTheyCame) {
  const Bytes tcp = PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").tcp(4000, 22).tcp_flags(0x02).build();
  const Bytes tcp6 = PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").tcp(4000, 22).tcp_flags(0x02).build();
  const Bytes udp_in_vlan = PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").vlan(7).udp(4000, 53).payload(10).build();
  const Bytes multicast = PacketBuilder().ipv4("192.0.2.1", "224.0.0.9").udp(4000, 53).build();
  const Outcome outcome = trial_.run({tcp, tcp6, udp_in_vlan, multicast}, wide_acl("[[acl.rule]]\naction = \"reject\"\n"
                                                                                   "destination_port = [22, 53]\n"));
  EXPECT_TRUE(outcome.sent.empty());
  EXPECT_EQ(outcome.stats.drops[acl_rejected] + outcome.stats.answers[acl_rejected], 4U);
  EXPECT_EQ(outcome.stats.answers[acl_rejected], 3U);
  ASSERT_EQ(outcome.back.size(), 3U);
  EXPECT_EQ(outcome.back[0][14 + 20 + 13], 0x14) << "RST and ACK";
  EXPECT_EQ(outcome.back[1][14 + 40 + 13], 0x14);
  const Bytes& error = outcome.back[2];
  EXPECT_EQ(error[12], 0x81) << "the tag stays";
  EXPECT_EQ(error[15], 7);
  EXPECT_EQ(error[16], 0x08);
  EXPECT_EQ(error[18 + 9], packet::protocol_icmp);
  EXPECT_EQ(error[18 + 20], 3);
  EXPECT_EQ(error[18 + 21], 13) << "communication administratively prohibited";
  EXPECT_TRUE(std::equal(error.begin(), error.begin() + 6, udp_in_vlan.begin() + 6)) << "to who sent it";
}

TEST_P(AclWide, OneBucketForAllThatARuleBecomes) {
  std::vector<Bytes> frames;
  for (int i = 0; i < 40; ++i) frames.push_back(to_port(static_cast<std::uint16_t>(1 + i % 2)));
  const Outcome outcome = trial_.run(frames, wide_acl(R"(
[[acl.rule]]
destination_port = [1, 2]
action = "police"
rate = 8
burst = 1600
log = true
)"));
  EXPECT_EQ(outcome.sent.size(), 1600 / frames[0].size()) << "not twice as many";
  EXPECT_EQ(frames_of(outcome), std::vector<std::uint64_t>{40});
  EXPECT_EQ(outcome.figures.at("acl_log_lines") + outcome.figures.at("acl_log_suppressed"), 40U);
  EXPECT_GE(outcome.figures.at("acl_log_suppressed"), 25U);
}

// Sets change while batches are under way.
TEST(AclSets, ChangeWithoutAReload) {
  auto stage = wide_acl(R"(
[[acl.set]]
name = "bad"
entries = ["192.0.2.1"]
[[acl.set]]
name = "spare"
type = "ports"
[[acl.rule]]
source = "@bad"
action = "deny"
)");
  ASSERT_TRUE(stage->prepare({}));
  engine::NamedSets& sets = *stage->named_sets();
  const auto denied = [&](const char* from) {
    Bytes frame = to_port(1, from);
    return stage->judge_transit(0, frame.data(), static_cast<std::uint32_t>(frame.size()), 0) == acl_denied;
  };
  EXPECT_TRUE(denied("192.0.2.1"));
  EXPECT_FALSE(denied("192.0.2.2"));
  EXPECT_EQ(*sets.add_to_set("bad", {"192.0.2.2", "192.0.2.1", "2001:db8::/32"}),
            "2 entries added to bad, which has 3 now; 1 was there already");
  EXPECT_TRUE(denied("192.0.2.2"));
  EXPECT_EQ(*sets.remove_from_set("bad", {"192.0.2.1"}), "1 entry removed from bad, which has 2 now");
  EXPECT_FALSE(denied("192.0.2.1"));
  const auto wrong = sets.add_to_set("bad", {"192.0.2.9", "nobody"});
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with("\"nobody\": ")) << wrong.error().message;
  EXPECT_FALSE(denied("192.0.2.9")) << "all or nothing";
  EXPECT_EQ(sets.add_to_set("bed", {"192.0.2.9"}).error().message, "there is no set \"bed\"; did you mean \"bad\"?");
  const auto list = sets.list_sets("", 1);
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ((*list)[0].count, 2U);
  EXPECT_EQ((*list)[0].uses, 1U);
  EXPECT_TRUE((*list)[0].changed);
  EXPECT_EQ((*list)[0].entries, std::vector<std::string>{"192.0.2.2"});
  EXPECT_FALSE((*list)[1].changed);

  // A reload leaves a set alone that is configured as before, and counts go on.
  const char* const same =
      "[[acl.set]]\nname = \"bad\"\nentries = [\"192.0.2.1\"]\n"
      "[[acl.rule]]\nsource = \"192.0.2.77\"\naction = \"deny\"\n"
      "[[acl.rule]]\ndestination = \"@bad\"\naction = \"deny\"\n"
      "[[acl.rule]]\nname = \"now-named\"\nsource = \"@bad\"\naction = \"deny\"\n";
  auto fresh = wide_acl(same);
  auto change = stage->reload(*fresh);
  ASSERT_TRUE(change) << change.error().message;
  EXPECT_EQ(change->text, "3 ACL rules are in force");
  change->commit();
  EXPECT_TRUE(denied("192.0.2.2"));
  EXPECT_FALSE(denied("192.0.2.1"));
  EXPECT_EQ(stage->counted_rules()->list(10).rules[2].frames, 3U);
  auto other = wide_acl(
      "[[acl.set]]\nname = \"bad\"\nentries = [\"192.0.2.1\", \"192.0.2.3\"]\n"
      "[[acl.rule]]\nsource = \"@bad\"\naction = \"deny\"\n");
  change = stage->reload(*other);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->text, "1 ACL rule is in force; what was changed by `ctl acl set` is gone of bad");
  change->commit();
  EXPECT_TRUE(denied("192.0.2.1"));
  EXPECT_FALSE(denied("192.0.2.2"));
}

// Keys that were made for a list before a reload, whose tags say something else: they are tagged for the list that
// judges them.
TEST(AclSets, KeysOfAnotherListAreTaggedAnew) {
  const auto list = [](const char* first, const char* second) {
    return std::string("[[acl.set]]\nname = \"a\"\nentries = [\"192.0.2.1\"]\n") +
           "[[acl.set]]\nname = \"b\"\nentries = [\"192.0.2.2\"]\n" + "[[acl.rule]]\nsource = \"@" + first +
           "\"\naction = \"permit\"\n[[acl.rule]]\nsource = \"@" + second + "\"\naction = \"deny\"\n";
  };
  auto stage = wide_acl(list("a", "b"));
  ASSERT_TRUE(stage->prepare({}));
  std::vector<Bytes> frames = {to_port(1, "192.0.2.1"), to_port(1, "192.0.2.2"), to_port(1, "192.0.2.3")};
  std::vector<std::uint64_t> address;
  std::vector<std::uint16_t> length;
  for (Bytes& frame : frames) {
    address.push_back(reinterpret_cast<std::uint64_t>(frame.data()));
    length.push_back(static_cast<std::uint16_t>(frame.size()));
  }
  engine::Batch batch;
  batch.frame = address.data();
  batch.length = length.data();
  batch.capacity = 64;
  const std::size_t bytes = (std::size_t{stage->bytes_per_frame()} * 64 + 63) / 64 * 64;
  const std::unique_ptr<std::byte, decltype(&std::free)> area(static_cast<std::byte*>(std::aligned_alloc(64, bytes)),
                                                              &std::free);
  const auto reload = [&](const std::string& text) {
    auto fresh = wide_acl(text);
    auto change = stage->reload(*fresh);
    ASSERT_TRUE(change);
    change->commit();
  };
  const auto judged = [&] {
    stage->compute(batch, area.get(), 0, batch.count);
    std::vector<bool> denied;
    for (std::uint32_t i = 0; i < batch.count; ++i)
      denied.push_back(stage->judge(batch, area.get(), i, 0) == acl_denied);
    stage->judged(batch, area.get());
    return denied;
  };
  batch.count = 3;
  stage->describe(batch, area.get(), 0);
  reload(list("b", "a"));
  EXPECT_EQ(judged(), (std::vector<bool>{true, false, false})) << "described before, judged after";
  batch.count = 1;
  stage->describe(batch, area.get(), 0);
  reload(list("a", "b"));
  batch.count = 3;
  stage->describe(batch, area.get(), 1);
  EXPECT_EQ(judged(), (std::vector<bool>{false, true, false})) << "described half before";
  batch.count = 3;
  stage->describe(batch, area.get(), 0);
  reload("[[acl.rule]]\nsource = \"192.0.2.3\"\naction = \"deny\"\n");
  EXPECT_EQ(judged(), (std::vector<bool>{false, false, true}));
  batch.count = 3;
  stage->describe(batch, area.get(), 0);
  reload(list("a", "b"));
  EXPECT_EQ(judged(), (std::vector<bool>{false, true, false})) << "described without tags";
}

}  // namespace
}  // namespace sluice::function
