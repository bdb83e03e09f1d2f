#include "function/srtp/rtsp/client_counts.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::function::rtsp {
namespace {

packet::IpAddress address(const char* text) {
  return *packet::IpAddress::parse(text);
}

TEST(ClientCounts, AClientHasItsShareAndNoMore) {
  ClientCounts counts;
  std::vector<ClientCounts::Share> shares;
  for (const char* client : {"10.1.0.2", "10.1.0.2", "10.1.0.3", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"}) {
    auto share = counts.take(address(client), 2);
    ASSERT_TRUE(share) << client;
    shares.push_back(std::move(*share));
  }
  EXPECT_FALSE(counts.take(address("10.1.0.2"), 2));
  EXPECT_FALSE(counts.take(address("2001:db8::3"), 2)) << "out of the same /64";
  EXPECT_TRUE(counts.take(address("10.1.0.3"), 2));
  EXPECT_EQ(counts.clients(), 4U);
  shares.clear();
  EXPECT_EQ(counts.clients(), 0U) << "nothing is kept of those that have gone";
  EXPECT_TRUE(counts.take(address("10.1.0.2"), 1));
}

}  // namespace
}  // namespace sluice::function::rtsp
