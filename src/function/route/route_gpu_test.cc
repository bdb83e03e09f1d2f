// What the worker is made to do for route changes; what the tables answer meanwhile is lookup/'s to test.
#include <gtest/gtest.h>

#include <chrono>

#include "../tests/support/gpu.h"
#include "function/route/route.h"

namespace sluice::function {
namespace {

TEST(RouterOnGpu, AStreamOfChangesGoesUpOnceAMillisecond) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  auto gpu = device::Gpu::open(0, 2);
  ASSERT_TRUE(gpu) << gpu.error().message;
  engine::PortInfo port;
  port.name = "wan";
  Router::RouterOptions options;
  options.max_ipv4 = options.max_ipv6 = 1000;
  Router router(options, engine::PortTable({port}));
  ASSERT_TRUE(router.prepare({}));
  ASSERT_TRUE(router.attach(**gpu, {1, 4, 64, 1514}));
  device::GpuStream& stream = (*gpu)->stream(0);
  const Route route{
      *packet::IpPrefix::parse("203.0.113.0/24"), RouteKind::unicast, {{0, *packet::IpAddress::parse("10.0.0.1"), 1}}};
  ASSERT_TRUE(router.table().add_route(route));
  while (!router.device_ready(0)) {
    ASSERT_TRUE(router.begin_cycle(0, stream));
  }
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  int cycles = 0;
  int syncs = 0;
  for (bool there = true; syncs < 20; ++cycles) {
    ASSERT_TRUE(there ? router.table().remove_route(route.prefix, 0) : router.table().add_route(route));
    there = !there;
    ASSERT_FALSE(router.devices_follow());
    ASSERT_TRUE(router.begin_cycle(0, stream));
    syncs += router.devices_follow();
    ASSERT_LT(Clock::now() - begin, std::chrono::seconds(20)) << "the changes do not go up";
  }
  // The first may have come at once.
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(19));
}

}  // namespace
}  // namespace sluice::function
