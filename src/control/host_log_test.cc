#include "control/host_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../tests/support/captured_log.h"

namespace sluice::control {
namespace {

class HostLogTest : public testing::Test {
 protected:
  std::string after(const auto& state) {
    logged_.take();
    log_.look(state);
    return logged_.take();
  }

  test::CapturedLog logged_;
  HostLog log_;
};

TEST_F(HostLogTest, ATwinThatIsSetDownIsSaidOnceAndOnceThatItIsBack) {
  using Twins = std::vector<HostLog::Twin>;
  const Twins up = {{"lan", "sl-lan", false}, {"wan", "sl-wan", false}};
  const Twins down = {{"lan", "sl-lan", false}, {"wan", "sl-wan", true}};
  EXPECT_EQ(after(up), "");
  EXPECT_EQ(after(down),
            "warning port wan: its twin sl-wan is down, and the host gets no frames of it: ip link set sl-wan up\n");
  EXPECT_EQ(after(down), "");
  EXPECT_EQ(after(up), "info port wan: its twin sl-wan is up again\n");
  EXPECT_EQ(after(up), "");
  EXPECT_NE(after(down), "");
  EXPECT_EQ(after(Twins{{"lan", "sl-lan", false}}), "") << "what was deleted is not back";
}

TEST_F(HostLogTest, ATwinWithoutAnAddressIsSaidAfterAWhile) {
  using Twins = std::vector<HostLog::Twin>;
  const Twins bare = {{"lan", "sl-lan", false, true}};
  const Twins addressed = {{"lan", "sl-lan", false, false}};
  for (int look = 0; look < 9; ++look) EXPECT_EQ(after(bare), "") << "the administrator is at it";
  EXPECT_EQ(after(addressed), "");
  for (int look = 0; look < 9; ++look) EXPECT_EQ(after(bare), "");
  EXPECT_EQ(after(bare).rfind("warning port lan: its twin sl-lan has no address, so that", 0), 0U);
  EXPECT_EQ(after(bare), "");
  EXPECT_EQ(after(addressed), "info port lan: its twin sl-lan has an address\n");
}

TEST_F(HostLogTest, ALowerMtuIsSaidOnceAndOnceThatItIsBack) {
  using Mtus = std::vector<HostLog::Mtu>;
  const std::string lowered =
      "warning port lan: the MTU of eth1 is 1300 now, smaller than the port's 1500: longer packets do not pass there\n";
  EXPECT_EQ(after(Mtus{{"lan", "eth1", 1500, 9000}}), "");
  EXPECT_EQ(after(Mtus{{"lan", "eth1", 1500, 1300}}), lowered);
  EXPECT_EQ(after(Mtus{{"lan", "eth1", 1500, 1300}}), "");
  EXPECT_NE(after(Mtus{{"lan", "eth1", 1500, 1200}}), "");
  EXPECT_EQ(after(Mtus{{"lan", "eth1", 1500, 1500}}), "info port lan: the MTU of eth1 is 1500 again\n");
  EXPECT_EQ(after(Mtus{{"lan", "eth1", 1500, 1300}}), lowered);
  EXPECT_EQ(after(Mtus{{"lan", "eth1", 1500, 0}}), "") << "what was deleted is not back";
}

TEST_F(HostLogTest, ForwardingIsSaidWhenItChanges) {
  const ForwardingOff one{"IPv4 forwarding is off on sl-a", "net.ipv4.conf.sl-a.forwarding=1"};
  const ForwardingOff both{"IPv4 forwarding is off on sl-a, sl-b", "net.ipv4.ip_forward=1"};
  EXPECT_EQ(after(ForwardingOff{}), "");
  EXPECT_EQ(after(one), "warning " + forwarding_warning(one) + "\n");
  EXPECT_EQ(after(one), "");
  EXPECT_EQ(after(both), "warning " + forwarding_warning(both) + "\n");
  EXPECT_EQ(after(ForwardingOff{}), "info kernel: IPv4 and IPv6 forwarding is on again\n");
  EXPECT_EQ(after(ForwardingOff{}), "");
}

}  // namespace
}  // namespace sluice::control
