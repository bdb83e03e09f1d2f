// For tests of the mirror against a real kernel: each has a namespace of its own, two TAP twins (ports 0 and 1) and an
// interface that is no twin.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "../tests/support/net_namespace.h"
#include "control/netlink/mirror.h"
#include "control/netlink/recording_plane.h"
#include "port/tap_twin.h"

namespace sluice::control {

using namespace std::chrono_literals;
using netlink::RecordingPlane;
using test::NetNamespace;

class MirrorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
    if (access("/dev/net/tun", F_OK) != 0) GTEST_SKIP() << "needs /dev/net/tun";
    kernel("sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
    for (const std::string name : {"sl-a", "sl-b"}) {
      auto twin =
          port::TapTwin::open(name, packet::MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(name[3])}}, 1500);
      ASSERT_TRUE(twin) << twin.error().message;
      twins_.push_back(std::move(*twin));
    }
    kernel(
        "ip link set lo up && ip link add mgmt type veth peer name mgmt1 && ip link set mgmt up && ip link set mgmt1 "
        "up");
    kernel("ip addr add 10.0.0.1/24 dev sl-a && ip addr add 10.0.1.1/24 dev sl-b && ip addr add 10.0.9.1/24 dev mgmt");
    kernel("ip addr add 2001:db8:a::1/64 dev sl-a && ip addr add 2001:db8:b::1/64 dev sl-b");
    options_.twins = {{0, "sl-a"}, {1, "sl-b"}};
    options_.resync_pause = 1ms;
  }

  void start() {
    auto mirror = NetlinkMirror::open(options_, plane_);
    ASSERT_TRUE(mirror) << mirror.error().message;
    mirror_ = std::move(*mirror);
    const auto started = mirror_->start();
    ASSERT_TRUE(started) << started.error().message;
    settle();
  }

  void kernel(const std::string& command) { ASSERT_EQ(space_.run(command), 0) << command; }

  // Runs a command and then the mirror until nothing more comes.
  void change(const std::string& command) {
    kernel(command);
    settle();
  }
  void settle() {
    pollfd ready{mirror_->fd(), POLLIN, 0};
    ASSERT_TRUE(mirror_->tick(NetlinkMirror::Clock::now()));
    while (poll(&ready, 1, 30) > 0 || !mirror_->settled()) {
      const auto done = mirror_->process();
      ASSERT_TRUE(done) << done.error().message;
      ASSERT_TRUE(mirror_->tick(NetlinkMirror::Clock::now()));
    }
    EXPECT_EQ(mirror_->stats().malformed, 0U);
    EXPECT_EQ(mirror_->stats().refusals, 0U) << mirror_->stats().last_refusal;
  }
  template <typename Condition>
  void settle_until(Condition reached) {
    const auto deadline = NetlinkMirror::Clock::now() + 5s;
    do settle();
    while (!reached() && NetlinkMirror::Clock::now() < deadline);
  }
  // What a mirror that starts now announces must be what ours has announced so far.
  void expect_as_fresh() {
    RecordingPlane fresh;
    auto mirror = NetlinkMirror::open(options_, fresh);
    ASSERT_TRUE(mirror) << mirror.error().message;
    const auto started = (*mirror)->start();
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_EQ(fresh.routes.size(), plane_.routes.size());
    EXPECT_TRUE(fresh.routes == plane_.routes);
    EXPECT_TRUE(fresh.neighbours == plane_.neighbours);
    EXPECT_TRUE(fresh.links == plane_.links);
  }

  NetNamespace space_;
  NetNamespace::Entry inside_ = space_.enter();
  std::vector<port::TapTwin> twins_;
  MirrorOptions options_;
  RecordingPlane plane_;
  std::unique_ptr<NetlinkMirror> mirror_;
};

}  // namespace sluice::control
