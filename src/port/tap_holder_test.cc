#include "port/tap_holder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../tests/support/net_namespace.h"

namespace sluice::port {
namespace {

using test::NetNamespace;

class TapHolderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
    if (access("/dev/net/tun", F_OK) != 0) GTEST_SKIP() << "needs /dev/net/tun";
  }

  // A queue of it, or -1. `flags`: IFF_MULTI_QUEUE, as DPDK opens it, or 0.
  static int hold(const std::string& name, short flags) {
    const int queue = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | flags);
    if (ioctl(queue, TUNSETIFF, &request) < 0) {
      close(queue);
      return -1;
    }
    return queue;
  }

  NetNamespace space_;
  NetNamespace::Entry inside_ = space_.enter();
};

TEST_F(TapHolderTest, ATapIsHeldWhileAProgramHasItUpOrDown) {
  for (const short flags : {short{IFF_MULTI_QUEUE}, short{0}}) {
    const int queue = hold("t0", flags);
    ASSERT_GE(queue, 0);
    EXPECT_TRUE(tap_is_held("t0").value()) << "down";
    ASSERT_EQ(space_.run("ip link set t0 up"), 0);
    EXPECT_TRUE(tap_is_held("t0").value()) << "up";
    int carrier = 0;
    ASSERT_EQ(ioctl(queue, TUNSETCARRIER, &carrier), 0);
    EXPECT_TRUE(tap_is_held("t0").value()) << "without a carrier";
    close(queue);
    EXPECT_FALSE(tap_is_held("t0").value()) << "gone";
  }
}

TEST_F(TapHolderTest, APersistentOneIsHeldOnlyWhileAProgramHasIt) {
  for (const char* kind : {"multi_queue", ""}) {
    ASSERT_EQ(space_.run(std::string("ip tuntap add t1 mode tap ") + kind + " && ip link set t1 up"), 0);
    EXPECT_FALSE(tap_is_held("t1").value()) << kind;
    const int queue = hold("t1", *kind != 0 ? IFF_MULTI_QUEUE : 0);
    ASSERT_GE(queue, 0);
    EXPECT_TRUE(tap_is_held("t1").value()) << kind;
    close(queue);
    EXPECT_FALSE(tap_is_held("t1").value()) << kind;
    ASSERT_EQ(space_.run("ip link del t1"), 0);
  }
}

TEST_F(TapHolderTest, WhatIsNoTapIsHeldByNobody) {
  ASSERT_EQ(space_.run("ip link set lo up && ip link add v0 type veth peer name v1"), 0);
  for (const char* interface : {"lo", "v0", "nosuch0"}) {
    EXPECT_FALSE(tap_is_held(interface).value()) << interface;
  }
}

}  // namespace
}  // namespace sluice::port
