#include "ipsec/xfrm/policy_message.h"

#include <gtest/gtest.h>

#include "ipsec/security_association.h"
#include "ipsec/xfrm/bytes_trial_test.h"
#include "ipsec/xfrm/event_message.h"

namespace sluice::ipsec::xfrm {
namespace {

TEST(XfrmPolicyMessage, APolicyIsReadFieldByField) {
  xfrm_userpolicy_info info = net_policy(XFRM_POLICY_OUT, 375423);
  info.sel.proto = IPPROTO_TCP;
  info.sel.sport = htons(0x1234);
  info.sel.sport_mask = htons(0xff00);
  info.index = 9;
  const auto request = read_policy(Bytes::of(info).attribute(XFRMA_TMPL, esp_template(0xc0000002)).body());
  ASSERT_TRUE(request) << request.error().why;
  EXPECT_EQ(request->way, Way::out);
  EXPECT_EQ(request->index, 9U);
  const Policy& policy = request->policy;
  EXPECT_EQ(policy.direction, Direction::out);
  EXPECT_EQ(policy.selector.source.str(), "10.1.0.0/16");
  EXPECT_EQ(policy.selector.destination.str(), "10.2.0.0/16");
  EXPECT_EQ(policy.selector.protocol, IPPROTO_TCP);
  EXPECT_EQ(policy.selector.source_port, (PortMatch{0x1200, 0xff00}));
  EXPECT_EQ(policy.priority, 375423U);
  EXPECT_EQ(policy.action, Action::protect);
  ASSERT_EQ(policy.templates.size(), 1U);
  const Template& wanted = policy.templates[0];
  EXPECT_EQ(wanted.protocol, Protocol::esp);
  EXPECT_EQ(wanted.mode, Mode::tunnel);
  EXPECT_EQ(wanted.source.str(), "192.0.2.1");
  EXPECT_EQ(wanted.destination.str(), "192.0.2.2");
  EXPECT_EQ(wanted.reqid, 5U);
  EXPECT_EQ(wanted.spi, 0xc0000002U);
  EXPECT_FALSE(wanted.optional);
}

TEST(XfrmPolicyMessage, ActionsFollowFromTemplates) {
  xfrm_userpolicy_info info = net_policy(XFRM_POLICY_IN);
  EXPECT_EQ(read_policy(Bytes::of(info).body())->policy.action, Action::bypass);
  info.action = XFRM_POLICY_BLOCK;
  const auto blocked = read_policy(Bytes::of(info).attribute(XFRMA_TMPL, esp_template()).body());
  EXPECT_EQ(blocked->policy.action, Action::discard);
  EXPECT_TRUE(blocked->policy.templates.empty());
  info.action = 2;
  EXPECT_EQ(read_policy(Bytes::of(info).body()).error().error, EINVAL);
}

TEST(XfrmPolicyMessage, TransportHasNoAddresses) {
  xfrm_user_tmpl wanted = esp_template();
  wanted.saddr = wanted.id.daddr = {};
  wanted.mode = XFRM_MODE_TRANSPORT;
  wanted.family = 0;
  xfrm_user_tmpl both[2] = {wanted, wanted};
  both[1].id.proto = IPPROTO_AH;
  both[1].optional = 1;
  const auto request = read_policy(Bytes::of(net_policy(XFRM_POLICY_FWD)).attribute(XFRMA_TMPL, both).body());
  ASSERT_TRUE(request) << request.error().why;
  EXPECT_EQ(request->way, Way::forward);
  EXPECT_EQ(request->policy.direction, Direction::in);
  ASSERT_EQ(request->policy.templates.size(), 2U);
  EXPECT_TRUE(request->policy.templates[0].source.empty());
  EXPECT_EQ(request->policy.templates[1].protocol, Protocol::ah);
  EXPECT_TRUE(request->policy.templates[1].optional);
}

TEST(XfrmPolicyMessage, WhatTheGatewayWouldNotDoIsRefused) {
  const struct {
    const char* what;
    void (*change)(xfrm_userpolicy_info&);
    int error;
  } cases[] = {
      {"direction", [](xfrm_userpolicy_info& one) { one.dir = 3; }, EINVAL},
      {"family", [](xfrm_userpolicy_info& one) { one.sel.family = 0; }, EINVAL},
      {"prefix", [](xfrm_userpolicy_info& one) { one.sel.prefixlen_d = 33; }, EINVAL},
      {"interface", [](xfrm_userpolicy_info& one) { one.sel.ifindex = 1; }, EOPNOTSUPP},
      {"user", [](xfrm_userpolicy_info& one) { one.sel.user = 1; }, EOPNOTSUPP},
      {"seconds", [](xfrm_userpolicy_info& one) { one.lft.hard_add_expires_seconds = 1; }, EOPNOTSUPP},
      {"bytes", [](xfrm_userpolicy_info& one) { one.lft.hard_byte_limit = 1; }, EOPNOTSUPP},
      {"flags", [](xfrm_userpolicy_info& one) { one.flags = XFRM_POLICY_ICMP; }, EOPNOTSUPP},
  };
  for (const auto& one : cases) {
    xfrm_userpolicy_info info = net_policy(XFRM_POLICY_OUT);
    one.change(info);
    const auto request = read_policy(Bytes::of(info).body());
    ASSERT_FALSE(request) << one.what;
    EXPECT_EQ(request.error().error, one.error) << one.what;
  }
  const auto error_with = [](const Bytes& bytes) { return read_policy(bytes.body()).error().error; };
  const auto policy = [] { return Bytes::of(net_policy(XFRM_POLICY_OUT)); };
  EXPECT_EQ(error_with(policy().attribute(XFRMA_MARK, xfrm_mark{1, 1})), EOPNOTSUPP);
  EXPECT_EQ(error_with(policy().attribute(XFRMA_IF_ID, std::uint32_t{1})), EOPNOTSUPP);
  EXPECT_EQ(error_with(policy().attribute(XFRMA_POLICY_TYPE, xfrm_userpolicy_type{XFRM_POLICY_TYPE_SUB, 0, 0})),
            EINVAL);
  xfrm_user_tmpl wanted = esp_template();
  wanted.id.proto = IPPROTO_COMP;
  EXPECT_EQ(error_with(policy().attribute(XFRMA_TMPL, wanted)), EPROTONOSUPPORT);
  wanted = esp_template();
  wanted.mode = XFRM_MODE_BEET;
  EXPECT_EQ(error_with(policy().attribute(XFRMA_TMPL, wanted)), EOPNOTSUPP);
  const xfrm_user_tmpl many[7] = {};
  EXPECT_EQ(error_with(policy().attribute(XFRMA_TMPL, many)), EINVAL);
}

TEST(XfrmPolicyMessage, IsNamedByItsSelectorOrItsNumber) {
  const auto by_selector = read_policy_name(Bytes::of(policy_id(XFRM_POLICY_IN)).body());
  ASSERT_TRUE(by_selector);
  EXPECT_EQ(by_selector->way, Way::in);
  EXPECT_EQ(by_selector->selector.destination.str(), "10.2.0.0/16");
  xfrm_userpolicy_id number{};
  number.dir = XFRM_POLICY_OUT;
  number.index = 17;
  EXPECT_EQ(read_policy_name(Bytes::of(number).body())->index, 17U);
  number.index = 0;  // and no selector
  EXPECT_EQ(read_policy_name(Bytes::of(number).body()).error().error, EINVAL);
}

TEST(XfrmPolicyMessage, WhatIsWrittenIsReadAgain) {
  xfrm_userpolicy_info info = net_policy(XFRM_POLICY_OUT, 5);
  info.sel.dport = htons(53);
  info.sel.dport_mask = 0xffff;
  const auto before = read_policy(Bytes::of(info).attribute(XFRMA_TMPL, esp_template(300)).body());
  ASSERT_TRUE(before);
  Message message(XFRM_MSG_NEWPOLICY, 0, 0, 0);
  write_policy(message, before->policy, before->way, {17, 100, 200});
  const auto written = at<xfrm_userpolicy_info>(message.bytes());
  EXPECT_EQ(written.index, 17U);
  EXPECT_EQ(written.curlft.add_time, 100U);
  EXPECT_EQ(written.curlft.use_time, 200U);
  const auto after = read_policy(NetlinkBytes(message.bytes()).subspan(sizeof(nlmsghdr)));
  ASSERT_TRUE(after) << after.error().why;
  EXPECT_EQ(after->policy.selector, before->policy.selector);
  EXPECT_EQ(after->policy.templates, before->policy.templates);
  EXPECT_EQ(after->policy.priority, 5U);
}

TEST(XfrmPolicyMessage, BrokenMessagesAreRefused) {
  const Bytes bytes = Bytes::of(net_policy(XFRM_POLICY_OUT)).attribute(XFRMA_TMPL, esp_template());
  for (std::size_t length = 0; length < sizeof(xfrm_userpolicy_info); ++length) {
    const std::vector<std::byte> cut(bytes.body().begin(), bytes.body().begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(read_policy(cut));
  }
  Bytes cut_template = Bytes::of(net_policy(XFRM_POLICY_OUT));
  const xfrm_user_tmpl wanted = esp_template();
  EXPECT_EQ(read_policy(cut_template.attribute(XFRMA_TMPL, &wanted, sizeof wanted - 4).body()).error().error, EINVAL);
}

TEST(XfrmEventMessage, AcquireIsThePacketAndTheTemplate) {
  Acquire acquire{
      read_policy(Bytes::of(net_policy(XFRM_POLICY_OUT)).attribute(XFRMA_TMPL, esp_template()).body())->policy,
      {},
      {},
      33};
  acquire.wanted = acquire.policy.templates[0];
  acquire.packet.source = packet::IpAddress::parse("10.1.0.5").value();
  acquire.packet.destination = packet::IpAddress::parse("10.2.0.6").value();
  acquire.packet.protocol = IPPROTO_UDP;
  acquire.packet.has_ports = true;
  acquire.packet.source_port = 1024;
  acquire.packet.destination_port = 53;
  const Told told = acquire_message(acquire);
  EXPECT_EQ(told.groups, static_cast<unsigned>(XFRMGRP_ACQUIRE));
  EXPECT_EQ(told.message.type(), XFRM_MSG_ACQUIRE);
  const auto body = at<xfrm_user_acquire>(told.message.bytes());
  EXPECT_EQ(body.id.proto, IPPROTO_ESP);
  EXPECT_EQ(body.id.daddr.a4, v4("192.0.2.2").a4);
  EXPECT_EQ(body.saddr.a4, v4("192.0.2.1").a4);
  EXPECT_EQ(body.sel.saddr.a4, v4("10.1.0.5").a4);
  EXPECT_EQ(body.sel.prefixlen_d, 32);
  EXPECT_EQ(body.sel.family, AF_INET);
  EXPECT_EQ(body.sel.dport, htons(53));
  EXPECT_EQ(body.sel.sport_mask, 0xffff);
  EXPECT_EQ(body.policy.dir, XFRM_POLICY_OUT);
  EXPECT_EQ(body.seq, 33U);
  xfrm_user_tmpl wanted{};
  load_front(find_netlink_attribute(attributes_of(told.message.bytes(), sizeof body), XFRMA_TMPL), wanted);
  EXPECT_EQ(wanted.reqid, 5U);
}

TEST(XfrmEventMessage, ExpireAndMappingNameTheSa) {
  SaStatus sa;
  sa.settings.id = {packet::IpAddress::parse("192.0.2.1").value(), 0x1001, Protocol::esp};
  sa.settings.source = packet::IpAddress::parse("192.0.2.2").value();
  sa.settings.reqid = 5;
  sa.settings.udp = UdpPorts{4500, 4501};
  sa.counters.packets = 3;
  const Told told = expire_message(sa, {0, 4, 0, 0}, true);
  EXPECT_EQ(told.groups, static_cast<unsigned>(XFRMGRP_EXPIRE));
  const auto expire = at<xfrm_user_expire>(told.message.bytes());
  EXPECT_EQ(expire.hard, 1);
  EXPECT_EQ(expire.state.id.spi, htonl(0x1001));
  EXPECT_EQ(expire.state.curlft.packets, 7U);
  EXPECT_EQ(at<xfrm_user_expire>(expire_message(sa, {}, false).message.bytes()).hard, 0);

  const Told moved = mapping_message(sa, packet::IpAddress::parse("198.51.100.7").value(), 40000);
  EXPECT_EQ(moved.groups, 1U << (XFRMNLGRP_MAPPING - 1));
  const auto mapping = at<xfrm_user_mapping>(moved.message.bytes());
  EXPECT_EQ(mapping.id.spi, htonl(0x1001));
  EXPECT_EQ(mapping.id.proto, IPPROTO_ESP);
  EXPECT_EQ(mapping.id.family, AF_INET);
  EXPECT_EQ(mapping.reqid, 5U);
  EXPECT_EQ(mapping.old_saddr.a4, v4("192.0.2.2").a4);
  EXPECT_EQ(mapping.new_saddr.a4, v4("198.51.100.7").a4);
  EXPECT_EQ(mapping.old_sport, htons(4500));
  EXPECT_EQ(mapping.new_sport, htons(40000));
}

}  // namespace
}  // namespace sluice::ipsec::xfrm
