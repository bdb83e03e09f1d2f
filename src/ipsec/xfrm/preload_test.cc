// The library that IKE daemons load, called as they call it: sockets of netlink that are none any more.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/wait.h>

#include <fstream>

#include "ipsec/xfrm/server_trial_test.h"

namespace sluice::ipsec::xfrm {
namespace {

using testing::HasSubstr;

// Its functions, not the C library's.
struct Library {
  void* handle = dlopen(SLUICE_XFRM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  template <typename F>
  F* find(const char* name, F*) const {
    return handle == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(handle, name));
  }
#define SLUICE_FUNCTION(name) decltype(::name)* name = find(#name, static_cast<decltype(::name)*>(nullptr))
  SLUICE_FUNCTION(socket);
  SLUICE_FUNCTION(bind);
  SLUICE_FUNCTION(getsockname);
  SLUICE_FUNCTION(setsockopt);
  SLUICE_FUNCTION(send);
  SLUICE_FUNCTION(sendto);
  SLUICE_FUNCTION(sendmsg);
  SLUICE_FUNCTION(recv);
  SLUICE_FUNCTION(recvfrom);
  SLUICE_FUNCTION(recvmsg);
#undef SLUICE_FUNCTION
};
const Library& library() {
  static const Library one;
  return one;
}

class XfrmPreload : public XfrmServer {
 protected:
  void SetUp() override {
    XfrmServer::SetUp();
    ASSERT_NE(library().handle, nullptr) << dlerror();
    setenv("SLUICE_XFRM", path().c_str(), 1);
  }
  void TearDown() override {
    unsetenv("SLUICE_XFRM");
    XfrmServer::TearDown();
  }
  static int netlink(int type = SOCK_RAW) { return library().socket(AF_NETLINK, type, NETLINK_XFRM); }
  static ssize_t send_to_kernel(int fd, const std::vector<std::byte>& bytes) {
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    return library().sendto(fd, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&kernel),
                            sizeof kernel);
  }
  // The errno that answers, positive.
  static int answer(int fd) {
    std::vector<std::byte> bytes(4096);
    const ssize_t got = library().recv(fd, bytes.data(), bytes.size(), 0);
    if (got <= 0) return -1;
    return -at<nlmsgerr>(bytes).error;
  }
};

TEST_F(XfrmPreload, NeedsTheCLibraryAlone) {
  const std::string command = "readelf -d " SLUICE_XFRM_LIBRARY " | grep -c NEEDED";
  FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char line[16] = "";
  ASSERT_NE(fgets(line, sizeof line, pipe), nullptr);
  pclose(pipe);
  EXPECT_STREQ(line, "1\n");
}

TEST_F(XfrmPreload, ASocketOfXfrmReachesTheServer) {
  const int fd = netlink(SOCK_RAW | SOCK_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  const auto request = whole_tunnel().message(XFRM_MSG_NEWSA);
  EXPECT_EQ(send_to_kernel(fd, request), static_cast<ssize_t>(request.size()));
  EXPECT_EQ(answer(fd), 0);
  EXPECT_EQ(database_.sa_count(), 1U);
  close(fd);
}

// What libnl, libmnl, iproute2 and charon look at.
TEST_F(XfrmPreload, LooksLikeNetlink) {
  const int fd = netlink();
  sockaddr_nl address{};
  socklen_t length = sizeof address;
  ASSERT_EQ(library().getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  EXPECT_EQ(length, sizeof address);
  EXPECT_EQ(address.nl_family, AF_NETLINK);
  EXPECT_EQ(address.nl_pid, static_cast<unsigned>(getpid()));
  const int on = 1;
  EXPECT_EQ(library().setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on), 0);
  EXPECT_EQ(library().setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &on, sizeof on), 0);

  send_to_kernel(fd, Bytes().message(XFRM_MSG_FLUSHPOLICY));
  std::vector<std::byte> bytes(4096);
  sockaddr_nl from{};
  from.nl_pid = 77;
  length = sizeof from;
  ASSERT_GT(library().recvfrom(fd, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from), &length), 0);
  EXPECT_EQ(from.nl_family, AF_NETLINK);
  EXPECT_EQ(from.nl_pid, 0U);  // the kernel
  nlmsghdr header{};
  load_front(bytes, header);
  EXPECT_EQ(header.nlmsg_pid, static_cast<unsigned>(getpid()));
  close(fd);
}

TEST_F(XfrmPreload, MessagesMayComeInPieces) {
  const int fd = netlink();
  auto request = Bytes().message(XFRM_MSG_FLUSHPOLICY);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  iovec parts[2] = {{request.data(), sizeof(nlmsghdr)}, {request.data() + sizeof(nlmsghdr), 0}};
  msghdr message{};
  message.msg_name = &kernel;
  message.msg_namelen = sizeof kernel;
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  EXPECT_EQ(library().sendmsg(fd, &message, 0), static_cast<ssize_t>(request.size()));
  // Its length first, as those do that make room.
  iovec none{nullptr, 0};
  message.msg_iov = &none;
  message.msg_iovlen = 1;
  const ssize_t size = library().recvmsg(fd, &message, MSG_PEEK | MSG_TRUNC);
  ASSERT_GT(size, 0);
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  none = {bytes.data(), bytes.size()};
  kernel = {};
  message.msg_name = &kernel;
  message.msg_namelen = sizeof kernel;
  EXPECT_EQ(library().recvmsg(fd, &message, 0), size);
  EXPECT_EQ(kernel.nl_family, AF_NETLINK);
  EXPECT_EQ(message.msg_namelen, sizeof kernel);
  EXPECT_EQ(at<nlmsgerr>(bytes).error, 0);
  close(fd);
}

TEST_F(XfrmPreload, GroupsAreJoinedByBindAndByOptions) {
  const int bound = netlink(SOCK_RAW | SOCK_NONBLOCK), member = netlink(SOCK_RAW | SOCK_NONBLOCK);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = XFRMGRP_EXPIRE;
  ASSERT_EQ(library().bind(bound, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  int group = XFRMNLGRP_EXPIRE;
  ASSERT_EQ(library().setsockopt(member, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group), 0);
  ASSERT_TRUE(soon([&] { return server_->counts().connections == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  SaStatus sa;
  sa.settings.id = {packet::IpAddress::parse("192.0.2.1").value(), 0x1001, Protocol::esp};
  database_.events()->expired(sa, false);
  for (const int fd : {bound, member}) {
    std::vector<std::byte> bytes(4096);
    EXPECT_TRUE(soon([&] { return library().recv(fd, bytes.data(), bytes.size(), 0) > 0; }));
    nlmsghdr header{};
    load_front(bytes, header);
    EXPECT_EQ(header.nlmsg_type, XFRM_MSG_EXPIRE);
  }
  ASSERT_EQ(library().setsockopt(member, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &group, sizeof group), 0);
  send_to_kernel(member, Bytes().message(XFRM_MSG_FLUSHPOLICY));
  std::vector<std::byte> bytes(4096);
  ASSERT_TRUE(soon([&] { return library().recv(member, bytes.data(), bytes.size(), 0) > 0; }));
  database_.events()->expired(sa, false);
  EXPECT_TRUE(soon([&] { return library().recv(bound, bytes.data(), bytes.size(), 0) > 0; }));
  EXPECT_LT(library().recv(member, bytes.data(), bytes.size(), 0), 0);
  EXPECT_EQ(errno, EAGAIN);
  close(bound);
  close(member);
}

TEST_F(XfrmPreload, OtherSocketsAreAsEver) {
  const int route = library().socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  ASSERT_GE(route, 0);
  int domain = 0;
  socklen_t length = sizeof domain;
  getsockopt(route, SOL_SOCKET, SO_DOMAIN, &domain, &length);
  EXPECT_EQ(domain, AF_NETLINK);
  close(route);
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  EXPECT_EQ(library().send(pair[0], "hello", 5, 0), 5);
  char text[6] = "";
  EXPECT_EQ(library().recv(pair[1], text, 5, 0), 5);
  EXPECT_STREQ(text, "hello");
  close(pair[0]);
  EXPECT_EQ(library().recv(pair[1], text, 5, 0), 0);  // an end is an end
  close(pair[1]);
}

// A socket's number may be another file's after it was closed.
TEST_F(XfrmPreload, ANumberThatIsUsedAgainIsAnotherSocket) {
  const int fd = netlink();
  close(fd);
  const int udp = socket(AF_INET, SOCK_DGRAM, 0);  // past the library
  ASSERT_EQ(udp, fd);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(library().bind(udp, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  socklen_t length = sizeof address;
  EXPECT_EQ(library().getsockname(udp, reinterpret_cast<sockaddr*>(&address), &length), 0);
  EXPECT_EQ(address.sin_family, AF_INET);
  EXPECT_NE(address.sin_port, 0);
  close(udp);
}

TEST_F(XfrmPreload, EspInUdpIsNotTheKernels) {
  const int udp = socket(AF_INET, SOCK_DGRAM, 0);
  const int type = UDP_ENCAP_ESPINUDP;
  EXPECT_EQ(library().setsockopt(udp, IPPROTO_UDP, UDP_ENCAP, &type, sizeof type), 0);
  int set = 0;
  socklen_t length = sizeof set;
  if (getsockopt(udp, IPPROTO_UDP, UDP_ENCAP, &set, &length) == 0) {
    EXPECT_EQ(set, 0);
  }
  close(udp);
}

TEST_F(XfrmPreload, TheEndOfSluiceAnswersWhatWaitsAndRefusesTheRest) {
  const int fd = netlink(), idle = netlink(SOCK_RAW | SOCK_NONBLOCK);
  send_to_kernel(fd, Bytes().message(XFRM_MSG_FLUSHPOLICY));
  EXPECT_EQ(answer(fd), 0);
  stop();
  testing::internal::CaptureStderr();
  EXPECT_EQ(answer(fd), EIO);
  EXPECT_EQ(send_to_kernel(fd, Bytes().message(XFRM_MSG_FLUSHPOLICY)), -1);
  EXPECT_EQ(errno, EPIPE);
  pollfd quiet{fd, POLLIN, 0};
  EXPECT_EQ(poll(&quiet, 1, 20), 0);  // nothing to turn in a circle around
  char byte = 0;
  EXPECT_EQ(library().recv(idle, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  quiet.fd = idle;
  EXPECT_EQ(poll(&quiet, 1, 20), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("sluice-xfrm: Sluice has ended"));
  close(fd);
  close(idle);
}

TEST_F(XfrmPreload, WithoutSluiceThereIsNoSocketAndALineSaysWhy) {
  stop();
  testing::internal::CaptureStderr();
  EXPECT_EQ(netlink(), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(netlink(), -1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said, "sluice-xfrm: " + path() +
                      ": No such file or directory: is Sluice running, with this path in the section [ipsec] of its "
                      "configuration?\n");
}

TEST_F(XfrmPreload, WithoutThePathNothingIsChangedAndALineSaysSo) {
  unsetenv("SLUICE_XFRM");
  testing::internal::CaptureStderr();
  const int fd = netlink();
  if (fd >= 0) {  // a kernel with XFRM
    int domain = 0;
    socklen_t length = sizeof domain;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
    EXPECT_EQ(domain, AF_NETLINK);
    close(fd);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("SLUICE_XFRM is not set"));
}

}  // namespace
}  // namespace sluice::ipsec::xfrm
