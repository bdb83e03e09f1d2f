// Each property of a forwarded frame, broken one at a time, is found out; and the reference agrees with the definition
// of longest-prefix match.
#include "bench/frame_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "bench/route_reference.h"
#include "packet/builder.h"
#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::cli::bench {
namespace {

constexpr Mac ports[2] = {{2, 0, 0, 0, 0, 0xa}, {2, 0, 0, 0, 0, 0xb}};
constexpr Mac hops[2] = {{2, 0, 0, 0, 1, 1}, {2, 0, 0, 0, 1, 2}};
using Frame = std::vector<std::uint8_t>;

Frame made(int family) {
  packet::PacketBuilder builder;
  builder.eth("02:00:00:00:00:01", "02:00:00:00:00:0a");
  family == 4 ? builder.ipv4("10.0.0.1", "20.0.0.1") : builder.ipv6("2001:db8::1", "2001:db8::2");
  return builder.ttl(255).udp(7, 9).payload(30).build();
}

// As the router changes it: the product's own incremental checksum, which the check knows nothing of.
void forward(Frame& frame, int hop) {
  std::copy(hops[hop].begin(), hops[hop].end(), frame.begin());
  std::copy(ports[hop].begin(), ports[hop].end(), frame.begin() + 6);
  if (frame[12] == 0x86) {
    --frame[14 + 7];
  } else {
    packet::decrement_ttl(*reinterpret_cast<packet::Ipv4Header*>(frame.data() + 14));
  }
}

struct Breakage {
  const char* name;
  Fault fault;
  std::function<void(Frame& frame, std::uint16_t& port)> make;
  bool ipv6_too = true;
};

// Puts the header checksum right again, so that nothing but the change in question is wrong.
void set_checksum(Frame& frame) {
  frame[24] = frame[25] = 0;
  std::uint32_t sum = 0;
  for (unsigned at = 14; at < 34; at += 2) {
    sum += static_cast<std::uint32_t>(frame[at] << 8 | frame[at + 1]);
  }
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  frame[24] = static_cast<std::uint8_t>(~sum >> 8);
  frame[25] = static_cast<std::uint8_t>(~sum);
}

void add_to_ttl(Frame& frame, int change) {
  std::uint8_t& ttl = frame[14 + (frame[12] == 0x86 ? 7 : 8)];
  ttl = static_cast<std::uint8_t>(ttl + change);
  if (frame[12] == 0x08) {
    set_checksum(frame);
  }
}

const Breakage breakages[] = {
    {"nothing", Fault::none, [](Frame&, std::uint16_t&) {}},
    {"TTL as it was", Fault::ttl, [](Frame& frame, std::uint16_t&) { add_to_ttl(frame, 1); }},
    {"TTL two lower", Fault::ttl, [](Frame& frame, std::uint16_t&) { add_to_ttl(frame, -1); }},
    {"checksum", Fault::checksum, [](Frame& frame, std::uint16_t&) { frame[25] ^= 1; }, false},
    {"checksum of before", Fault::checksum, [](Frame& frame, std::uint16_t&) { frame[24] -= 1; }, false},
    {"source address", Fault::source_mac, [](Frame& frame, std::uint16_t&) { frame[11] ^= 1; }},
    {"next hop", Fault::next_hop, [](Frame& frame, std::uint16_t&) { frame[5] = 9; }},
    {"port", Fault::port, [](Frame&, std::uint16_t& port) { port ^= 1; }},
    {"destination", Fault::content, [](Frame& frame, std::uint16_t&) { frame[33] ^= 1; }},
    {"last byte", Fault::content, [](Frame& frame, std::uint16_t&) { frame.back() ^= 1; }},
    {"length", Fault::content, [](Frame& frame, std::uint16_t&) { frame.pop_back(); }},
};

TEST(FrameCheck, FindsEachFaultOut) {
  const FrameCheck check({ports[0], ports[1]}, 0);
  for (const int family : {4, 6}) {
    for (const Breakage& breakage : breakages) {
      if (family == 6 && !breakage.ipv6_too) {
        continue;
      }
      const Frame pristine = made(family);
      Wire wire{&pristine, {{0, hops[0]}, {1, hops[1]}}, 0, -1};
      Frame frame = pristine;
      for (int round = 1; round <= 3; ++round) {
        forward(frame, 1);
        ASSERT_EQ(check.check(wire, 1, frame.data(), frame.size()), Fault::none) << family << " " << round;
      }
      std::uint16_t port = 1;
      forward(frame, 1);
      breakage.make(frame, port);
      EXPECT_EQ(check.check(wire, port, frame.data(), frame.size()), breakage.fault) << family << " " << breakage.name;
    }
  }
}

TEST(FrameCheck, AFlowThatChangesItsMemberIsFoundOut) {
  const FrameCheck check({ports[0], ports[1]}, 0);
  const Frame pristine = made(4);
  Wire wire{&pristine, {{0, hops[0]}, {1, hops[1]}}, 0, -1};
  Frame frame = pristine;
  forward(frame, 0);
  EXPECT_EQ(check.check(wire, 0, frame.data(), frame.size()), Fault::none);
  forward(frame, 1);
  EXPECT_EQ(check.check(wire, 1, frame.data(), frame.size()), Fault::flow);
}

TEST(FrameCheck, AFrameIsWrittenAnewOnceInARefreshAndNotBefore) {
  const FrameCheck check({ports[0], ports[1]}, 10);
  const Frame pristine = made(6);
  Wire wire{&pristine, {{0, hops[0]}}, 0, -1};
  Frame frame = pristine;
  for (int round = 0; round < 8; ++round) {
    forward(frame, 0);
    ASSERT_EQ(check.check(wire, 0, frame.data(), frame.size()), Fault::none) << round;
  }
  for (const Fault expected : {Fault::none, Fault::ttl}) {
    frame = pristine;
    forward(frame, 0);
    EXPECT_EQ(check.check(wire, 0, frame.data(), frame.size()), expected);
  }
}

std::string random_prefix(int family, std::mt19937& random) {
  const unsigned length = family == 4 ? random() % 33 : random() % 129;
  std::string address = "20.";
  if (family == 4) {
    address +=
        std::to_string(random() % 3) + "." + std::to_string(random() % 3 * 100) + "." + std::to_string(random() % 256);
  } else {
    address = "2001:" + std::to_string(random() % 3) + "::" + std::to_string(random() % 1000);
  }
  return address + "/" + std::to_string(length);
}

TEST(RouteReference, FindsTheLongestPrefixAsLookingAtEachDoes) {
  std::mt19937 random(3);
  RouteReference reference;
  for (const int family : {4, 6}) {
    std::vector<RouteReference::Prefix> all;
    for (int i = 0; i < 300; ++i) {
      all.push_back(RouteReference::Prefix::parse(random_prefix(family, random)));
      ASSERT_EQ(all.back().address.family, family);
      reference.set(all.back(), {static_cast<std::uint8_t>(1 + i % 254)});
      if (i % 5 == 4) {
        reference.remove(all[random() % all.size()]);
      }
    }
    unsigned found = 0;
    for (int i = 0; i < 2000; ++i) {
      const std::string text = random_prefix(family, random);
      const auto address = RouteReference::Address::parse(text.substr(0, text.find('/')));
      const auto* quick = reference.find(address);
      const auto* slow = reference.find_slowly(address);
      ASSERT_EQ(quick, slow) << text;
      found += quick != nullptr;
    }
    EXPECT_GT(found, 100U);
  }
  EXPECT_EQ(RouteReference::Prefix::parse("1.0.0.0/33").address.family, 0);
  EXPECT_EQ(RouteReference::Prefix::parse("router/8").address.family, 0);
}

}  // namespace
}  // namespace sluice::cli::bench
