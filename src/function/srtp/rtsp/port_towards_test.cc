// Which interface the routes of this host name.
#include "function/srtp/rtsp/port_towards.h"

#include <gtest/gtest.h>

namespace sluice::function::rtsp {
namespace {

TEST(PortTowards, IsWhereTheRouteLeads) {
  const auto own = *packet::IpAddress::parse("127.0.0.1");
  EXPECT_EQ(port_towards(own, {"lo"}), 0);
  EXPECT_EQ(port_towards(own, {"other", "", "lo"}), 2);
  EXPECT_EQ(port_towards(own, {"other", ""}), std::nullopt) << "elsewhere";
  EXPECT_EQ(port_towards(*packet::IpAddress::parse("255.255.255.255"), {}), std::nullopt);
}

}  // namespace
}  // namespace sluice::function::rtsp
