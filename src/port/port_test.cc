#include "port/port.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>

#include <array>

#include "../tests/support/net_namespace.h"

namespace sluice::port {
namespace {

using test::NetNamespace;

class PortTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
  }
  static PortOptions on(const std::string& device) {
    PortOptions options;
    options.name = "p";
    options.device = device;
    return options;
  }

  NetNamespace space_;
  NetNamespace::Entry inside_ = space_.enter();
};

TEST_F(PortTest, ATapsDescriptorIsReadableWhileFramesWait) {
  auto port = Port::open(on("net_tap7,iface=tap7"), {}, 1);
  ASSERT_TRUE(port) << port.error().message;
  pollfd waiting{(*port)->wait_fd(0), POLLIN, 0};
  ASSERT_GE(waiting.fd, 0);
  EXPECT_EQ((*port)->wait_fd(1), -1);
  std::array<rte_mbuf*, 32> frames;
  const auto receive_all = [&] {
    unsigned received = 0;
    while (poll(&waiting, 1, 100) == 1) {
      const unsigned count = (*port)->rx_burst(0, frames.data(), frames.size());
      rte_pktmbuf_free_bulk(frames.data(), count);
      received += count;
    }
    return received;
  };
  receive_all();  // what the kernel says of itself when the interface comes up
  EXPECT_EQ(poll(&waiting, 1, 0), 0);
  ASSERT_EQ(space_.run("ip addr add 10.9.0.1/24 dev tap7 && ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev tap7"),
            0);
  ASSERT_EQ(space_.run("ping -q -c 3 -i 0.01 -W 1 10.9.0.2 > /dev/null; true"), 0);
  EXPECT_EQ(poll(&waiting, 1, 2000), 1);
  EXPECT_GE(receive_all(), 3U);
}

TEST_F(PortTest, ARefusalNamesTheCauseInTheDriversWordsAndNoOther) {
  const std::pair<const char*, const char*> cases[] = {
      {"net_vhost7,iface=/nonexistent/x", "failed to bind: No such file or directory"},
      {"net_memif7,role=client,socket=/tmp/no-such-memif,socket-abstract=no",
       "(its other end, role=server, must be there first): its driver says 'memif_connect_client(): Failed to connect"},
      {"net_pcap7,rx_pcap=/nonexistent", "its driver says 'open_single_rx_pcap(): Couldn't open /nonexistent"},
      {"net_ring7,nodeaction=x", "its driver does not say why"},
  };
  for (const auto& [device, cause] : cases) {
    const auto port = Port::open(on(device), {}, 1);
    ASSERT_FALSE(port) << device;
    const std::string& said = port.error().message;
    EXPECT_NE(said.find(cause), std::string::npos) << said;
    EXPECT_EQ(said.find("Operation not permitted"), std::string::npos) << said;
    EXPECT_EQ(said.find("mp action"), std::string::npos) << said;
  }
}

TEST_F(PortTest, ThereIsNothingToWaitForOnARing) {
  auto port = Port::open(on("net_ring7"), {}, 1);
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_EQ((*port)->wait_fd(0), -1);
}

}  // namespace
}  // namespace sluice::port
