#include "function/vxlan/next_hops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::function {
namespace {

using testing::HasSubstr;
using testing::Not;

packet::IpAddress address(const char* text) {
  return *packet::IpAddress::parse(text);
}

// TEST-NET-1 (RFC 5737) is no host's.
TEST(NextHops, SayThatTheTunnelsOwnAddressIsNotHere) {
  auto hops = NextHops::open({});
  ASSERT_TRUE(hops) << hops.error().message;
  const NextHop hop = hops->find(address("192.0.2.77"), address("192.0.2.1"));
  EXPECT_FALSE(hop.resolved);
  EXPECT_THAT(hop.why, HasSubstr("no interface here has the tunnel's address, local = \"192.0.2.77\""));
}

TEST(NextHops, SayWhatIsWrongWithTheRemoteOfAnAddressThatIsHere) {
  auto hops = NextHops::open({});
  ASSERT_TRUE(hops) << hops.error().message;
  const NextHop hop = hops->find(address("127.0.0.1"), address("127.0.0.1"));
  EXPECT_FALSE(hop.resolved);
  EXPECT_THAT(hop.why, Not(HasSubstr("tunnel's address")));
  EXPECT_NE(hop.why, "");
}

}  // namespace
}  // namespace sluice::function
