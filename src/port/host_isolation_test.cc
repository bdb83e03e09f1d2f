#include "port/host_isolation.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <thread>

#include "../tests/support/net_namespace.h"
#include "port/tap_twin.h"

namespace sluice::port {
namespace {

using test::NetNamespace;

// What Sluice does with a port that forwards nothing: every frame of `interface` goes to the twin, and back.
class Pump {
 public:
  Pump(const std::string& interface, TapTwin& twin) : twin_(twin) {
    socket_ = socket(AF_PACKET, SOCK_RAW, 0);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const int on = 1;
    setsockopt(socket_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
    thread_ = std::thread([this] { run(); });
  }
  ~Pump() {
    stop_ = true;
    thread_.join();
    close(socket_);
  }

 private:
  void run() {
    std::array<std::byte, 4096> buffer;
    std::array<pollfd, 2> ready = {pollfd{socket_, POLLIN, 0}, pollfd{twin_.fd(), POLLIN, 0}};
    while (!stop_) {
      poll(ready.data(), ready.size(), 50);
      const ssize_t received = recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (received > 0) (void)twin_.write(std::span(buffer).first(static_cast<std::size_t>(received)));
      const auto length = twin_.read(buffer);
      if (length && *length > 0) send(socket_, buffer.data(), *length, 0);
    }
  }

  TapTwin& twin_;
  int socket_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

std::string sysctl(const std::string& path) {
  std::string value;
  std::ifstream("/proc/sys/net/" + path) >> value;
  return value;
}

class HostIsolationTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
    ASSERT_EQ(router_.run("ip link add x0 type veth peer name h0 netns " + host_.path() +
                          " && ip link set lo up && ip link set x0 up && ethtool -K x0 tx off >/dev/null"),
              0);
    ASSERT_EQ(host_.run("ip link set h0 up && ethtool -K h0 tx off >/dev/null && ip addr add 10.0.0.2/24 dev h0 && "
                        "ip addr add 2001:db8::2/64 dev h0 nodad && ip route add default via 10.0.0.1"),
              0);
  }

  Expected<TapTwin> open_twin() {
    const auto mac = packet::MacAddress::parse(
        router_.output("ip -br link show x0 | grep -oE '([0-9a-f]{2}:){5}[0-9a-f]{2}' | tr -d '\\n'"));
    auto twin = TapTwin::open("sl-x", mac.value(), 1500);
    if (twin) {
      router_.run("ip addr add 10.0.0.1/24 dev sl-x && ip addr add 2001:db8::1/64 dev sl-x nodad");
    }
    return twin;
  }

  NetNamespace router_;
  NetNamespace host_;
  NetNamespace::Entry inside_ = router_.enter();
};

TEST_F(HostIsolationTest, EveryPingIsAnsweredOnce) {
  auto twin = open_twin();
  ASSERT_TRUE(twin) << twin.error().message;
  auto guard = HostIsolation::open("x0");
  ASSERT_TRUE(guard) << guard.error().message;
  EXPECT_TRUE(guard->drops_ingress());
  EXPECT_TRUE(guard->notes().empty()) << guard->notes().front();
  const Pump pump("x0", *twin);
  for (const std::string target : {"10.0.0.1", "2001:db8::1"}) {
    const std::string report = host_.output("ping -c 5 -i 0.05 -W 1 " + target + " 2>&1");
    EXPECT_NE(report.find("5 received"), std::string::npos) << report;
    EXPECT_EQ(report.find("DUP!"), std::string::npos) << report;
    EXPECT_EQ(report.find("duplicates"), std::string::npos) << report;
  }
}

TEST_F(HostIsolationTest, TheKernelIsSilentOnTheInterface) {
  auto guard = HostIsolation::open("x0");
  ASSERT_TRUE(guard) << guard.error().message;
  ASSERT_EQ(router_.run("ip addr add 10.0.0.1/24 dev x0"), 0);
  const std::string report = host_.output("ping -c 2 -i 0.05 -W 1 10.0.0.1 2>&1");
  EXPECT_NE(report.find(" 0 received"), std::string::npos) << report;
}

TEST_F(HostIsolationTest, RestoresEverything) {
  const std::vector<std::string> keys = {"ipv4/conf/x0/rp_filter", "ipv4/conf/x0/arp_ignore", "ipv4/conf/x0/forwarding",
                                         "ipv6/conf/x0/disable_ipv6"};
  router_.run("sysctl -qw net.ipv4.conf.x0.rp_filter=2 net.ipv4.conf.x0.arp_ignore=3 net.ipv4.conf.x0.forwarding=1");
  router_.run("ethtool -K x0 gro on");
  {
    auto guard = HostIsolation::open("x0");
    ASSERT_TRUE(guard) << guard.error().message;
    HostIsolation moved = std::move(*guard);
    const std::vector<std::string> isolated = {"1", "8", "0", "1"};
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(sysctl(keys[i]), isolated[i]) << keys[i];
    EXPECT_NE(router_.output("nft list ruleset").find("sluice-x0"), std::string::npos);
    EXPECT_NE(router_.output("ethtool -k x0").find("generic-receive-offload: off"), std::string::npos);
  }
  const std::vector<std::string> before = {"2", "3", "1", "0"};
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(sysctl(keys[i]), before[i]) << keys[i];
  EXPECT_EQ(router_.output("nft list ruleset"), "");
  EXPECT_NE(router_.output("ethtool -k x0").find("generic-receive-offload: on"), std::string::npos);
}

// A port that only listens leaves the host its interface, but for what would not fit into a frame.
TEST_F(HostIsolationTest, WhereSluiceListensTheKernelGoesOn) {
  ASSERT_EQ(router_.run("ip addr add 10.0.0.1/24 dev x0 && ethtool -K x0 gro on"), 0);
  const auto keys = {"ipv4/conf/x0/rp_filter", "ipv4/conf/x0/arp_ignore", "ipv4/conf/x0/forwarding",
                     "ipv6/conf/x0/disable_ipv6"};
  std::vector<std::string> before, during;
  for (const char* const key : keys) before.push_back(sysctl(key));
  {
    auto guard = HostIsolation::open("x0", HostIsolation::Use::listens);
    ASSERT_TRUE(guard) << guard.error().message;
    EXPECT_TRUE(guard->notes().empty());
    for (const char* const key : keys) during.push_back(sysctl(key));
    EXPECT_EQ(during, before);
    EXPECT_EQ(router_.output("nft list ruleset").find("sluice-x0"), std::string::npos);
    EXPECT_NE(router_.output("ethtool -k x0").find("generic-receive-offload: off"), std::string::npos);
    const std::string report = host_.output("ping -c 2 -i 0.05 -W 1 10.0.0.1 2>&1");
    EXPECT_NE(report.find(" 2 received"), std::string::npos) << report;
  }
  EXPECT_NE(router_.output("ethtool -k x0").find("generic-receive-offload: on"), std::string::npos);
}

TEST_F(HostIsolationTest, RestoresAnInterfaceThatWasRenamed) {
  router_.run("sysctl -qw net.ipv4.conf.x0.arp_ignore=3 && ethtool -K x0 gro on");
  {
    auto guard = HostIsolation::open("x0");
    ASSERT_TRUE(guard) << guard.error().message;
    // And another one gets its name.
    ASSERT_EQ(router_.run("ip link set x0 down && ip link set x0 name y0 && ip link add x0 type veth peer name x1 && "
                          "sysctl -qw net.ipv4.conf.x0.arp_ignore=2"),
              0);
    EXPECT_EQ(sysctl("ipv4/conf/y0/arp_ignore"), "8");
  }
  EXPECT_EQ(sysctl("ipv4/conf/y0/arp_ignore"), "3");
  EXPECT_NE(router_.output("ethtool -k y0").find("generic-receive-offload: on"), std::string::npos);
  EXPECT_EQ(sysctl("ipv4/conf/x0/arp_ignore"), "2");
}

TEST_F(HostIsolationTest, LeavesAnotherInterfaceOfTheNameAlone) {
  router_.run("sysctl -qw net.ipv4.conf.x0.arp_ignore=3");
  {
    auto guard = HostIsolation::open("x0");
    ASSERT_TRUE(guard) << guard.error().message;
    ASSERT_EQ(
        router_.run(
            "ip link del x0 && ip link add x0 type veth peer name x1 && sysctl -qw net.ipv4.conf.x0.arp_ignore=2"),
        0);
  }
  EXPECT_EQ(sysctl("ipv4/conf/x0/arp_ignore"), "2");
}

TEST_F(HostIsolationTest, NamesAddressesThatBelongOnTheTwin) {
  ASSERT_EQ(router_.run("ip addr add 192.0.2.7/24 dev x0"), 0);
  using Use = HostIsolation::Use;
  for (const auto& [use, what] : {std::pair{Use::twin, "move it to the TAP twin"},
                                  std::pair{Use::wire, "while Sluice runs nothing that arrives here comes to it"}}) {
    const auto guard = HostIsolation::open("x0", use);
    ASSERT_TRUE(guard) << guard.error().message;
    ASSERT_EQ(guard->notes().size(), 1U);
    EXPECT_EQ(guard->notes()[0], std::string("'x0' still has the address 192.0.2.7: ") + what);
  }
}

TEST_F(HostIsolationTest, RefusesWithOneSentence) {
  const auto missing = HostIsolation::open("nowhere");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "there is no interface 'nowhere'");
  const auto first = HostIsolation::open("x0");
  ASSERT_TRUE(first) << first.error().message;
  const auto second = HostIsolation::open("x0");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "another Sluice is at work on 'x0' (nft table netdev sluice-x0)");
}

}  // namespace
}  // namespace sluice::port
