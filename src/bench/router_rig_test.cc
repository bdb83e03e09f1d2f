#include "bench/router_rig.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace sluice::cli::bench {
namespace {

// Chance alone leaves IPv4 out of about one in eight of these.
TEST(RouterTable, AFileOfOneRouteHasDestinationsBehindIt) {
  BenchOptions options;
  options.table = testing::TempDir() + "sluice_one_route_" + std::to_string(getpid());
  for (const char* prefix : {"198.51.100.7", "0.0.0.0/0"}) {
    std::ofstream(options.table) << prefix << "\n";
    for (std::size_t ipv6 = 20; ipv6 < 50; ++ipv6) {
      auto routes = RouterTable::read(options);
      ASSERT_TRUE(routes) << routes.error().message;
      const auto table = RouterTable::make(std::move(*routes), {0, ipv6});
      ASSERT_TRUE(table) << table.error().message;
      std::ifstream destinations((*table)->destinations_path());
      unsigned count4 = 0;
      for (std::string line; std::getline(destinations, line);) {
        count4 += packet::IpAddress::parse(line)->family == 4;
      }
      EXPECT_NE(count4, 0U) << prefix << " beside " << ipv6;
    }
  }
  unlink(options.table.c_str());
}

}  // namespace
}  // namespace sluice::cli::bench
