#include "ipsec/xfrm/server.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "ipsec/xfrm/listener.h"
#include "ipsec/xfrm/server_trial_test.h"

namespace sluice::ipsec::xfrm {
namespace {

using testing::HasSubstr;

SaStatus some_sa(std::uint32_t spi = 0x1001) {
  SaStatus status;
  status.settings.id = {packet::IpAddress::parse("192.0.2.1").value(), spi, Protocol::esp};
  status.settings.source = packet::IpAddress::parse("192.0.2.2").value();
  return status;
}

Acquire some_acquire() {
  Acquire acquire{{Direction::out, {}}, {Protocol::esp, Mode::tunnel}, {}, 1};
  acquire.packet.source = packet::IpAddress::parse("10.1.0.1").value();
  acquire.packet.destination = packet::IpAddress::parse("10.2.0.1").value();
  return acquire;
}

TEST_F(XfrmServer, AnswersSeveralDaemons) {
  const Client one(path()), other(path());
  EXPECT_EQ(one.ask(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  EXPECT_EQ(other.ask(whole_tunnel(), XFRM_MSG_NEWSA), EEXIST);
  EXPECT_EQ(other.ask(Bytes::of(id_of(tunnel())), XFRM_MSG_DELSA), 0);
  EXPECT_EQ(one.ask(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  EXPECT_EQ(server_->counts().requests, 4U);
  EXPECT_EQ(server_->counts().connections, 2U);
  EXPECT_EQ(database_.sa_count(), 1U);
}

TEST_F(XfrmServer, AnswersCarryThePortThatADaemonSays) {
  const Client client(path());
  ASSERT_TRUE(client.join(0, 4711));
  ASSERT_TRUE(client.send(Bytes().message(XFRM_MSG_FLUSHPOLICY)));
  const auto bytes = client.receive();
  nlmsghdr header{};
  ASSERT_TRUE(load_front(bytes, header));
  EXPECT_EQ(header.nlmsg_pid, 4711U);
}

TEST_F(XfrmServer, EventsGoToThoseThatHaveJoined) {
  const Client all(path()), expiries(path()), none(path());
  ASSERT_TRUE(all.join(XFRMGRP_ACQUIRE | XFRMGRP_EXPIRE | 1U << (XFRMNLGRP_MAPPING - 1)));
  ASSERT_TRUE(expiries.join(XFRMGRP_EXPIRE));
  for (const Client* one : {&all, &expiries, &none}) EXPECT_EQ(one->ask(Bytes(), XFRM_MSG_FLUSHPOLICY), 0);
  Events& events = *database_.events();
  events.acquire(some_acquire());
  events.expired(some_sa(), false);
  events.moved(some_sa(), packet::IpAddress::parse("198.51.100.1").value(), 40000);
  EXPECT_EQ(all.next(), XFRM_MSG_ACQUIRE);
  EXPECT_EQ(all.next(), XFRM_MSG_EXPIRE);
  EXPECT_EQ(all.next(), XFRM_MSG_MAPPING);
  EXPECT_EQ(expiries.next(), XFRM_MSG_EXPIRE);
  EXPECT_EQ(expiries.next(50), -1);
  EXPECT_EQ(none.next(50), -1);
  EXPECT_EQ(server_->counts().events, 4U);
  EXPECT_EQ(server_->counts().events_lost, 0U);
}

TEST_F(XfrmServer, EventsThatNobodyHearsAreCounted) {
  database_.events()->acquire(some_acquire());
  EXPECT_TRUE(soon([&] { return server_->counts().events_lost == 1; }));
}

// All that a daemon lets lie waits for it, up to a bound; the others are served meanwhile.
TEST_F(XfrmServer, ADaemonThatDoesNotReadHoldsUpNobody) {
  const Client lazy(path()), other(path());
  ASSERT_TRUE(lazy.join(XFRMGRP_EXPIRE));
  EXPECT_EQ(lazy.ask(Bytes(), XFRM_MSG_FLUSHPOLICY), 0);
  constexpr std::uint32_t count = 70000;
  for (std::uint32_t i = 0; i < count; ++i) database_.events()->expired(some_sa(0x1000 + i), false);
  EXPECT_EQ(other.ask(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  EXPECT_TRUE(soon([&] { return server_->counts().events + server_->counts().events_lost == count; }));
  EXPECT_GT(server_->counts().events_lost, 0U);
  std::uint32_t received = 0;
  while (lazy.next(200) == XFRM_MSG_EXPIRE) ++received;
  EXPECT_EQ(received, server_->counts().events);
}

TEST_F(XfrmServer, ALongDumpWaitsForItsReader) {
  const Client reader(path());
  constexpr std::uint32_t count = 3000;
  for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(reader.ask(whole_tunnel(tunnel(0x1000 + i)), XFRM_MSG_NEWSA), 0);
  ASSERT_TRUE(reader.send(Bytes().message(XFRM_MSG_GETSA, NLM_F_REQUEST | NLM_F_DUMP)));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the socket is full by now
  const Client other(path());
  EXPECT_EQ(other.ask(Bytes::of(id_of(tunnel(0x1000))), XFRM_MSG_DELSA), 0);
  std::uint32_t shown = 0;
  int type = reader.next();
  for (; type == XFRM_MSG_NEWSA; type = reader.next()) ++shown;
  EXPECT_EQ(type, NLMSG_DONE);
  EXPECT_EQ(shown, count);
  EXPECT_EQ(reader.ask(Bytes(), XFRM_MSG_FLUSHPOLICY), 0);
}

TEST_F(XfrmServer, GarbageIsNotAnsweredAndEndsNothing) {
  const Client client(path());
  ASSERT_TRUE(client.send(std::vector<std::byte>(100, std::byte{0xff})));
  ASSERT_TRUE(client.send(std::vector<std::byte>(3)));
  EXPECT_EQ(client.ask(Bytes(), XFRM_MSG_FLUSHPOLICY), 0);
  // Longer than any request: the connection ends, the server does not.
  ASSERT_TRUE(client.send(std::vector<std::byte>(70000)));
  EXPECT_TRUE(client.receive().empty());
  EXPECT_EQ(Client(path()).ask(Bytes(), XFRM_MSG_FLUSHPOLICY), 0);
}

TEST_F(XfrmServer, WhatADaemonLeavesStays) {
  {
    const Client client(path());
    EXPECT_EQ(client.ask(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  }
  EXPECT_TRUE(soon([&] { return server_->counts().connections == 0; }));
  EXPECT_EQ(database_.sa_count(), 1U);
  stop();
  EXPECT_EQ(database_.sa_count(), 1U);
}

TEST_F(XfrmServer, AMoveThatDoesNotComeEndsByItself) {
  const Client client(path());
  EXPECT_EQ(client.ask(whole_tunnel(), XFRM_MSG_NEWSA), 0);
  xfrm_aevent_id event{};
  event.sa_id = id_of(tunnel());
  ASSERT_TRUE(client.send(Bytes::of(event).message(XFRM_MSG_GETAE, NLM_F_REQUEST)));
  EXPECT_EQ(client.next(), XFRM_MSG_NEWAE);
  EXPECT_EQ(client.ask(Bytes::of(id_of(tunnel())), XFRM_MSG_DELSA), 0);
  EXPECT_EQ(database_.sa_count(), 1U);
  EXPECT_TRUE(soon([&] { return database_.sa_count() == 0; }));
}

TEST_F(XfrmServer, TheSocketIsForItsOwnerAlone) {
  struct stat about {};
  ASSERT_EQ(stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
  EXPECT_TRUE(S_ISSOCK(about.st_mode));
  stop();
  EXPECT_NE(stat(path().c_str(), &about), 0);
  EXPECT_FALSE(Client(path()).is_connected());
}

TEST_F(XfrmServer, ASecondOneIsRefused) {
  FakeDatabase other;
  const auto second = Server::start(other, path(), {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("is in use by another process"));
  EXPECT_EQ(Client(path()).ask(Bytes(), XFRM_MSG_FLUSHPOLICY), 0);
}

TEST_F(XfrmServer, ASocketThatNobodyListensOnIsReplaced) {
  stop();
  {  // as a process that was killed leaves it
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    close(fd);
  }
  start();
  EXPECT_EQ(Client(path()).ask(Bytes(), XFRM_MSG_FLUSHPOLICY), 0);
}

// Somebody else's, without the lock beside it.
TEST_F(XfrmServer, ASocketThatSomebodyListensOnStays) {
  stop();
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  EXPECT_FALSE(Server::start(database_, path(), {}));
  EXPECT_TRUE(Client(path()).is_connected());
  close(fd);
}

TEST_F(XfrmServer, PathsThatCannotBeAreNamed) {
  const auto file = folder_ + "/file";
  std::ofstream(file) << "text";
  const struct {
    std::string path, says;
  } cases[] = {
      {file, "is there and no socket"},
      {folder_ + "/nowhere/else/xfrm.sock", "make its folder"},
      {folder_ + "/" + std::string(200, 'a'), "is longer than the 107 characters"},
      {folder_ + "/", "is a folder's path"},
      {"xfrm.sock", "is no path that begins with /"},
      {"", "is no path that begins with /"},
  };
  for (const auto& one : cases) {
    const auto started = Server::start(database_, one.path, {});
    ASSERT_FALSE(started) << one.path;
    EXPECT_THAT(started.error().message, HasSubstr(one.says));
  }
  EXPECT_EQ(std::filesystem::file_size(file), 4U);
}

TEST_F(XfrmServer, TheLastFolderIsMade) {
  const std::string there = folder_ + "/run/xfrm.sock";
  EXPECT_EQ(why_no_socket_here(there), "");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run")) << "who asks makes nothing";
  const auto started = Server::start(database_, there, {});
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_TRUE(Client(there).is_connected());
}

TEST_F(XfrmServer, WhyAPathCannotBeIsKnownBefore) {
  std::ofstream(folder_ + "/file") << "text";
  EXPECT_THAT(why_no_socket_here(folder_ + "/file"), HasSubstr("is there and no socket"));
  EXPECT_THAT(why_no_socket_here(folder_ + "/file/xfrm.sock"), HasSubstr("there is no folder " + folder_ + "/file"));
  EXPECT_THAT(why_no_socket_here(folder_ + "/nowhere/else/xfrm.sock"),
              HasSubstr("there is no folder " + folder_ + "/nowhere/else: make it"));
  EXPECT_EQ(why_no_socket_here(folder_ + "/xfrm.sock"), "");
}

}  // namespace
}  // namespace sluice::ipsec::xfrm
