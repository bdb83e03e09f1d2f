// The host's thread when the host does not play along: twins that are down or deleted, and kernels that send too much.
#include "engine/host_path.h"

#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <ctime>
#include <functional>
#include <thread>

#include "../tests/support/net_namespace.h"

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using test::NetNamespace;

class HostPathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
    if (access("/dev/net/tun", F_OK) != 0) GTEST_SKIP() << "needs /dev/net/tun";
  }

  // Ports twin0, twin1, ...
  void open(unsigned ports) {
    for (unsigned i = 0; i < ports; ++i) {
      port::PortOptions options;
      options.name = "p" + std::to_string(i);
      options.device = "replay,frames=64";
      options.twin = "twin" + std::to_string(i);
      auto opened = port::Port::open(options, {}, 1);
      ASSERT_TRUE(opened) << opened.error().message;
      ports_.push_back(std::move(*opened));
    }
    auto path = HostPath::create(ports_, 2048, true);
    ASSERT_TRUE(path) << path.error().message;
    path_ = std::move(*path);
    for (unsigned i = 0; i < ports; ++i) {
      path_->set_lane_bell(i, &lane_bell_);
    }
    path_->start();
  }

  void punt(std::size_t port, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      rte_mbuf* frame = nullptr;
      ASSERT_EQ(ports_[port]->rx_burst(0, &frame, 1), 1);
      ASSERT_EQ(path_->host_ports()[port].punt(frame, false), packet::no_reason);
    }
  }

  // The kernel sends frames out of a twin.
  static void send_out_of(const std::string& twin, unsigned count) {
    const int wire = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = static_cast<int>(if_nametoindex(twin.c_str()));
    const std::array<char, 60> frame{};
    for (unsigned i = 0; i < count; ++i) {
      sendto(wire, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    }
    close(wire);
  }

  static bool within(std::chrono::milliseconds time, const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }

  // Of all of this process's threads, of which only the host's has anything to do, while a second passes.
  static double seconds_of_cpu() {
    timespec before;
    timespec after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    std::this_thread::sleep_for(1s);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    return static_cast<double>(after.tv_sec - before.tv_sec) +
           static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e9;
  }

  NetNamespace space_;
  NetNamespace::Entry inside_ = space_.enter();
  Bell lane_bell_;
  std::vector<std::unique_ptr<port::Port>> ports_;
  std::unique_ptr<HostPath> path_;
};

TEST_F(HostPathTest, WhatATwinThatIsDownDoesNotTakeIsCountedForItsPort) {
  open(2);
  punt(1, 3);
  ASSERT_EQ(space_.run("ip link set twin1 down"), 0);
  const std::uint64_t before = path_->losses(1).to_host;
  punt(1, 20);
  EXPECT_TRUE(within(2s, [&] { return path_->losses(1).to_host == before + 20; })) << path_->losses(1).to_host;
  EXPECT_EQ(path_->losses(0).to_host, 0U);
  ASSERT_EQ(space_.run("ip link set twin1 up"), 0);
  punt(1, 20);
  std::this_thread::sleep_for(100ms);
  path_->stop();
  EXPECT_EQ(path_->losses(1).to_host, before + 20);
}

TEST_F(HostPathTest, ADeletedTwinIsSaidOnceAndCostsNothing) {
  open(2);
  testing::internal::CaptureStdout();
  ASSERT_EQ(space_.run("ip link del twin0"), 0);
  const double spent = seconds_of_cpu();
  punt(0, 30);
  EXPECT_TRUE(within(2s, [&] { return path_->losses(0).to_host == 30; })) << path_->losses(0).to_host;
  send_out_of("twin1", 5);
  EXPECT_TRUE(within(2s, [&] { return rte_ring_count(path_->host_ports()[1].from_host) >= 5; }));
  path_->stop();
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_LT(spent, 0.2);
  const std::size_t first = said.find("port p0: TAP twin 'twin0': cannot ");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("port p0", first + 1), std::string::npos) << said;
}

TEST_F(HostPathTest, ATwinWhoseFramesFindNoCapacityIsNotWaitedForWithoutEnd) {
  constexpr unsigned ports = 5;  // the rings of these hold more than all frames that there are
  open(ports);
  for (unsigned port = 0; port < ports; ++port) {
    for (unsigned burst = 0; burst < 10; ++burst) {
      send_out_of("twin" + std::to_string(port), 100);
      std::this_thread::sleep_for(5ms);
    }
  }
  send_out_of("twin4", 100);
  const auto held = [&] {
    unsigned frames = 0;
    for (unsigned port = 0; port < ports; ++port) frames += rte_ring_count(path_->host_ports()[port].from_host);
    return frames;
  };
  ASSERT_TRUE(within(2s, [&] { return held() == 4095; })) << held();
  EXPECT_LT(seconds_of_cpu(), 0.2);
  // A lane takes one, and the kernel's next comes in.
  void* frame = nullptr;
  ASSERT_EQ(rte_ring_sc_dequeue(path_->host_ports()[0].from_host, &frame), 0);
  rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
  EXPECT_TRUE(within(2s, [&] { return held() == 4095; })) << held();
}

TEST_F(HostPathTest, WhatALaneDoesNotTakeIsCounted) {
  open(1);
  for (unsigned burst = 0; burst < 20; ++burst) {
    send_out_of("twin0", 100);
    std::this_thread::sleep_for(5ms);
  }
  // The ring holds 1,023.
  EXPECT_TRUE(within(2s, [&] { return path_->losses(0).from_host >= 2000 - 1023; })) << path_->losses(0).from_host;
  path_->stop();
  EXPECT_GE(path_->losses(0).from_host, 2000U);
}

}  // namespace
}  // namespace sluice::engine
