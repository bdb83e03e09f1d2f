#include "ipsec/selector.h"

#include <gtest/gtest.h>

#include "ipsec/ipsec_trial_test.h"

namespace sluice::ipsec {
namespace {

using test::flow;
using test::selector;

TEST(Selector, MatchesByAllOfItsFields) {
  struct Case {
    Selector selector;
    FlowKey key;
    bool matches;
  };
  FlowKey without_ports = flow("10.0.0.1", "10.1.0.1");
  without_ports.has_ports = false;
  without_ports.source_port = without_ports.destination_port = 0;
  const Case cases[] = {
      {selector("10.0.0.0/8", "10.1.0.0/16"), flow("10.0.0.1", "10.1.2.3"), true},
      {selector("10.0.0.0/8", "10.1.0.0/16"), flow("10.0.0.1", "10.2.2.3"), false},
      {selector("10.0.0.0/8", "10.1.0.0/16"), flow("11.0.0.1", "10.1.2.3"), false},
      {selector("0.0.0.0/0", "0.0.0.0/0"), flow("11.0.0.1", "10.1.2.3"), true},
      {selector("0.0.0.0/0", "0.0.0.0/0"), flow("2001:db8::1", "2001:db8::2"), false},
      {selector("2001:db8::/127", "::/0"), flow("2001:db8::1", "::1"), true},
      {selector("2001:db8::/127", "::/0"), flow("2001:db8::2", "::1"), false},
      {selector("10.0.0.1", "10.1.0.1", 17), flow("10.0.0.1", "10.1.0.1", 17), true},
      {selector("10.0.0.1", "10.1.0.1", 6), flow("10.0.0.1", "10.1.0.1", 17), false},
      {selector("10.0.0.1", "10.1.0.1", 17, {1000, 0xffff}), flow("10.0.0.1", "10.1.0.1"), true},
      {selector("10.0.0.1", "10.1.0.1", 17, {1001, 0xffff}), flow("10.0.0.1", "10.1.0.1"), false},
      {selector("10.0.0.1", "10.1.0.1", 17, {}, {2000, 0xffff}), flow("10.0.0.1", "10.1.0.1"), true},
      {selector("10.0.0.1", "10.1.0.1", 17, {}, {1000, 0xffff}), flow("10.0.0.1", "10.1.0.1"), false},
      {selector("10.0.0.1", "10.1.0.1", 17, {}, {2001, 0xfffe}), flow("10.0.0.1", "10.1.0.1"), true},
      {selector("10.0.0.1", "10.1.0.1", 17), without_ports, true},
      {selector("10.0.0.1", "10.1.0.1", 17, {}, {0, 0xffff}), without_ports, false},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(one.selector.matches(one.key), one.matches)
        << one.selector.str() << " and " << one.key.source.str() << " -> " << one.key.destination.str();
  }
}

TEST(Selector, ReversedIsOfTheAnswers) {
  EXPECT_EQ(selector("10.0.0.0/8", "10.1.0.0/16", 6, {1, 3}, {80, 0xffff}).reversed(),
            selector("10.1.0.0/16", "10.0.0.0/8", 6, {80, 0xffff}, {1, 3}));
  EXPECT_EQ(selector("10.0.0.0/8", "10.1.0.0/16", 1, {8, 0xffff}, {0, 0xffff}).reversed(),
            selector("10.1.0.0/16", "10.0.0.0/8", 1, {8, 0xffff}, {0, 0xffff}));
}

TEST(Selector, HasOneNormalForm) {
  Selector odd = selector("10.0.0.0/8", "10.1.0.0/16", 6, {5, 2}, {7, 0});
  odd.source.address = test::ip("10.1.2.3");
  EXPECT_EQ(odd.normal(), selector("10.0.0.0/8", "10.1.0.0/16", 6, {0, 2}, {0, 0}));
}

TEST(Selector, RefusesWhatIsNoSelector) {
  EXPECT_TRUE(selector("10.0.0.0/8", "0.0.0.0/0").check());
  EXPECT_TRUE(selector("::/0", "::/0").check());
  EXPECT_FALSE(selector("10.0.0.0/8", "::/0").check());
  EXPECT_FALSE(Selector{}.check());
  Selector longer = selector("10.0.0.0/8", "0.0.0.0/0");
  longer.source.length = 33;
  EXPECT_FALSE(longer.check());
}

TEST(Selector, IsSaidInWords) {
  EXPECT_EQ(selector("10.0.0.0/8", "10.1.0.0/16", 17, {}, {53, 0xffff}).str(), "10.0.0.0/8 -> 10.1.0.0/16 udp port 53");
  EXPECT_EQ(selector("10.0.0.0/8", "10.1.0.0/16", 6, {1024, 0xfc00}, {80, 0xffff}).str(),
            "10.0.0.0/8 -> 10.1.0.0/16 tcp from port 1024/0xfc00 to port 80");
  EXPECT_EQ(selector("10.0.0.0/8", "10.1.0.0/16", 6, {80, 0xffff}).str(), "10.0.0.0/8 -> 10.1.0.0/16 tcp from port 80");
  EXPECT_EQ(selector("::/0", "2001:db8::1", 58, {128, 0xffff}, {0, 0xffff}).str(),
            "::/0 -> 2001:db8::1/128 icmpv6 type 128 code 0");
  EXPECT_EQ(selector("0.0.0.0/0", "0.0.0.0/0", 89).str(), "0.0.0.0/0 -> 0.0.0.0/0 89");
  EXPECT_EQ(selector("0.0.0.0/0", "0.0.0.0/0").str(), "0.0.0.0/0 -> 0.0.0.0/0");
}

TEST(Selector, ItsProtocolIsReadAsItIsSaid) {
  for (unsigned protocol = 1; protocol < 256; ++protocol) {
    const std::string said = selector("::/0", "::/0", static_cast<std::uint8_t>(protocol)).str();
    EXPECT_EQ(parse_protocol(said.substr(said.rfind(' ') + 1)), protocol);
  }
  for (const char* wrong : {"", "256", "-1", "6 ", "TCP", "6x"}) EXPECT_FALSE(parse_protocol(wrong)) << wrong;
}

}  // namespace
}  // namespace sluice::ipsec
