// Over the loopback; a socket whose filter takes nothing is a peer that has vanished.
#include "control/rtsp/transparent_socket.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace sluice::control::rtsp {
namespace {

using namespace std::chrono_literals;

struct Pair {
  Fd here, there;
};

Pair connected() {
  const Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  socklen_t size = sizeof at;
  EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  Pair pair;
  pair.there = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(pair.there.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  pair.here = Fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  set_usual_options(pair.here.get());
  return pair;
}

void vanish(const Fd& fd) {
  sock_filter nothing{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program{1, &nothing};
  ASSERT_EQ(setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

TEST(TransparentSocket, AProbeFindsWhoHasVanished) {
  struct Case {
    bool there, data;  // data: that waits for its ACK
    Pair pair = connected();
    Probed found = Probed::nothing_yet;
  };
  Case cases[] = {{true, false}, {true, true}, {false, false}, {false, true}};
  std::this_thread::sleep_for(20ms);
  for (Case& one : cases) {
    if (!one.there) vanish(one.pair.there);
    if (one.data) {
      EXPECT_EQ(send(one.pair.here.get(), "x", 1, MSG_NOSIGNAL), 1);
    }
    probe(one.pair.here.get());
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto waits = [](const Case& one) { return one.found == Probed::nothing_yet; };
  while (std::ranges::any_of(cases, waits) && std::chrono::steady_clock::now() - begin < probe_time + 2s) {
    for (Case& one : cases) {
      if (waits(one)) one.found = probed(one.pair.here.get(), std::chrono::steady_clock::now() - begin);
    }
    std::this_thread::sleep_for(50ms);
  }
  for (const Case& one : cases) EXPECT_EQ(one.found, one.there ? Probed::there : Probed::gone) << one.data;
}

}  // namespace
}  // namespace sluice::control::rtsp
