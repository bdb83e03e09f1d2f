#include "port/replay_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace sluice::port {
namespace {

TEST(AttackRequest, IsOneWholeRequestThatHoldsTheContents) {
  const std::vector<std::string> pieces = {"a b\r\n\r\nGET /", std::string("\0\1%", 3), "../../etc/passwd", "cmd.exe?"};
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < 100; ++i) {
    const std::string request = attack_request(pieces, random);
    EXPECT_THAT(request, testing::StartsWith("GET /"));
    EXPECT_EQ(request.find("\r\n\r\n"), request.size() - 4);
    EXPECT_THAT(request, testing::HasSubstr("../../etc/passwd"));
    EXPECT_LE(request.size(), 1400U);
    const std::string_view line = std::string_view(request).substr(0, request.find("\r\n"));
    EXPECT_EQ(std::ranges::count(line, ' '), 2) << line;
    EXPECT_THAT(std::string(line), testing::EndsWith(" HTTP/1.1"));
  }
}

}  // namespace
}  // namespace sluice::port
