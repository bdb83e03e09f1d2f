// Connections over the loopback, for tests of sockets. A peer that has vanished is a socket whose filter takes nothing:
// what comes to it is thrown away unanswered.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "function/srtp/rtsp/transparent_socket.h"

namespace sluice::function::rtsp::test {

struct TcpPair {
  Fd here, there;  // `here`: accepted, with the proxy's usual options
};

inline Fd listening() {
  Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  return listener;
}

inline TcpPair connected() {
  const Fd listener = listening();
  sockaddr_in at{};
  socklen_t size = sizeof at;
  EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  TcpPair pair;
  pair.there = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(pair.there.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  pair.here = Fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  set_usual_options(pair.here.get());
  return pair;
}

inline void vanish(const Fd& fd) {
  sock_filter nothing{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program{1, &nothing};
  ASSERT_EQ(setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

}  // namespace sluice::function::rtsp::test
