#include "ipsec/xfrm/sa_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ipsec/xfrm/bytes_trial_test.h"

namespace sluice::ipsec::xfrm {
namespace {

using testing::HasSubstr;

Result<SaRequest> read(const Bytes& bytes) {
  return read_sa(bytes.body());
}

// The refusal of a tunnel with one more attribute.
template <typename T>
Refusal refusal_with(std::uint16_t type, const T& value) {
  const auto read = read_sa(whole_tunnel().attribute(type, value).body());
  return read ? Refusal{} : read.error();
}

TEST(XfrmSaMessage, ATunnelIsReadFieldByField) {
  xfrm_usersa_info info = tunnel();
  info.lft.soft_byte_limit = 1000;
  info.lft.hard_byte_limit = 2000;
  info.lft.hard_packet_limit = 0;
  info.lft.soft_add_expires_seconds = 30;
  info.lft.hard_use_expires_seconds = 60;
  info.seq = 9;
  const auto request = read(whole_tunnel(info));
  ASSERT_TRUE(request) << request.error().why;
  const SaSettings& sa = request->settings;
  EXPECT_EQ(sa.id.destination.str(), "192.0.2.1");
  EXPECT_EQ(sa.id.spi, 0xc0000001U);
  EXPECT_EQ(sa.id.protocol, Protocol::esp);
  EXPECT_EQ(sa.source.str(), "192.0.2.2");
  EXPECT_EQ(sa.mode, Mode::tunnel);
  EXPECT_EQ(sa.reqid, 5U);
  EXPECT_EQ(sa.replay_window, 32U);
  EXPECT_FALSE(sa.esn);
  EXPECT_FALSE(sa.udp);
  EXPECT_FALSE(sa.selector);
  EXPECT_TRUE(sa.ecn);
  EXPECT_TRUE(sa.copy_dscp);
  EXPECT_EQ(sa.dont_fragment, DontFragment::copy);
  EXPECT_EQ(sa.lifetime.bytes, (Limit{1000, 2000}));
  EXPECT_EQ(sa.lifetime.packets, (Limit{0, 1}));  // 0 of XFRM is reached at once
  EXPECT_EQ(sa.lifetime.seconds, (Limit{30, 0}));
  EXPECT_EQ(sa.lifetime.use_seconds, (Limit{0, 60}));
  EXPECT_FALSE(request->direction);
  EXPECT_FALSE(request->used);
  EXPECT_EQ(request->sequence, 9U);
}

TEST(XfrmSaMessage, FlagsAreOfTheOuterHeader) {
  xfrm_usersa_info info = tunnel();
  info.flags |= XFRM_STATE_NOECN | XFRM_STATE_NOPMTUDISC;
  const std::uint32_t extra = XFRM_SA_XFLAG_DONT_ENCAP_DSCP;
  const auto request = read(whole_tunnel(info).attribute(XFRMA_SA_EXTRA_FLAGS, extra));
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->settings.ecn);
  EXPECT_EQ(request->settings.dont_fragment, DontFragment::clear);
  EXPECT_FALSE(request->settings.copy_dscp);
}

TEST(XfrmSaMessage, ATransportSaOfIpv6HasASelector) {
  xfrm_usersa_info info = tunnel();
  info.family = AF_INET6;
  info.mode = XFRM_MODE_TRANSPORT;
  info.flags = 0;
  info.saddr = v6("2001:db8::2");
  info.id.daddr = v6("2001:db8::1");
  info.sel.family = AF_INET6;
  info.sel.saddr = v6("2001:db8::2");
  info.sel.daddr = v6("2001:db8::1");
  info.sel.prefixlen_s = info.sel.prefixlen_d = 128;
  info.sel.proto = IPPROTO_UDP;
  info.sel.dport = htons(53);
  info.sel.dport_mask = 0xffff;
  const auto request = read(whole_tunnel(info));
  ASSERT_TRUE(request) << request.error().why;
  ASSERT_TRUE(request->settings.selector);
  const Selector& selector = *request->settings.selector;
  EXPECT_EQ(selector.source.str(), "2001:db8::2/128");
  EXPECT_EQ(selector.destination.str(), "2001:db8::1/128");
  EXPECT_EQ(selector.protocol, IPPROTO_UDP);
  EXPECT_EQ(selector.destination_port, (PortMatch{53, 0xffff}));
  EXPECT_EQ(selector.source_port, (PortMatch{}));
}

TEST(XfrmSaMessage, EncapsulationAndPaddingAndDirection) {
  xfrm_encap_tmpl encapsulation{};
  encapsulation.encap_type = UDP_ENCAP_ESPINUDP;
  encapsulation.encap_sport = htons(4500);
  encapsulation.encap_dport = htons(40000);
  const auto request = read(whole_tunnel()
                                .attribute(XFRMA_ENCAP, encapsulation)
                                .attribute(XFRMA_TFCPAD, std::uint32_t{1400})
                                .attribute(sa_direction_attribute, std::uint8_t{2}));
  ASSERT_TRUE(request) << request.error().why;
  EXPECT_EQ(request->settings.udp, (UdpPorts{4500, 40000}));
  EXPECT_EQ(request->settings.pad_to, 1400);
  EXPECT_EQ(request->direction, Direction::out);
  encapsulation.encap_type = 7;  // TCP
  EXPECT_EQ(refusal_with(XFRMA_ENCAP, encapsulation).error, EOPNOTSUPP);
  EXPECT_EQ(refusal_with(sa_direction_attribute, std::uint8_t{3}).error, EINVAL);
}

TEST(XfrmSaMessage, ExtendedNumbersHaveAWindowOfTheirOwn) {
  xfrm_usersa_info info = tunnel();
  info.flags |= XFRM_STATE_ESN;
  info.replay_window = 0;
  struct {
    ReplayEsn fixed;
    std::uint32_t bitmap[32];
  } state{{32, 0, 5, 0, 1, 1024}, {}};
  const auto request = read(whole_tunnel(info).attribute(XFRMA_REPLAY_ESN_VAL, state));
  ASSERT_TRUE(request) << request.error().why;
  EXPECT_TRUE(request->settings.esn);
  EXPECT_EQ(request->settings.replay_window, 1024U);
  EXPECT_EQ(request->replay.received, 0x100000005ULL);
  EXPECT_EQ(request->replay.sent, 0U);
  EXPECT_EQ(read(whole_tunnel(info)).error().error, EINVAL);  // no window
  state.fixed.replay_window = 0;
  EXPECT_EQ(read(whole_tunnel(info).attribute(XFRMA_REPLAY_ESN_VAL, state)).error().error, EINVAL);
  state.fixed.replay_window = 1025;  // more than the bitmap
  EXPECT_EQ(read(whole_tunnel(info).attribute(XFRMA_REPLAY_ESN_VAL, state)).error().error, EINVAL);
  state.fixed = {33, 0, 0, 0, 0, 64};  // the bitmap is cut short
  EXPECT_EQ(read(whole_tunnel(info).attribute(XFRMA_REPLAY_ESN_VAL, state)).error().error, EINVAL);
  state.fixed = {~0U, 0, 0, 0, 0, 64};
  EXPECT_EQ(read(whole_tunnel(info).attribute(XFRMA_REPLAY_ESN_VAL, state)).error().error, EINVAL);
}

TEST(XfrmSaMessage, PlainNumbersComeWithReplayVal) {
  const auto request = read(whole_tunnel()
                                .attribute(XFRMA_REPLAY_VAL, xfrm_replay_state{100, 200, 0xf})
                                .attribute(XFRMA_LTIME_VAL, xfrm_lifetime_cur{1000, 10, 5, 6}));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->replay.sent, 100U);
  EXPECT_EQ(request->replay.received, 200U);
  ASSERT_TRUE(request->used);
  EXPECT_EQ(request->used->bytes, 1000U);
}

TEST(XfrmSaMessage, WhatTheGatewayWouldNotDoIsRefused) {
  EXPECT_EQ(refusal_with(XFRMA_MARK, xfrm_mark{1, 0xff}).error, EOPNOTSUPP);
  EXPECT_EQ(refusal_with(XFRMA_MARK, xfrm_mark{0, 0}).error, 0);
  EXPECT_EQ(refusal_with(XFRMA_SET_MARK, std::uint32_t{1}).error, EOPNOTSUPP);
  EXPECT_EQ(refusal_with(XFRMA_IF_ID, std::uint32_t{1}).error, EOPNOTSUPP);
  EXPECT_EQ(refusal_with(XFRMA_COADDR, v4("192.0.2.9")).error, EOPNOTSUPP);
  EXPECT_EQ(refusal_with(XFRMA_OFFLOAD_DEV, xfrm_user_offload{2, 0}).error, EOPNOTSUPP);
  EXPECT_EQ(refusal_with(XFRMA_SA_EXTRA_FLAGS, std::uint32_t{XFRM_SA_XFLAG_OSEQ_MAY_WRAP}).error, EOPNOTSUPP);
  EXPECT_EQ(refusal_with(40, std::uint32_t{1}).error, EOPNOTSUPP);
  EXPECT_THAT(refusal_with(XFRMA_IF_ID, std::uint32_t{1}).why, HasSubstr("interface ids"));
  const struct {
    const char* what;
    void (*change)(xfrm_usersa_info&);
    int error;
  } cases[] = {
      {"DSCP", [](xfrm_usersa_info& sa) { sa.flags |= XFRM_STATE_DECAP_DSCP; }, EOPNOTSUPP},
      {"wildcard", [](xfrm_usersa_info& sa) { sa.flags |= XFRM_STATE_WILDRECV; }, EOPNOTSUPP},
      {"mode", [](xfrm_usersa_info& sa) { sa.mode = XFRM_MODE_BEET; }, EOPNOTSUPP},
      {"protocol", [](xfrm_usersa_info& sa) { sa.id.proto = IPPROTO_COMP; }, EPROTONOSUPPORT},
      {"family", [](xfrm_usersa_info& sa) { sa.family = AF_UNIX; }, EINVAL},
      {"SPI", [](xfrm_usersa_info& sa) { sa.id.spi = htonl(255); }, EINVAL},
      {"interface", [](xfrm_usersa_info& sa) { sa.sel.ifindex = 3; }, EOPNOTSUPP},
      {"prefix", [](xfrm_usersa_info& sa) { sa.sel.prefixlen_s = 33; }, EINVAL},
  };
  for (const auto& one : cases) {
    xfrm_usersa_info info = tunnel();
    one.change(info);
    const auto request = read(whole_tunnel(info));
    ASSERT_FALSE(request) << one.what;
    EXPECT_EQ(request.error().error, one.error) << one.what;
  }
}

TEST(XfrmSaMessage, PaddingIsOfTunnels) {
  xfrm_usersa_info info = tunnel();
  info.mode = XFRM_MODE_TRANSPORT;
  EXPECT_EQ(read(whole_tunnel(info).attribute(XFRMA_TFCPAD, std::uint32_t{100})).error().error, EINVAL);
}

// RFC 4302 3.3.3.2.1: of IPv4 to four bytes. Linux pads to eight unless it is told not to.
TEST(XfrmSaMessage, AhIsAlignedAsTheRfcSays) {
  xfrm_usersa_info info = tunnel();
  info.id.proto = IPPROTO_AH;
  const auto with = [&](std::uint32_t bits) {
    return Bytes::of(info).algorithm(XFRMA_ALG_AUTH_TRUNC, "hmac(sha256)", key32, bits);
  };
  EXPECT_TRUE(read(with(96)));  // 24 bytes: either way
  EXPECT_EQ(read(with(128)).error().error, EOPNOTSUPP);
  info.flags |= XFRM_STATE_ALIGN4;
  EXPECT_TRUE(read(with(128)));
}

TEST(XfrmSaMessage, BrokenMessagesAreRefused) {
  const std::vector<std::byte> whole = whole_tunnel().body();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(read_sa(cut)) << length;
  }
  Bytes bytes = whole_tunnel();
  const std::uint16_t beyond[2] = {200, XFRMA_TFCPAD};
  EXPECT_EQ(read(bytes.put(beyond, sizeof beyond)).error().error, EINVAL);
}

TEST(XfrmSaMessage, AnSpiIsAskedForInARange) {
  xfrm_userspi_info asked{};
  asked.info = tunnel(0);
  asked.min = 1;
  asked.max = 0xcfffffff;
  auto read = read_spi_request(Bytes::of(asked).body());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->least, 256U);
  EXPECT_EQ(read->most, 0xcfffffffU);
  EXPECT_EQ(read->reqid, 5U);
  asked.min = 0xd0000000;
  EXPECT_EQ(read_spi_request(Bytes::of(asked).body()).error().error, EINVAL);
}

// As charon copies an SA: what GETSA answers is a NEWSA again.
TEST(XfrmSaMessage, WhatIsWrittenIsReadAgain) {
  SaSettings sa;
  sa.id = {packet::IpAddress::parse("192.0.2.1").value(), 0x1234567, Protocol::esp};
  sa.source = packet::IpAddress::parse("192.0.2.2").value();
  sa.direction = Direction::out;
  sa.reqid = 77;
  sa.transform = read(whole_tunnel())->settings.transform;
  sa.esn = true;
  sa.replay_window = 2048;
  sa.udp = UdpPorts{4500, 1025};
  sa.lifetime = {.bytes = {1, 2}, .packets = {0, 4}, .seconds = {5, 6}, .use_seconds = {0, 8}};
  sa.dont_fragment = DontFragment::clear;
  sa.copy_dscp = false;
  sa.ecn = false;
  sa.pad_to = 1300;
  SaCounters counters;
  counters.packets = 10;
  counters.bytes = 1000;
  counters.replay = 3;
  counters.bad_icv = 4;
  counters.sequence = 0x200000003;
  counters.added_at = 100;
  counters.last_used_at = 200;
  Message message(XFRM_MSG_NEWSA, 0, 0, 0);
  write_sa(message, sa, counters, {50, 5, 90, 0});
  const auto info = at<xfrm_usersa_info>(message.bytes());
  EXPECT_EQ(info.curlft.bytes, 1050U);
  EXPECT_EQ(info.curlft.packets, 15U);
  EXPECT_EQ(info.curlft.add_time, 90U);
  EXPECT_EQ(info.stats.replay, 3U);
  EXPECT_EQ(info.stats.integrity_failed, 4U);
  EXPECT_EQ(info.replay_window, 0);
  std::uint64_t last_used = 0;
  load_front(find_netlink_attribute(attributes_of(message.bytes(), sizeof info), XFRMA_LASTUSED), last_used);
  EXPECT_EQ(last_used, 200U);

  const auto again = read_sa(NetlinkBytes(message.bytes()).subspan(sizeof(nlmsghdr)));
  ASSERT_TRUE(again) << again.error().why;
  EXPECT_EQ(again->settings.id, sa.id);
  EXPECT_EQ(again->settings.source, sa.source);
  EXPECT_EQ(again->settings.reqid, sa.reqid);
  EXPECT_EQ(again->settings.esn, sa.esn);
  EXPECT_EQ(again->settings.replay_window, sa.replay_window);
  EXPECT_EQ(again->settings.udp, sa.udp);
  EXPECT_EQ(again->settings.lifetime, sa.lifetime);
  EXPECT_EQ(again->settings.dont_fragment, sa.dont_fragment);
  EXPECT_EQ(again->settings.copy_dscp, sa.copy_dscp);
  EXPECT_EQ(again->settings.ecn, sa.ecn);
  EXPECT_EQ(again->settings.pad_to, sa.pad_to);
  EXPECT_EQ(again->settings.transform.icv_length, 16);
  EXPECT_EQ(again->replay.sent, 0x200000003U);
  EXPECT_EQ(again->replay.received, 0U);
}

}  // namespace
}  // namespace sluice::ipsec::xfrm
