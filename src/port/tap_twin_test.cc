#include "port/tap_twin.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <vector>

#include "../tests/support/net_namespace.h"

namespace sluice::port {
namespace {

using test::NetNamespace;

const packet::MacAddress mac{{0x02, 0x10, 0x20, 0x30, 0x40, 0x50}};

class TapTwinTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
    if (access("/dev/net/tun", F_OK) != 0) GTEST_SKIP() << "needs /dev/net/tun";
  }

  // The first frame of `ethertype` that the kernel sends out of the twin within a second.
  static std::vector<std::byte> next_frame(TapTwin& twin, std::uint16_t ethertype) {
    std::array<std::byte, 2048> buffer;
    pollfd ready{twin.fd(), POLLIN, 0};
    while (poll(&ready, 1, 1000) > 0) {
      const auto length = twin.read(buffer);
      if (!length || *length < 14) break;
      const auto type = std::to_integer<unsigned>(buffer[12]) << 8 | std::to_integer<unsigned>(buffer[13]);
      if (type == ethertype) return {buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*length)};
    }
    return {};
  }

  NetNamespace space_;
  NetNamespace::Entry inside_ = space_.enter();
};

TEST_F(TapTwinTest, HasThePortsAddressAndMtuAndGoesWithTheObject) {
  {
    auto twin = TapTwin::open("sl-lan", mac, 1400);
    ASSERT_TRUE(twin) << twin.error().message;
    const std::string link = space_.output("ip -o link show sl-lan");
    EXPECT_NE(link.find("02:10:20:30:40:50"), std::string::npos) << link;
    EXPECT_NE(link.find("mtu 1400"), std::string::npos) << link;
    EXPECT_NE(link.find("LOWER_UP"), std::string::npos) << link;
    const std::string offloads = space_.output("ethtool -k sl-lan");
    EXPECT_NE(offloads.find("tx-checksumming: off"), std::string::npos) << offloads;
    EXPECT_NE(offloads.find("tcp-segmentation-offload: off"), std::string::npos) << offloads;
  }
  EXPECT_EQ(if_nametoindex("sl-lan"), 0U);
}

TEST_F(TapTwinTest, PassesFramesBothWays) {
  auto twin = TapTwin::open("sl-lan", mac, 1500);
  ASSERT_TRUE(twin) << twin.error().message;
  ASSERT_EQ(space_.run("ip addr add 10.0.0.1/24 dev sl-lan"), 0);
  // "Who has 10.0.0.1? Tell 10.0.0.2": the kernel answers out of the twin.
  const std::array<std::uint8_t, 42> request = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0,  2, 8, 6,
                                                0,    1,    8,    0,    6,    4,    0, 1, 2, 0, 0,  0, 0, 2,
                                                10,   0,    0,    2,    0,    0,    0, 0, 0, 0, 10, 0, 0, 1};
  const auto written = twin->write(std::as_bytes(std::span(request)));
  ASSERT_TRUE(written && *written);
  const auto reply = next_frame(*twin, 0x0806);
  ASSERT_GE(reply.size(), 42U);
  EXPECT_EQ(std::to_integer<int>(reply[21]), 2);  // a reply
  EXPECT_TRUE(std::equal(mac.bytes.begin(), mac.bytes.end(), reinterpret_cast<const std::uint8_t*>(&reply[22])));
}

TEST_F(TapTwinTest, ReadsNothingWhenNothingIsThere) {
  ASSERT_EQ(space_.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1"), 0);
  auto twin = TapTwin::open("sl-lan", mac, 1500);
  ASSERT_TRUE(twin) << twin.error().message;
  std::array<std::byte, 2048> buffer;
  const auto length = twin->read(buffer);
  ASSERT_TRUE(length);
  EXPECT_EQ(*length, 0U);
}

TEST_F(TapTwinTest, DoesNotTakeWhatTheKernelRefuses) {
  auto twin = TapTwin::open("sl-lan", mac, 1500);
  ASSERT_TRUE(twin) << twin.error().message;
  const std::array<std::byte, 60> frame{};
  EXPECT_EQ(twin->write(std::span(frame).first(5)).value_or(true), false);
  ASSERT_EQ(space_.run("ip link set sl-lan down"), 0);
  EXPECT_EQ(twin->write(frame).value_or(true), false);
}

TEST_F(TapTwinTest, SaysWhenTheInterfaceIsDeletedUnderIt) {
  auto twin = TapTwin::open("sl-lan", mac, 1500);
  ASSERT_TRUE(twin) << twin.error().message;
  ASSERT_EQ(space_.run("ip link del sl-lan"), 0);
  std::array<std::byte, 2048> buffer;
  EXPECT_NE(twin->read(buffer).error().message.find("sl-lan"), std::string::npos);
}

TEST_F(TapTwinTest, ShowsTheCarrier) {
  auto twin = TapTwin::open("sl-lan", mac, 1500);
  ASSERT_TRUE(twin) << twin.error().message;
  ASSERT_TRUE(twin->set_carrier(false));
  EXPECT_NE(space_.output("ip -o link show sl-lan").find("NO-CARRIER"), std::string::npos);
  ASSERT_TRUE(twin->set_carrier(true));
  EXPECT_EQ(space_.output("ip -o link show sl-lan").find("NO-CARRIER"), std::string::npos);
}

TEST_F(TapTwinTest, TakesOverAPersistentTapAndLeavesIt) {
  ASSERT_EQ(space_.run("ip tuntap add sl-wan mode tap && ip addr add 10.9.0.1/24 dev sl-wan"), 0);
  {
    auto twin = TapTwin::open("sl-wan", mac, 1500);
    ASSERT_TRUE(twin) << twin.error().message;
    auto second = TapTwin::open("sl-wan", mac, 1500);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message, "the TAP interface 'sl-wan' is in use by another program");
    const auto looked = TapTwin::check_name("sl-wan");
    ASSERT_FALSE(looked);
    EXPECT_EQ(looked.error().message, second.error().message);
  }
  EXPECT_TRUE(TapTwin::check_name("sl-wan")) << "nobody has it";
  EXPECT_TRUE(TapTwin::check_name("sl-none")) << "there is none";
  EXPECT_NE(space_.output("ip -o addr show sl-wan").find("10.9.0.1/24"), std::string::npos);
}

TEST_F(TapTwinTest, RefusesWithOneSentence) {
  ASSERT_EQ(space_.run("ip link add taken type veth peer name other"), 0);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"taken", "an interface named 'taken' exists and is no TAP: choose another name for the twin"},
      {"a/b", "'a/b' cannot be the name of an interface"},
      {"", "the name of a TAP twin has 1 to 15 characters, '' has 0"},
      {"much-too-long-name", "the name of a TAP twin has 1 to 15 characters, 'much-too-long-name' has 18"},
  };
  for (const auto& [name, message] : cases) {
    const auto twin = TapTwin::open(name, mac, 1500);
    ASSERT_FALSE(twin) << name;
    EXPECT_EQ(twin.error().message, message);
  }
  // A TUN takes no frames.
  ASSERT_EQ(space_.run("ip tuntap add tunnel mode tun"), 0);
  for (const std::string name : {"taken", "tunnel"}) {
    const auto twin = TapTwin::open(name, mac, 1500);
    const auto looked = TapTwin::check_name(name);
    ASSERT_FALSE(twin) << name;
    ASSERT_FALSE(looked) << name;
    EXPECT_EQ(looked.error().message, twin.error().message);
  }
  const auto huge = TapTwin::open("sl-lan", mac, 1000000);
  ASSERT_FALSE(huge);
  EXPECT_NE(huge.error().message.find("cannot set the MTU 1000000"), std::string::npos) << huge.error().message;
  EXPECT_EQ(if_nametoindex("sl-lan"), 0U);
}

}  // namespace
}  // namespace sluice::port
