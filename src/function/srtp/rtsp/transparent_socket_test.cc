#include "function/srtp/rtsp/transparent_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

#include "function/srtp/rtsp/tcp_pair_test.h"

namespace sluice::function::rtsp {
namespace {

using namespace std::chrono_literals;

TEST(TransparentSocket, AProbeFindsWhoHasVanished) {
  struct Case {
    bool there, data;  // data: that waits for its ACK
    test::TcpPair pair = test::connected();
    Probed found = Probed::nothing_yet;
  };
  Case cases[] = {{true, false}, {true, true}, {false, false}, {false, true}};
  std::this_thread::sleep_for(20ms);
  for (Case& one : cases) {
    if (!one.there) test::vanish(one.pair.there);
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
}  // namespace sluice::function::rtsp
