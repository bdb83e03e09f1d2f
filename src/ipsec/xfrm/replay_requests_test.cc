// An SA's numbers and counts, and its moves.
#include <gmock/gmock.h>

#include "ipsec/xfrm/requests_trial_test.h"

namespace sluice::ipsec::xfrm {
namespace {

const xfrm_usersa_info outbound = tunnel(0xc0000002, "192.0.2.1", "192.0.2.2");

class XfrmMoves : public XfrmRequests {
 protected:
  void SetUp() override {
    EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA), 0);
    EXPECT_EQ(error(whole_tunnel(outbound), XFRM_MSG_NEWSA), 0);
    SaCounters counters;
    counters.packets = counters.sequence = 500;
    counters.bytes = 50000;
    counters.added_at = 900;
    for (const SaId& one : {id(), id("192.0.2.2", 0xc0000002)}) database_.set_counters(one, counters);
  }
  // As charon does: the SA, its numbers, then it is deleted.
  void take_out(const xfrm_usersa_info& info) {
    EXPECT_EQ(answer(Bytes::of(id_of(info)), XFRM_MSG_GETSA).type(), XFRM_MSG_NEWSA);
    EXPECT_EQ(answer(aevent(info), XFRM_MSG_GETAE).type(), XFRM_MSG_NEWAE);
    EXPECT_EQ(error(Bytes::of(id_of(info)), XFRM_MSG_DELSA), 0);
  }
  static Bytes with_counts(const xfrm_usersa_info& info) {
    return whole_tunnel(info)
        .attribute(XFRMA_REPLAY_VAL, xfrm_replay_state{500, 500, ~0U})
        .attribute(XFRMA_LTIME_VAL, xfrm_lifetime_cur{50000, 500, 900, 901});
  }
  std::uint64_t sequence(const SaId& id) { return database_.sa(id)->counters.sequence; }
};

TEST_F(XfrmMoves, NumbersAreToldOfTheirDirection) {
  const Message in = answer(aevent(tunnel()), XFRM_MSG_GETAE);
  xfrm_replay_state state{};
  load_front(find_netlink_attribute(attributes_of(in.bytes(), sizeof(xfrm_aevent_id)), XFRMA_REPLAY_VAL), state);
  EXPECT_EQ(state.seq, 500U);
  EXPECT_EQ(state.oseq, 0U);
  EXPECT_EQ(state.bitmap, ~0U);
  const Message out = answer(aevent(outbound), XFRM_MSG_GETAE);
  load_front(find_netlink_attribute(attributes_of(out.bytes(), sizeof(xfrm_aevent_id)), XFRMA_REPLAY_VAL), state);
  EXPECT_EQ(state.seq, 0U);
  EXPECT_EQ(state.oseq, 500U);
  xfrm_lifetime_cur used{};
  load_front(find_netlink_attribute(attributes_of(out.bytes(), sizeof(xfrm_aevent_id)), XFRMA_LTIME_VAL), used);
  EXPECT_EQ(used.bytes, 50000U);
  EXPECT_EQ(used.add_time, 900U);
}

TEST_F(XfrmMoves, AnSaThatMovesIsInForceMeanwhile) {
  take_out(tunnel());
  EXPECT_TRUE(requests_.has_moves());
  EXPECT_TRUE(database_.sa(id()));
  // For the daemon it is gone.
  EXPECT_EQ(error(Bytes::of(id_of(tunnel())), XFRM_MSG_GETSA, NLM_F_REQUEST), ESRCH);
  EXPECT_EQ(error(Bytes::of(id_of(tunnel())), XFRM_MSG_DELSA), ESRCH);
  EXPECT_EQ(dumped(Bytes(), XFRM_MSG_GETSA), 1U);
}

TEST_F(XfrmMoves, WhatStaysUnderItsIdKeepsItsNumbers) {
  take_out(outbound);
  xfrm_usersa_info moved = outbound;
  moved.saddr = v4("198.51.100.1");
  EXPECT_EQ(error(with_counts(moved), XFRM_MSG_NEWSA), 0);
  EXPECT_FALSE(requests_.has_moves());
  const SaId same = id("192.0.2.2", 0xc0000002);
  EXPECT_EQ(database_.sa(same)->settings.source.str(), "198.51.100.1");
  EXPECT_EQ(sequence(same), 500U);
  const auto info = at<xfrm_usersa_info>(answer(Bytes::of(id_of(moved)), XFRM_MSG_GETSA).bytes());
  EXPECT_EQ(info.curlft.packets, 500U);  // not twice
}

// What the old one sends until it is gone has numbers, too.
TEST_F(XfrmMoves, WhatGetsAnotherIdLeapsOverNumbersThatMayBeInUse) {
  take_out(outbound);
  xfrm_usersa_info moved = outbound;
  moved.id.daddr = v4("198.51.100.2");
  EXPECT_EQ(error(with_counts(moved), XFRM_MSG_NEWSA), 0);
  EXPECT_FALSE(requests_.has_moves());
  EXPECT_FALSE(database_.sa(id("192.0.2.2", 0xc0000002)));
  const SaId other = id("198.51.100.2", 0xc0000002);
  ASSERT_TRUE(database_.sa(other));
  EXPECT_EQ(database_.sa(other)->settings.direction, Direction::out);
  EXPECT_EQ(sequence(other), 500U + (1U << 20));
  const auto info = at<xfrm_usersa_info>(answer(Bytes::of(id_of(moved)), XFRM_MSG_GETSA).bytes());
  EXPECT_EQ(info.curlft.packets, 500U);
  EXPECT_EQ(info.curlft.add_time, 900U);
}

TEST_F(XfrmMoves, AnInboundOneGoesOnFromTheHighestNumberReceived) {
  take_out(tunnel());
  xfrm_usersa_info moved = tunnel(0xc0000001, "192.0.2.2", "198.51.100.1");  // no address that is known to be local
  EXPECT_EQ(error(with_counts(moved), XFRM_MSG_NEWSA), 0);
  const SaId other = id("198.51.100.1");
  ASSERT_TRUE(database_.sa(other));
  EXPECT_EQ(database_.sa(other)->settings.direction, Direction::in);
  EXPECT_EQ(sequence(other), 500U);
}

TEST_F(XfrmMoves, NumbersThatWouldWrapEndTheSa) {
  SaCounters counters;
  counters.sequence = 0xfffffff0;
  database_.set_counters(id("192.0.2.2", 0xc0000002), counters);
  take_out(outbound);
  xfrm_usersa_info moved = outbound;
  moved.id.daddr = v4("198.51.100.2");
  EXPECT_EQ(error(with_counts(moved), XFRM_MSG_NEWSA), 0);
  EXPECT_EQ(sequence(id("198.51.100.2", 0xc0000002)), 0xffffffffU);
}

TEST_F(XfrmMoves, AMoveThatDoesNotComeIsADeletion) {
  take_out(tunnel());
  requests_.finish_moves(std::chrono::steady_clock::now());
  EXPECT_TRUE(database_.sa(id()));
  requests_.finish_moves(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  EXPECT_FALSE(database_.sa(id()));
  EXPECT_FALSE(requests_.has_moves());
}

TEST_F(XfrmMoves, AnotherKeyIsAnotherSa) {
  take_out(tunnel());
  const Bytes other = Bytes::of(tunnel()).algorithm(XFRMA_ALG_AEAD, "rfc4106(gcm(aes))", "ANOTHER-KEY-of-20byt", 128);
  EXPECT_EQ(error(other, XFRM_MSG_NEWSA), 0);
  EXPECT_FALSE(requests_.has_moves());
  EXPECT_EQ(sequence(id()), 0U);
}

TEST_F(XfrmMoves, WhoseNumbersWereNotAskedForIsDeletedAtOnce) {
  EXPECT_EQ(error(Bytes::of(id_of(tunnel())), XFRM_MSG_DELSA), 0);
  EXPECT_FALSE(database_.sa(id()));
  answer(aevent(outbound), XFRM_MSG_GETAE);
  answer(Bytes::of(id_of(outbound)), XFRM_MSG_GETSA);  // something between
  EXPECT_EQ(error(Bytes::of(id_of(outbound)), XFRM_MSG_DELSA), 0);
  EXPECT_FALSE(database_.sa(id("192.0.2.2", 0xc0000002)));
}

TEST_F(XfrmMoves, LimitsCountWhatWasUsedBefore) {
  xfrm_usersa_info info = tunnel(0x2000, "192.0.2.1", "192.0.2.2");
  info.lft.soft_byte_limit = 40000;
  info.lft.hard_byte_limit = 60000;
  info.lft.hard_packet_limit = XFRM_INF;
  info.lft.soft_add_expires_seconds = 50;
  info.lft.hard_add_expires_seconds = 300;
  EXPECT_EQ(error(with_counts(info), XFRM_MSG_NEWSA), 0);
  const Lifetime left = database_.sa(id("192.0.2.2", 0x2000))->settings.lifetime;
  EXPECT_EQ(left.bytes, (Limit{1, 10000}));  // the soft one is reached at once
  EXPECT_EQ(left.packets, (Limit{0, 0}));
  EXPECT_EQ(left.seconds, (Limit{1, 200}));  // of second 900 on, and it is 1000 now
  const auto answered = at<xfrm_usersa_info>(answer(Bytes::of(id_of(info)), XFRM_MSG_GETSA).bytes());
  EXPECT_EQ(answered.lft.hard_byte_limit, 60000U);
  EXPECT_EQ(answered.curlft.bytes, 50000U);
}

TEST_F(XfrmMoves, NumbersAreSetByNewae) {
  const auto set = [&](const Bytes& bytes, std::uint16_t more = NLM_F_REPLACE) {
    return error(bytes, XFRM_MSG_NEWAE, static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | more));
  };
  const xfrm_replay_state state{0, 700, 0};
  EXPECT_EQ(set(aevent(tunnel()).attribute(XFRMA_REPLAY_VAL, state)), 0);
  EXPECT_EQ(sequence(id()), 700U);
  EXPECT_EQ(set(aevent(tunnel()).attribute(XFRMA_REPLAY_VAL, state), 0), EINVAL);
  EXPECT_EQ(set(aevent(tunnel())), EINVAL);
  EXPECT_EQ(set(aevent(tunnel()).attribute(XFRMA_REPLAY_THRESH, std::uint32_t{1})), 0);
  EXPECT_EQ(set(aevent(tunnel(0x9999)).attribute(XFRMA_REPLAY_VAL, state)), ESRCH);
  // Never back.
  EXPECT_EQ(set(aevent(outbound).attribute(XFRMA_REPLAY_VAL, xfrm_replay_state{3, 0, 0})), 0);
  EXPECT_GT(sequence(id("192.0.2.2", 0xc0000002)), 500U);
}

// XFRM_MSG_MIGRATE, as libreswan and Mobile IPv6 move tunnels.
TEST_F(XfrmMoves, MigrateMovesPolicyAndSas) {
  EXPECT_EQ(error(Bytes::of(net_policy(XFRM_POLICY_OUT)).attribute(XFRMA_TMPL, esp_template()), XFRM_MSG_NEWPOLICY), 0);
  xfrm_user_migrate move{};
  move.old_saddr = v4("192.0.2.1");
  move.old_daddr = v4("192.0.2.2");
  move.new_saddr = v4("192.0.2.1");
  move.new_daddr = v4("198.51.100.2");
  move.proto = IPPROTO_ESP;
  move.mode = XFRM_MODE_TUNNEL;
  move.reqid = 5;
  move.old_family = move.new_family = AF_INET;
  const Bytes bytes = Bytes::of(policy_id(XFRM_POLICY_OUT)).attribute(XFRMA_MIGRATE, move);
  const Answer answer = ask(bytes, XFRM_MSG_MIGRATE);
  ASSERT_EQ(answer.messages.size(), 1U);
  EXPECT_EQ(at<nlmsgerr>(answer.messages[0].bytes()).error, 0);
  ASSERT_EQ(answer.told.size(), 1U);
  EXPECT_EQ(answer.told[0].message.type(), XFRM_MSG_MIGRATE);
  EXPECT_EQ(answer.told[0].groups, 1U << (XFRMNLGRP_MIGRATE - 1));
  const auto policies = database_.policies(9);
  EXPECT_EQ(policies.at(0).templates.at(0).destination.str(), "198.51.100.2");
  EXPECT_FALSE(database_.sa(id("192.0.2.2", 0xc0000002)));
  EXPECT_EQ(sequence(id("198.51.100.2", 0xc0000002)), 500U + (1U << 20));
  EXPECT_TRUE(database_.sa(id()));  // the other direction's is not of this move
  EXPECT_EQ(error(bytes, XFRM_MSG_MIGRATE), ENODATA);
  EXPECT_EQ(error(Bytes::of(policy_id(XFRM_POLICY_IN)).attribute(XFRMA_MIGRATE, move), XFRM_MSG_MIGRATE), ENOENT);
  EXPECT_EQ(error(Bytes::of(policy_id(XFRM_POLICY_OUT)), XFRM_MSG_MIGRATE), EINVAL);
}

}  // namespace
}  // namespace sluice::ipsec::xfrm
