#include <gmock/gmock.h>

#include "ipsec/xfrm/requests_trial_test.h"

namespace sluice::ipsec::xfrm {
namespace {

using testing::SizeIs;

class XfrmPolicies : public XfrmRequests {
 protected:
  int add(unsigned direction, std::uint32_t priority = 1000, std::uint16_t type = XFRM_MSG_NEWPOLICY) {
    return error(Bytes::of(net_policy(direction, priority)).attribute(XFRMA_TMPL, esp_template()), type);
  }
  int remove(unsigned direction) { return error(Bytes::of(policy_id(direction)), XFRM_MSG_DELPOLICY); }
  std::optional<Policy> in_database(Direction direction) {
    const auto selector = read_selector(net_selector(), 4);
    return database_.policy(direction, *selector);
  }
  xfrm_userpolicy_info shown(unsigned direction) {
    return at<xfrm_userpolicy_info>(answer(Bytes::of(policy_id(direction)), XFRM_MSG_GETPOLICY).bytes());
  }
};

TEST_F(XfrmPolicies, ErrorsAreLinuxs) {
  EXPECT_EQ(add(XFRM_POLICY_OUT), 0);
  EXPECT_EQ(add(XFRM_POLICY_OUT), EEXIST);
  EXPECT_EQ(add(XFRM_POLICY_OUT, 1), EEXIST);  // of another priority, too
  EXPECT_EQ(add(XFRM_POLICY_OUT, 1, XFRM_MSG_UPDPOLICY), 0);
  EXPECT_EQ(in_database(Direction::out)->priority, 1U);
  EXPECT_EQ(remove(XFRM_POLICY_OUT), 0);
  EXPECT_EQ(remove(XFRM_POLICY_OUT), ENOENT);
  EXPECT_EQ(error(Bytes::of(policy_id(XFRM_POLICY_OUT)), XFRM_MSG_GETPOLICY, NLM_F_REQUEST), ENOENT);
  EXPECT_EQ(add(XFRM_POLICY_OUT, 1, XFRM_MSG_UPDPOLICY), 0);  // makes one that is not there
  EXPECT_TRUE(in_database(Direction::out));
  EXPECT_TRUE(log_.empty());
}

// As charon installs a tunnel's, in this order, and takes them back in another.
TEST_F(XfrmPolicies, ForwardIsKeptWithIn) {
  EXPECT_EQ(add(XFRM_POLICY_IN), 0);
  EXPECT_EQ(add(XFRM_POLICY_FWD), 0);
  EXPECT_EQ(add(XFRM_POLICY_OUT), 0);
  EXPECT_EQ(database_.policy_count(), 2U);
  EXPECT_EQ(shown(XFRM_POLICY_FWD).dir, XFRM_POLICY_FWD);
  EXPECT_EQ(remove(XFRM_POLICY_OUT), 0);
  EXPECT_EQ(remove(XFRM_POLICY_IN), 0);
  EXPECT_TRUE(in_database(Direction::in));  // what forward asks for
  EXPECT_EQ(remove(XFRM_POLICY_FWD), 0);
  EXPECT_EQ(database_.policy_count(), 0U);
}

TEST_F(XfrmPolicies, ForwardAloneIsInbound) {
  EXPECT_EQ(add(XFRM_POLICY_FWD, 7), 0);
  EXPECT_EQ(in_database(Direction::in)->priority, 7U);
  EXPECT_EQ(add(XFRM_POLICY_IN, 8), 0);  // takes its place
  EXPECT_EQ(in_database(Direction::in)->priority, 8U);
  EXPECT_EQ(add(XFRM_POLICY_FWD, 9, XFRM_MSG_UPDPOLICY), 0);
  EXPECT_EQ(in_database(Direction::in)->priority, 8U);
  EXPECT_EQ(remove(XFRM_POLICY_IN), 0);
  EXPECT_EQ(in_database(Direction::in)->priority, 9U);
}

TEST_F(XfrmPolicies, OfTheConfigurationStay) {
  Policy configured = read_policy(Bytes::of(net_policy(XFRM_POLICY_OUT, 3)).body())->policy;
  configured.name = "site";
  ASSERT_TRUE(database_.add(configured, false));
  EXPECT_EQ(add(XFRM_POLICY_OUT), EEXIST);
  EXPECT_EQ(add(XFRM_POLICY_OUT, 1, XFRM_MSG_UPDPOLICY), EEXIST);
  EXPECT_EQ(remove(XFRM_POLICY_OUT), ENOENT);
  EXPECT_EQ(error(Bytes(), XFRM_MSG_FLUSHPOLICY), 0);
  EXPECT_EQ(in_database(Direction::out)->priority, 3U);
  EXPECT_EQ(dumped(Bytes(), XFRM_MSG_GETPOLICY), 1U);
}

TEST_F(XfrmPolicies, NumbersNameThem) {
  EXPECT_EQ(add(XFRM_POLICY_OUT), 0);
  EXPECT_EQ(add(XFRM_POLICY_FWD), 0);
  const std::uint32_t index = shown(XFRM_POLICY_OUT).index;
  EXPECT_NE(index, 0U);
  EXPECT_EQ(index % 8, static_cast<unsigned>(XFRM_POLICY_OUT));
  xfrm_userpolicy_id id{};
  id.index = index;
  id.dir = XFRM_POLICY_FWD;
  EXPECT_EQ(error(Bytes::of(id), XFRM_MSG_DELPOLICY), ENOENT);  // of the other direction
  id.dir = XFRM_POLICY_OUT;
  EXPECT_EQ(error(Bytes::of(id), XFRM_MSG_DELPOLICY), 0);
  EXPECT_FALSE(in_database(Direction::out));
}

// charon asks a policy when the last packet was, to know whether a peer is alive.
TEST_F(XfrmPolicies, AreUsedWhenTheirSasAre) {
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  EXPECT_EQ(error(whole_tunnel(tunnel(0x1001, "192.0.2.1", "192.0.2.2")), XFRM_MSG_NEWSA), 0);
  EXPECT_EQ(add(XFRM_POLICY_IN), 0);
  EXPECT_EQ(add(XFRM_POLICY_OUT), 0);
  EXPECT_EQ(shown(XFRM_POLICY_IN).curlft.use_time, 0U);
  SaCounters counters;
  counters.last_used_at = 1234;
  database_.set_counters(id(), counters);
  EXPECT_EQ(shown(XFRM_POLICY_IN).curlft.use_time, 1234U);
  EXPECT_EQ(shown(XFRM_POLICY_IN).curlft.add_time, 1000U);
  EXPECT_EQ(shown(XFRM_POLICY_OUT).curlft.use_time, 0U);
  EXPECT_EQ(error(Bytes::of(id_of(tunnel())), XFRM_MSG_DELSA), 0);
  EXPECT_EQ(shown(XFRM_POLICY_IN).curlft.use_time, 0U);
}

TEST_F(XfrmPolicies, FlushAndDump) {
  for (const unsigned direction : {XFRM_POLICY_IN, XFRM_POLICY_OUT, XFRM_POLICY_FWD}) EXPECT_EQ(add(direction), 0);
  EXPECT_EQ(dumped(Bytes(), XFRM_MSG_GETPOLICY), 3U);
  EXPECT_EQ(error(Bytes(), XFRM_MSG_FLUSHPOLICY), 0);
  EXPECT_EQ(dumped(Bytes(), XFRM_MSG_GETPOLICY), 0U);
  EXPECT_EQ(database_.policy_count(), 0U);
  EXPECT_EQ(add(XFRM_POLICY_IN), 0);
}

// charon sets the sizes of hash tables that are others than it wants.
TEST_F(XfrmPolicies, CountsOfTheSpd) {
  EXPECT_EQ(add(XFRM_POLICY_IN), 0);
  EXPECT_EQ(add(XFRM_POLICY_FWD), 0);
  const Message message = answer(Bytes::of(std::uint32_t{0}), XFRM_MSG_GETSPDINFO);
  EXPECT_EQ(message.type(), XFRM_MSG_NEWSPDINFO);
  const NetlinkBytes attributes = attributes_of(message.bytes(), 4);
  xfrmu_spdinfo info{};
  load_front(find_netlink_attribute(attributes, XFRMA_SPD_INFO), info);
  EXPECT_EQ(info.incnt, 1U);
  EXPECT_EQ(info.fwdcnt, 1U);
  EXPECT_EQ(info.outcnt, 0U);
  EXPECT_THAT(find_netlink_attribute(attributes, XFRMA_SPD_IPV4_HTHRESH), SizeIs(sizeof(xfrmu_spdhthresh)));
  EXPECT_THAT(find_netlink_attribute(attributes, XFRMA_SPD_IPV6_HTHRESH), SizeIs(sizeof(xfrmu_spdhthresh)));
  EXPECT_EQ(error(Bytes::of(std::uint32_t{0}), XFRM_MSG_NEWSPDINFO), 0);
}

TEST_F(XfrmPolicies, AreExpiredByADaemon) {
  EXPECT_EQ(add(XFRM_POLICY_OUT), 0);
  xfrm_user_polexpire expire{};
  expire.pol = net_policy(XFRM_POLICY_OUT);
  Answer answer = ask(Bytes::of(expire), XFRM_MSG_POLEXPIRE);
  ASSERT_EQ(answer.told.size(), 1U);
  EXPECT_EQ(answer.told[0].groups, static_cast<unsigned>(XFRMGRP_EXPIRE));
  EXPECT_TRUE(in_database(Direction::out));
  expire.hard = 1;
  EXPECT_EQ(error(Bytes::of(expire), XFRM_MSG_POLEXPIRE), 0);
  EXPECT_FALSE(in_database(Direction::out));
  EXPECT_EQ(error(Bytes::of(expire), XFRM_MSG_POLEXPIRE), ENOENT);
}

}  // namespace
}  // namespace sluice::ipsec::xfrm
