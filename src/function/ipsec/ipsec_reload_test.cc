// What a reload makes of SAs and policies that are there.
#include <gmock/gmock.h>

#include "function/ipsec/ipsec_control_trial_test.h"

namespace sluice::function {
namespace {

using test::of_a_daemon;
using test::policy;
using test::sa;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* as_before = "SAs of the file: as before; policies of the file: as before";

class IpsecReload : public test::WithControl {
 protected:
  void SetUp() override {
    ASSERT_TRUE(control_->load(file_));
    receive(0x1001, 3, 7);
  }
  IpsecOptions file_{.sas = {sa("in", 0x1001), sa("out", 0x2002, "bb")},
                     .policies = {policy("in", "10.2.0.0/24"), policy("out", "10.2.0.0/24")}};
};

TEST_F(IpsecReload, LeavesWhatHasNotChanged) {
  EXPECT_EQ(reload(file_), as_before);
  const ipsec::SaStatus now = status(0x1001);
  EXPECT_EQ(now.counters.packets, 3U);
  EXPECT_EQ(now.counters.bytes, 300U);
  EXPECT_EQ(now.counters.sequence, 7U);
}

TEST_F(IpsecReload, AddsAndRemoves) {
  file_.sas[0] = sa("in", 0x1002);
  file_.policies[1] = policy("out", "10.3.0.0/24");
  file_.policies.push_back(policy("out", "10.4.0.0/24"));
  EXPECT_EQ(reload(file_), "SAs of the file: 1 added, 1 removed; policies of the file: 2 added, 1 removed");
  EXPECT_EQ(databases_.sa_count(), 2U);
  EXPECT_EQ(status(0x1002).state, ipsec::SaState::valid);
  EXPECT_EQ(databases_.policy_count(), 3U);
  EXPECT_EQ(reload(file_), as_before);
}

TEST_F(IpsecReload, ReplacesAnSaThatHasAnotherKey) {
  file_.sas[0] = sa("in", 0x1001, "cc");
  EXPECT_EQ(reload(file_), "SAs of the file: 1 changed; policies of the file: as before");
  EXPECT_EQ(status(0x1001).counters.packets, 0U);
  EXPECT_EQ(status(0x1001).counters.sequence, 0U);
  EXPECT_EQ(reload(file_), as_before);
}

TEST_F(IpsecReload, ChangesInPlaceWhatKeepsItsKey) {
  file_.sas[0] = sa("in", 0x1001, "aa",
                    "name = \"a\"\nhard_packets = 1000\nudp_source_port = 4500\nudp_destination_port = 4500\n");
  EXPECT_EQ(reload(file_), "SAs of the file: 1 changed; policies of the file: as before");
  const ipsec::SaStatus now = status(0x1001);
  EXPECT_EQ(now.settings.name, "a");
  EXPECT_EQ(now.settings.lifetime.packets.hard, 1000U);
  EXPECT_TRUE(now.settings.udp);
  EXPECT_EQ(now.counters.packets, 3U);
  EXPECT_EQ(now.counters.sequence, 7U);
}

TEST_F(IpsecReload, RefusesToBeginNumbersAnewUnderAKey) {
  file_.sas[0] = sa("in", 0x1001, "aa", "replay_window = 128\n");
  file_.sas[1] = sa("out", 0x2003, "bb");
  file_.lines = {.file = "a.toml", .sas = {{.section = 7}}, .policies = {}};
  EXPECT_THAT(reload(file_), AllOf(HasSubstr("a.toml:7: [ipsec] the SA esp 0x00001001 to 192.0.2.1 keeps its key"),
                                   HasSubstr("give it a new key or SPI"), Not(HasSubstr("aaaa"))));
  EXPECT_EQ(status(0x1001).settings.replay_window, 64U);
  EXPECT_EQ(status(0x2002, "192.0.2.2").state, ipsec::SaState::valid) << "a refused reload changes nothing";
  ASSERT_TRUE(control_->remove(file_.sas[0].id));
  EXPECT_EQ(reload(file_), "SAs of the file: 2 added, 1 removed; policies of the file: as before");
  EXPECT_EQ(status(0x1001).settings.replay_window, 128U);
}

TEST_F(IpsecReload, RefusesToReviveAnSaThatHasEnded) {
  file_.sas[0] = sa("in", 0x1001, "aa", "hard_seconds = 1\n");
  EXPECT_THAT(reload(file_), HasSubstr("1 changed"));
  databases_.tick(std::chrono::steady_clock::now() + std::chrono::seconds(10));
  ASSERT_EQ(status(0x1001).state, ipsec::SaState::dead);
  EXPECT_EQ(reload(file_), as_before);
  file_.sas[0] = sa("in", 0x1001, "aa", "hard_seconds = 100\n");
  EXPECT_THAT(reload(file_), HasSubstr("has reached its hard limit and keeps its key"));
  file_.sas[0] = sa("in", 0x1001, "ab", "hard_seconds = 100\n");
  EXPECT_THAT(reload(file_), HasSubstr("1 changed"));
  EXPECT_EQ(status(0x1001).state, ipsec::SaState::valid);
}

TEST_F(IpsecReload, ReplacesAPolicyThatHasChanged) {
  file_.policies[1] = policy("out", "10.2.0.0/24", "priority = 5\n");
  EXPECT_EQ(reload(file_), "SAs of the file: as before; policies of the file: 1 changed");
  const ipsec::Policy& wanted = file_.policies[1];
  EXPECT_EQ(databases_.policy(wanted.direction, wanted.selector), wanted);
  EXPECT_EQ(databases_.policy_count(), 2U);
}

TEST_F(IpsecReload, BringsBackWhatWasRemoved) {
  ASSERT_TRUE(control_->remove(file_.sas[0].id));
  ASSERT_TRUE(control_->remove(PolicyId{file_.policies[0].direction, file_.policies[0].selector}));
  EXPECT_EQ(reload(file_), "SAs of the file: 1 added; policies of the file: 1 added");
  EXPECT_EQ(status(0x1001).counters.packets, 0U);
}

TEST_F(IpsecReload, LeavesWhatOthersHaveBrought) {
  ASSERT_TRUE(control_->add(sa("in", 0x1100)));
  ASSERT_TRUE(control_->add(policy("out", "10.5.0.0/24")));
  ASSERT_TRUE(databases_.add(of_a_daemon(sa("in", 0x1200))));
  ASSERT_TRUE(databases_.add(of_a_daemon(policy("out", "10.6.0.0/24")), false));
  EXPECT_EQ(reload({}), "SAs of the file: 2 removed; policies of the file: 2 removed");
  EXPECT_EQ(databases_.sa_count(), 2U);
  EXPECT_EQ(databases_.policy_count(), 2U);
  EXPECT_EQ(status(0x1100).state, ipsec::SaState::valid);
  EXPECT_EQ(status(0x1200).state, ipsec::SaState::valid);
}

TEST_F(IpsecReload, TakesOverWhatTheApiHasAsTheFileSays) {
  ASSERT_TRUE(control_->add(sa("in", 0x1100)));
  ASSERT_TRUE(control_->add(policy("out", "10.5.0.0/24")));
  receive(0x1100, 1, 2);
  file_.sas.push_back(sa("in", 0x1100));
  file_.policies.push_back(policy("out", "10.5.0.0/24"));
  EXPECT_EQ(reload(file_), as_before);
  EXPECT_EQ(status(0x1100).counters.packets, 1U);
  file_.sas.pop_back();
  file_.policies.pop_back();
  EXPECT_EQ(reload(file_), "SAs of the file: 1 removed; policies of the file: 1 removed");
}

TEST_F(IpsecReload, RefusesWhatOthersHaveOtherwise) {
  ASSERT_TRUE(control_->add(sa("in", 0x1100)));
  ASSERT_TRUE(databases_.add(of_a_daemon(sa("in", 0x1200))));
  ASSERT_TRUE(control_->add(policy("out", "10.5.0.0/24")));
  ASSERT_TRUE(databases_.add(of_a_daemon(policy("out", "10.6.0.0/24")), false));
  const auto with = [&](const ipsec::SaSettings& more) {
    IpsecOptions file = file_;
    file.sas.push_back(more);
    return reload(file);
  };
  const auto with_policy = [&](const ipsec::Policy& more) {
    IpsecOptions file = file_;
    file.policies.push_back(more);
    return reload(file);
  };
  EXPECT_THAT(with(sa("in", 0x1100, "dd")), HasSubstr("0x00001100 to 192.0.2.1 of the API, and it is another one"));
  EXPECT_THAT(with(sa("in", 0x1200)), HasSubstr("0x00001200 to 192.0.2.1 of an IKE daemon"));
  EXPECT_THAT(with_policy(policy("out", "10.5.0.0/24", "priority = 3\n")), HasSubstr("of the API, and it is another"));
  EXPECT_THAT(with_policy(policy("out", "10.6.0.0/24")), HasSubstr("of an IKE daemon"));
}

TEST_F(IpsecReload, HoldsToTheLimits) {
  for (unsigned spi = 0; spi < most - 2; ++spi) file_.sas.push_back(sa("in", 0x3000 + spi));
  for (unsigned n = 0; n < most - 2; ++n) {
    file_.policies.push_back(policy("out", "10." + std::to_string(100 + n) + ".0.0/24"));
  }
  ASSERT_TRUE(databases_.add(of_a_daemon(sa("in", 0x1200))));
  EXPECT_THAT(reload(file_), HasSubstr("there would be 11 SAs with those of the API and of IKE, more than max_sas"));
  file_.sas.pop_back();
  ASSERT_TRUE(databases_.add(of_a_daemon(policy("out", "10.6.0.0/24")), false));
  EXPECT_THAT(reload(file_), HasSubstr("there would be 11 policies"));
  file_.policies.pop_back();
  EXPECT_EQ(reload(file_), "SAs of the file: 7 added; policies of the file: 7 added");
  // A daemon may have more for a while: what does not add is not refused.
  for (unsigned spi = 0; spi < 4; ++spi) ASSERT_TRUE(databases_.add(of_a_daemon(sa("in", 0x4000 + spi))));
  EXPECT_EQ(reload(file_), as_before);
}

// All SPIs change at once, and there is no capacity for both.
TEST_F(IpsecReload, MakesRoomWhereThereIsNone) {
  for (unsigned spi = 0; spi < most - 2; ++spi) file_.sas.push_back(sa("in", 0x3000 + spi));
  EXPECT_THAT(reload(file_), HasSubstr("8 added"));
  for (ipsec::SaSettings& one : file_.sas) one.id.spi += 0x100;
  EXPECT_THAT(reload(file_), HasSubstr("10 added, 10 removed"));
  EXPECT_EQ(databases_.sa_count(), most);
  EXPECT_EQ(status(0x1101).state, ipsec::SaState::valid);
  EXPECT_EQ(reload(file_), as_before);
}

}  // namespace
}  // namespace sluice::function
