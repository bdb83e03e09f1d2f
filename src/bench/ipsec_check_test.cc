// That `bench ipsec` sees what is wrong with a frame that leaves, and with the numbers of all.
#include "bench/ipsec_check.h"

#include <gtest/gtest.h>

#include <functional>

#include "bench/sealed_packets.h"
#include "bench/tunnel_by_openssl.h"
#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::cli::bench {
namespace {

using Bytes = std::vector<std::uint8_t>;
using ipsec::Direction;

// What a router makes of the frame.
void route(Bytes& frame) {
  auto& ip = packet::header_at<packet::Ipv4Header>(frame.data(), 14);
  --ip.ttl;
  ip.checksum = packet::ipv4_header_checksum(ip);
}

class IpsecCheckTest : public testing::Test {
 protected:
  // What the check says when `spoil` has changed the packet before it was sealed, or what was opened.
  std::string said(Direction direction, const std::function<void(Bytes& frame)>& spoil) {
    const Bytes came = clear_frame(direction, 2, 200, 1);
    Bytes left = came;
    route(left);
    spoil(left);
    if (direction == Direction::out) {
      const auto sealed = TunnelByOpenssl(tunnels_.sa(direction, 2)).seal(std::span(left).subspan(14), 1).value();
      left.resize(14);
      left.insert(left.end(), sealed.begin(), sealed.end());
    }
    IpsecCheck check(tunnels_, 1);
    check.frame(0, direction, 2, came, left);
    EXPECT_EQ(check.sealed + check.opened, 1U);
    return check.wrong(true);
  }
  IpsecTunnels tunnels_ = IpsecTunnels::make("aes128-sha1", 4).value();
};

TEST_F(IpsecCheckTest, SeesWhatIsWrong) {
  const struct {
    const char* wrong;  // a part of what is said
    std::function<void(Bytes& frame)> spoil;
  } cases[] = {
      {"is not what went in", [](Bytes& frame) { frame[150] ^= 1; }},
      {"is not what went in", [](Bytes& frame) { frame.back() ^= 1; }},
      {"another TTL", [](Bytes& frame) { route(frame); }},
      {"wrong IPv4 checksum", [](Bytes& frame) { frame[24] ^= 1; }},
      {"other headers", [](Bytes& frame) { frame[15] = 4; }},
  };
  for (const Direction direction : {Direction::out, Direction::in}) {
    EXPECT_EQ(said(direction, [](Bytes&) {}), "");
    for (const auto& one : cases) {
      EXPECT_NE(said(direction, one.spoil).find(one.wrong), std::string::npos) << one.wrong;
    }
    EXPECT_NE(said(direction, [](Bytes& frame) { frame.pop_back(); }), "");
  }
}

TEST_F(IpsecCheckTest, WhatLeftInClearWasNotSealed) {
  Bytes frame = clear_frame(Direction::out, 2, 200, 1);
  const Bytes came = frame;
  route(frame);
  IpsecCheck check(tunnels_, 1);
  check.frame(0, Direction::out, 2, came, frame);
  EXPECT_NE(check.wrong(false).find("OpenSSL does not open what left"), std::string::npos) << check.wrong(false);
}

TEST(IpsecNumbers, AreThoseFromOneOnEachOnceAndInTheOrderOfALane) {
  using Lane = std::vector<LeftNumber>;
  const struct {
    std::vector<Lane> lanes;
    const char* wrong;
  } cases[] = {
      {{}, ""},
      {{{{7, 1}, {7, 2}, {9, 1}}}, ""},
      {{{{7, 1}, {7, 4}}, {{7, 2}, {7, 3}, {7, 5}}}, ""},
      {{{{7, 2}}}, "tunnel 7: number 1 has not left"},
      {{{{7, 1}, {7, 4}}, {{7, 2}, {7, 5}}}, "tunnel 7: number 3 has not left"},
      {{{{7, 1}, {7, 2}}, {{7, 2}, {7, 3}}}, "tunnel 7: number 2 left twice"},
      {{{{7, 1}, {7, 3}, {7, 2}}}, "tunnel 7: number 2 left a lane behind 3"},
      {{{{7, 0}, {7, 1}}}, "tunnel 7: number 0 left a lane behind 0"},
  };
  for (const auto& one : cases) EXPECT_EQ(wrong_numbers(one.lanes), one.wrong);
}

}  // namespace
}  // namespace sluice::cli::bench
