#include <gmock/gmock.h>

#include "ipsec/xfrm/requests_trial_test.h"

namespace sluice::ipsec::xfrm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(XfrmRequests, DirectionFollowsFromTheDestination) {
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  const xfrm_usersa_info out = tunnel(0xc0000002, "192.0.2.1", "192.0.2.2");
  EXPECT_EQ(error(whole_tunnel(out), XFRM_MSG_NEWSA), 0);
  EXPECT_EQ(database_.sa(id())->settings.direction, Direction::in);
  EXPECT_EQ(database_.sa(id("192.0.2.2", 0xc0000002))->settings.direction, Direction::out);
}

TEST_F(XfrmRequests, DirectionThatIsSaidCounts) {
  const std::uint8_t out = 2;
  EXPECT_EQ(error(whole_tunnel().attribute(sa_direction_attribute, out), XFRM_MSG_NEWSA), 0);
  EXPECT_EQ(database_.sa(id())->settings.direction, Direction::out);
}

// Behind a NAT, or of a virtual address: its own SPI says that an SA is inbound.
TEST_F(XfrmRequests, AReservedSpiIsInbound) {
  xfrm_userspi_info asked{};
  asked.info = tunnel(0, "192.0.2.2", "198.51.100.9");
  asked.min = 0xc0000001;
  asked.max = 0xc0000010;
  const Message reserved = answer(Bytes::of(asked), XFRM_MSG_ALLOCSPI);
  EXPECT_EQ(reserved.type(), XFRM_MSG_NEWSA);
  const auto info = at<xfrm_usersa_info>(reserved.bytes());
  const std::uint32_t spi = ntohl(info.id.spi);
  EXPECT_GE(spi, asked.min);
  EXPECT_LE(spi, asked.max);
  EXPECT_EQ(info.id.daddr.a4, v4("198.51.100.9").a4);
  const auto larval = database_.sa(id("198.51.100.9", spi));
  ASSERT_TRUE(larval);
  EXPECT_EQ(larval->state, SaState::larval);
  EXPECT_EQ(larval->settings.reqid, 5U);

  EXPECT_EQ(error(whole_tunnel(tunnel(spi, "192.0.2.2", "198.51.100.9")), XFRM_MSG_UPDSA), 0);
  const auto sa = database_.sa(id("198.51.100.9", spi));
  EXPECT_EQ(sa->state, SaState::valid);
  EXPECT_EQ(sa->settings.direction, Direction::in);
}

TEST_F(XfrmRequests, NoSpiIsLeft) {
  xfrm_userspi_info asked{};
  asked.info = tunnel(0);
  asked.min = asked.max = 0xc0000001;
  EXPECT_EQ(answer(Bytes::of(asked), XFRM_MSG_ALLOCSPI).type(), XFRM_MSG_NEWSA);
  EXPECT_EQ(error(Bytes::of(asked), XFRM_MSG_ALLOCSPI, NLM_F_REQUEST), ENOENT);
}

TEST_F(XfrmRequests, ErrorsAreLinuxs) {
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_UPDSA), ESRCH);
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA), EEXIST);
  EXPECT_EQ(error(Bytes::of(id_of(tunnel())), XFRM_MSG_DELSA), 0);
  EXPECT_EQ(error(Bytes::of(id_of(tunnel())), XFRM_MSG_DELSA), ESRCH);
  EXPECT_EQ(error(Bytes::of(id_of(tunnel())), XFRM_MSG_GETSA, NLM_F_REQUEST), ESRCH);
  EXPECT_EQ(error(aevent(tunnel()), XFRM_MSG_GETAE, NLM_F_REQUEST), ESRCH);
  EXPECT_TRUE(log_.empty());  // all of this is ordinary
  EXPECT_EQ(error(Bytes(), XFRM_MSG_NEWSA), EINVAL);
  EXPECT_EQ(error(Bytes(), XFRM_MSG_REPORT), EOPNOTSUPP);
  EXPECT_EQ(error(Bytes(), 0x1000), EOPNOTSUPP);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("NEWSA is refused: the message is too short"),
                                HasSubstr("REPORT is not supported"), HasSubstr("message 4096 is not supported")));
  EXPECT_EQ(requests_.refused(), 3U);
}

TEST_F(XfrmRequests, ARefusalSaysWhyInTheLogAndInTheAnswer) {
  const Answer answer = ask(Bytes::of(tunnel())
                                .algorithm(XFRMA_ALG_CRYPT, "cbc(twofish)", key16)
                                .algorithm(XFRMA_ALG_AUTH, "hmac(sha1)", key20),
                            XFRM_MSG_NEWSA);
  ASSERT_EQ(answer.messages.size(), 1U);
  const NetlinkBytes bytes = answer.messages[0].bytes();
  const auto error = at<nlmsgerr>(bytes);
  EXPECT_EQ(error.error, -ENOSYS);
  EXPECT_EQ(error.msg.nlmsg_seq, 7U);
  nlmsghdr header{};
  load_front(bytes, header);
  EXPECT_EQ(header.nlmsg_flags, NLM_F_CAPPED | NLM_F_ACK_TLVS);
  EXPECT_EQ(header.nlmsg_seq, 7U);
  EXPECT_EQ(header.nlmsg_pid, port);
  EXPECT_THAT(text_of(find_netlink_attribute(attributes_of(bytes, sizeof error), NLMSGERR_ATTR_MSG)),
              HasSubstr("cbc(twofish)"));
  EXPECT_THAT(log_, ElementsAre("xfrm: NEWSA is refused: the algorithm cbc(twofish) is not supported"));
  EXPECT_EQ(database_.sa_count(), 0U);
}

TEST_F(XfrmRequests, AnSaIsReadWithItsKeysAndCounts) {
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  SaCounters counters;
  counters.packets = 10;
  counters.bytes = 1234;
  counters.first_used_at = 1001;
  database_.set_counters(id(), counters);
  const Message message = answer(Bytes::of(id_of(tunnel())), XFRM_MSG_GETSA);
  EXPECT_EQ(message.type(), XFRM_MSG_NEWSA);
  const auto info = at<xfrm_usersa_info>(message.bytes());
  EXPECT_EQ(info.curlft.packets, 10U);
  EXPECT_EQ(info.curlft.bytes, 1234U);
  EXPECT_EQ(info.curlft.use_time, 1001U);
  const NetlinkBytes aead = find_netlink_attribute(attributes_of(message.bytes(), sizeof info), XFRMA_ALG_AEAD);
  EXPECT_THAT(text_of(aead), HasSubstr(std::string(key20)));
}

TEST_F(XfrmRequests, SasOfTheConfigurationAreShownWithoutKeysAndStay) {
  SaSettings configured = read_sa(whole_tunnel().body())->settings;
  configured.name = "site";
  ASSERT_TRUE(database_.add(configured));
  const Message message = answer(Bytes::of(id_of(tunnel())), XFRM_MSG_GETSA);
  EXPECT_THAT(text_of(message.bytes()), Not(HasSubstr(std::string(key16))));
  EXPECT_EQ(error(Bytes::of(id_of(tunnel())), XFRM_MSG_DELSA), EPERM);
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_UPDSA), EPERM);
  EXPECT_EQ(error(Bytes::of(xfrm_usersa_flush{0}), XFRM_MSG_FLUSHSA), 0);
  EXPECT_TRUE(database_.sa(id()));
}

TEST_F(XfrmRequests, UpdatingAValidSaChangesItsLifetimeAndPorts) {
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  xfrm_usersa_info info = tunnel();
  info.lft.hard_add_expires_seconds = 77;
  xfrm_encap_tmpl ports{};
  ports.encap_type = UDP_ENCAP_ESPINUDP;
  ports.encap_sport = htons(1);
  const Bytes other_key = Bytes::of(info).algorithm(XFRMA_ALG_AEAD, "rfc4106(gcm(aes))", "ANOTHER-KEY-of-20byt", 128);
  EXPECT_EQ(error(Bytes(other_key).attribute(XFRMA_ENCAP, ports), XFRM_MSG_UPDSA), 0);
  EXPECT_EQ(database_.sa(id())->settings.lifetime.seconds.hard, 77U);
  EXPECT_EQ(database_.sa(id())->settings.udp->source, 1);
  // The key is what it was, also where it is shown.
  EXPECT_THAT(text_of(answer(Bytes::of(id_of(tunnel())), XFRM_MSG_GETSA).bytes()), HasSubstr(std::string(key20)));
}

TEST_F(XfrmRequests, FlushingTakesWhatIsOfTheProtocol) {
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  EXPECT_EQ(error(Bytes::of(xfrm_usersa_flush{IPPROTO_AH}), XFRM_MSG_FLUSHSA), 0);
  EXPECT_EQ(error(Bytes::of(xfrm_usersa_flush{IPPROTO_COMP}), XFRM_MSG_FLUSHSA), 0);
  EXPECT_EQ(database_.sa_count(), 1U);
  EXPECT_EQ(error(Bytes::of(xfrm_usersa_flush{255}), XFRM_MSG_FLUSHSA), 0);
  EXPECT_EQ(database_.sa_count(), 0U);
}

TEST_F(XfrmRequests, DumpsHaveAllThatFits) {
  EXPECT_EQ(dumped(Bytes(), XFRM_MSG_GETSA), 0U);
  for (std::uint32_t spi = 0x1001; spi <= 0x1005; ++spi) {
    EXPECT_EQ(error(whole_tunnel(tunnel(spi)), XFRM_MSG_NEWSA), 0);
  }
  EXPECT_EQ(error(whole_tunnel(tunnel(0x1001, "192.0.2.1", "192.0.2.77")), XFRM_MSG_NEWSA), 0);
  EXPECT_EQ(dumped(Bytes(), XFRM_MSG_GETSA), 6U);
  xfrm_address_filter filter{};
  filter.family = AF_INET;
  filter.daddr = v4("192.0.2.77");
  filter.dplen = 32;
  EXPECT_EQ(dumped(Bytes().attribute(XFRMA_ADDRESS_FILTER, filter), XFRM_MSG_GETSA), 1U);
  EXPECT_EQ(dumped(Bytes().attribute(XFRMA_PROTO, std::uint8_t{IPPROTO_AH}), XFRM_MSG_GETSA), 0U);
}

TEST_F(XfrmRequests, SeveralMessagesOfADatagramAreAnsweredInTurn) {
  std::vector<std::byte> datagram = whole_tunnel().message(XFRM_MSG_NEWSA, NLM_F_REQUEST | NLM_F_ACK, 1);
  const auto second = Bytes::of(id_of(tunnel())).message(XFRM_MSG_DELSA, NLM_F_REQUEST, 2);  // no ACK is asked for
  const auto third = Bytes::of(id_of(tunnel())).message(XFRM_MSG_GETSA, NLM_F_REQUEST, 3);
  datagram.insert(datagram.end(), second.begin(), second.end());
  datagram.insert(datagram.end(), third.begin(), third.end());
  datagram.resize(datagram.size() + 7);  // and what is no message
  const Answer answer = requests_.handle(datagram, port);
  ASSERT_EQ(answer.messages.size(), 2U);
  EXPECT_EQ(at<nlmsgerr>(answer.messages[0].bytes()).error, 0);
  EXPECT_EQ(at<nlmsgerr>(answer.messages[1].bytes()).error, -ESRCH);
}

TEST_F(XfrmRequests, WhatIsNoRequestIsAcknowledgedOnly) {
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA, NLM_F_ACK), 0);
  EXPECT_EQ(error(Bytes(), NLMSG_NOOP), 0);
  EXPECT_EQ(database_.sa_count(), 0U);
}

TEST_F(XfrmRequests, CountsOfTheSad) {
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  const Message message = answer(Bytes::of(std::uint32_t{~0U}), XFRM_MSG_GETSADINFO);
  EXPECT_EQ(message.type(), XFRM_MSG_NEWSADINFO);
  std::uint32_t count = 0;
  load_front(find_netlink_attribute(attributes_of(message.bytes(), 4), XFRMA_SAD_CNT), count);
  EXPECT_EQ(count, 1U);
}

TEST_F(XfrmRequests, AtTheHardLimitAnSaGoesIfNobodyWouldDeleteIt) {
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  const SaStatus status = *database_.sa(id());
  EXPECT_EQ(requests_.expired(status, false, false).message.type(), XFRM_MSG_EXPIRE);
  EXPECT_TRUE(database_.sa(id()));
  requests_.expired(status, true, true);
  EXPECT_TRUE(database_.sa(id()));
  requests_.expired(status, true, false);
  EXPECT_FALSE(database_.sa(id()));
}

TEST_F(XfrmRequests, KeysGoWithSasThatOthersRemove) {
  EXPECT_EQ(error(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  database_.remove(id());
  SaSettings configured = read_sa(whole_tunnel().body())->settings;
  configured.name = "site";
  for (std::uint32_t spi = 0x1001; spi < 0x1001 + 1024; ++spi) {
    ASSERT_EQ(error(whole_tunnel(tunnel(spi)), XFRM_MSG_NEWSA), 0);
  }
  ASSERT_TRUE(database_.add(configured));
  EXPECT_THAT(text_of(answer(Bytes::of(id_of(tunnel())), XFRM_MSG_GETSA).bytes()), Not(HasSubstr(std::string(key20))));
}

}  // namespace
}  // namespace sluice::ipsec::xfrm
