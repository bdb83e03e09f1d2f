// Addresses and ports of rules against a slow look at every value, and variables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "match/rules/variables.h"

namespace sluice::match {
namespace {

using packet::IpAddress;
using testing::HasSubstr;

IpAddress address(const std::string& text) {
  return *IpAddress::parse(text);
}

struct Membership {
  const char* text;
  std::vector<const char*> in;
  std::vector<const char*> out;
};

TEST(AddressSet, HoldsWhatItsTextSays) {
  for (const auto& [text, in, out] : {
           Membership{"any", {"0.0.0.0", "255.255.255.255", "::", "ffff::1"}, {}},
           Membership{"10.1.2.3", {"10.1.2.3"}, {"10.1.2.2", "10.1.2.4", "::"}},
           Membership{"10.1.2.3/8", {"10.0.0.0", "10.255.255.255"}, {"9.255.255.255", "11.0.0.0"}},
           Membership{"10.0.0.0/255.255.0.0", {"10.0.255.255"}, {"10.1.0.0"}},
           Membership{"0.0.0.0/0", {"0.0.0.0", "255.255.255.255"}, {"::"}},
           Membership{"1.0.0.5-1.0.0.9", {"1.0.0.5", "1.0.0.9"}, {"1.0.0.4", "1.0.0.10"}},
           Membership{"2001:db8::/33", {"2001:db8:7fff::1"}, {"2001:db8:8000::", "1.2.3.4"}},
           Membership{"!10.0.0.0/8", {"9.255.255.255", "11.0.0.0", "::1"}, {"10.0.0.0", "10.255.255.255"}},
           Membership{"[10.0.0.0/8,!10.1.0.0/16]", {"10.0.0.1", "10.2.0.0"}, {"10.1.0.0", "10.1.255.255", "11.0.0.0"}},
           Membership{"[!10.0.0.0/8,!::/0]", {"11.0.0.0"}, {"10.0.0.1", "::1", "ffff::"}},
           Membership{"![10.0.0.0/8,!10.1.0.0/16]", {"10.1.2.3", "11.0.0.1"}, {"10.2.0.0"}},
           Membership{"[$HOME, 1.1.1.1]", {"192.168.3.4", "1.1.1.1"}, {"1.1.1.2"}},
           Membership{"!$HOME", {"1.1.1.1"}, {"192.168.0.0"}},
       }) {
    Variables variables;
    ASSERT_TRUE(variables.set("HOME", "[192.168.0.0/16]"));
    const auto set = variables.addresses(text);
    ASSERT_TRUE(set) << text << ": " << set.error().message;
    for (const char* const one : in) EXPECT_TRUE(set->contains(address(one))) << text << " " << one;
    for (const char* const one : out) EXPECT_FALSE(set->contains(address(one))) << text << " " << one;
  }
}

TEST(AddressSet, IsSortedDisjointAndComplete) {
  const auto range = [](const char* first, const char* last) { return AddressRange{address(first), address(last)}; };
  const AddressSet set({range("1.0.0.5", "1.0.0.9"), range("1.0.0.0", "1.0.0.4"), range("0.0.0.1", "0.0.0.1"),
                        range("::1", "::5"), range("255.255.255.255", "255.255.255.255"), range("::", "::")});
  ASSERT_EQ(set.ranges().size(), 4U);
  EXPECT_EQ(set.ranges()[1], range("1.0.0.0", "1.0.0.9"));
  EXPECT_EQ(set.ranges()[3], range("::", "::5"));
  EXPECT_EQ(set.complement().complement(), set);
  EXPECT_TRUE(set.complement().intersection(set).empty());
  EXPECT_TRUE(AddressSet().complement().is_any());
  EXPECT_TRUE(AddressSet::any().complement().empty());
}

// Against one bit for each port.
TEST(PortSet, AgreesWithABitForEachPort) {
  std::mt19937 random(7);
  const auto pick = [&random](unsigned below) { return static_cast<unsigned>(random() % below); };
  for (int round = 0; round < 50; ++round) {
    std::vector<PortRange> ranges;
    std::vector<bool> bits(65536);
    const unsigned count = pick(6);
    for (unsigned i = 0; i < count; ++i) {
      // Near each other and at the ends, where mistakes are.
      const unsigned base = pick(3) == 0 ? 65530 : pick(12);
      const auto first = static_cast<std::uint16_t>(base);
      const auto last = static_cast<std::uint16_t>(std::min(65535U, base + pick(5)));
      ranges.push_back({first, last});
      for (unsigned p = first; p <= last; ++p) bits[p] = true;
    }
    const PortSet set(ranges);
    const PortSet others = set.complement();
    EXPECT_EQ(set.size(), static_cast<std::size_t>(std::ranges::count(bits, true)));
    EXPECT_EQ(set.size() + others.size(), 65536U);
    for (unsigned p = 0; p < 65536; ++p) {
      const auto port = static_cast<std::uint16_t>(p);
      ASSERT_EQ(set.contains(port), bits[p]) << p;
      ASSERT_EQ(others.contains(port), !bits[p]) << p;
    }
    for (std::size_t i = 1; i < set.ranges().size(); ++i) {
      EXPECT_GT(set.ranges()[i].first, set.ranges()[i - 1].last + 1);
    }
  }
}

TEST(PortSet, TakesGroupsAndVariables) {
  const auto variables = Variables::from_map({{"HTTP_PORTS", "[80,8000:8010]"}});
  ASSERT_TRUE(variables);
  const auto set = variables->ports("[$HTTP_PORTS,!8005,:10,65000:]");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_THAT(set->ranges(), testing::ElementsAre(PortRange{0, 10}, PortRange{80, 80}, PortRange{8000, 8004},
                                                  PortRange{8006, 8010}, PortRange{65000, 65535}));
  EXPECT_TRUE(variables->ports("$FILE_DATA_PORTS")->contains(8000));
  EXPECT_FALSE(variables->ports("$SHELLCODE_PORTS")->contains(80));
}

struct Wrong {
  const char* text;
  const char* message;
};

TEST(Variables, SayWhatIsWrongWithAnAddress) {
  Variables variables;
  ASSERT_TRUE(variables.set("A", "[1.1.1.1,$B]"));
  ASSERT_TRUE(variables.set("B", "$A"));
  for (const auto& [text, message] : {
           Wrong{"10.0.0.300", "'10.0.0.300' is no address"},
           Wrong{"10.0.0.0/33", "neither a prefix length nor a netmask"},
           Wrong{"10.0.0.0/255.0.255.0", "neither a prefix length nor a netmask"},
           Wrong{"10.0.0.9-10.0.0.1", "is no range of addresses"},
           Wrong{"[10.0.0.1", "no closing ]"},
           Wrong{"[10.0.0.1,,10.0.0.2]", "an empty member"},
           Wrong{"[1.1.1.1,!1.1.1.0/24]", "leaves nothing"},
           Wrong{"$C", "the variable 'C' is not set"},
           Wrong{"$A", "does one contain itself"},
       }) {
    const auto set = variables.addresses(text);
    ASSERT_FALSE(set) << text;
    EXPECT_THAT(set.error().message, HasSubstr(message)) << text;
  }
}

TEST(Variables, RefuseANameOrATextThatIsNone) {
  Variables variables;
  EXPECT_FALSE(variables.set("HOME NET", "any"));
  EXPECT_FALSE(variables.set("", "any"));
  EXPECT_FALSE(variables.set("A", "  "));
  EXPECT_FALSE(variables.set("A", std::string(70'000, '1')));
  const auto map = Variables::from_map({{"A-B", "any"}});
  ASSERT_FALSE(map);
  EXPECT_THAT(map.error().message, HasSubstr("'A-B' is no name of a variable"));
}

// A group of many members takes neither long nor much.
TEST(Variables, OnceFixedAreChangedByFixingAgainOnly) {
  Variables variables = Variables::defaults();
  ASSERT_TRUE(variables.fix("HOME_NET", "10.0.0.0/8"));
  ASSERT_TRUE(variables.set("HOME_NET", "192.0.2.0/24"));
  EXPECT_EQ(*variables.find("HOME_NET"), "10.0.0.0/8");
  ASSERT_TRUE(variables.fix("HOME_NET", " 192.0.2.0/24 "));
  EXPECT_EQ(*variables.find("HOME_NET"), "192.0.2.0/24");
  EXPECT_FALSE(variables.fix("HOME NET", "any"));
  EXPECT_FALSE(variables.fix("OTHER", " "));
  EXPECT_FALSE(variables.fix("HOME_NET", " "));
  ASSERT_TRUE(variables.set("HOME_NET", "any"));
  EXPECT_EQ(*variables.find("HOME_NET"), "192.0.2.0/24") << "what cannot be fixed leaves it as it was";
  ASSERT_TRUE(variables.set("OTHER", "any"));
  ASSERT_TRUE(variables.set("OTHER", "10.0.0.1"));
  EXPECT_EQ(*variables.find("OTHER"), "10.0.0.1");
}

TEST(Variables, TakeALargeGroup) {
  std::string text = "[";
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 2) + ",";
  text += "65535]";
  const auto set = Variables().ports(text);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->ranges().size(), 5001U);
}

TEST(Variables, DefaultsAreReadable) {
  const Variables variables = Variables::defaults();
  for (const char* const name : {"HOME_NET", "EXTERNAL_NET", "HTTP_SERVERS", "AIM_SERVERS"}) {
    EXPECT_TRUE(variables.addresses("$" + std::string(name))) << name;
  }
  for (const char* const name : {"HTTP_PORTS", "SHELLCODE_PORTS", "FILE_DATA_PORTS", "GTP_PORTS", "SIP_PORTS"}) {
    EXPECT_TRUE(variables.ports("$" + std::string(name))) << name;
  }
}

}  // namespace
}  // namespace sluice::match
