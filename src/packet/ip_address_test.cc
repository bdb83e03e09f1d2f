#include "packet/ip_address.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::packet {
namespace {

using namespace std::string_view_literals;

TEST(IpAddress, PrintsTheShortestForm) {
  const struct {
    const char* text;
    const char* printed;
    int family;
  } cases[] = {
      {"0.0.0.0", "0.0.0.0", 4},
      {"192.0.2.255", "192.0.2.255", 4},
      {"::", "::", 6},
      {"2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1", 6},
      {"2001:DB8::A", "2001:db8::a", 6},  // RFC 5952: lower case
      {"::ffff:192.0.2.1", "::ffff:192.0.2.1", 6},
  };
  for (const auto& c : cases) {
    const auto address = IpAddress::parse(c.text);
    ASSERT_TRUE(address) << c.text;
    EXPECT_EQ(address->str(), c.printed);
    EXPECT_EQ(address->family, c.family);
    EXPECT_EQ(IpAddress::parse(address->str()).value(), *address);
  }
  EXPECT_EQ(IpAddress{}.str(), "none");
  EXPECT_TRUE(IpAddress{}.empty());
}

TEST(IpAddress, RefusesWhatIsNoAddress) {
  for (const std::string_view text :
       {""sv, "10.0.0"sv, "10.0.0.256"sv, "10.0.0.1 "sv, " 10.0.0.1"sv, "10.0.0.01"sv, "1.2.3.4.5"sv, "host"sv, ":"sv,
        "2001:db8::1::2"sv, "2001:db8::12345"sv, "fe80::1%eth0"sv, "10.0.0.1\0junk"sv, "::1\0"sv}) {
    const auto address = IpAddress::parse(text);
    EXPECT_FALSE(address) << text;
  }
  EXPECT_EQ(IpAddress::parse("10.0.0.256").error().message, "'10.0.0.256' is not an IPv4 or IPv6 address");
}

TEST(IpAddress, ConvertsByteOrder) {
  const IpAddress address = IpAddress::v4(0x0a010203);
  EXPECT_EQ(address.str(), "10.1.2.3");
  EXPECT_EQ(address.v4_host_order(), 0x0a010203U);
  const std::uint8_t wire[4] = {10, 1, 2, 3};
  EXPECT_EQ(IpAddress::from_bytes(4, wire), address);
  EXPECT_EQ(address.bits(), 32U);
}

TEST(IpPrefix, ParsesAndPrints) {
  const struct {
    const char* text;
    const char* printed;
  } cases[] = {
      {"0.0.0.0/0", "0.0.0.0/0"},
      {"10.0.0.0/8", "10.0.0.0/8"},
      {"192.0.2.1", "192.0.2.1/32"},
      {"192.0.2.1/32", "192.0.2.1/32"},
      {"::/0", "::/0"},
      {"2001:db8::/32", "2001:db8::/32"},
      {"2001:db8::1", "2001:db8::1/128"},
      {"fe80::/10", "fe80::/10"},
  };
  for (const auto& c : cases) {
    const auto prefix = IpPrefix::parse(c.text);
    ASSERT_TRUE(prefix) << c.text;
    EXPECT_EQ(prefix->str(), c.printed);
  }
}

TEST(IpPrefix, RefusesBadLengthsAndHostBits) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"10.0.0.0/33", "'10.0.0.0/33': the prefix length must be 0 to 32"},
      {"::/129", "'::/129': the prefix length must be 0 to 128"},
      {"10.0.0.0/", "'10.0.0.0/': the prefix length must be 0 to 32"},
      {"10.0.0.0/-1", "'10.0.0.0/-1': the prefix length must be 0 to 32"},
      {"10.0.0.0/8x", "'10.0.0.0/8x': the prefix length must be 0 to 32"},
      {"10.0.0.0/8/8", "'10.0.0.0/8/8': the prefix length must be 0 to 32"},
      {"10.0.0.0/4294967304", "'10.0.0.0/4294967304': the prefix length must be 0 to 32"},
      {"10.0.0.1/8", "'10.0.0.1/8' has host bits set; did you mean 10.0.0.0/8?"},
      {"2001:db8::1/64", "'2001:db8::1/64' has host bits set; did you mean 2001:db8::/64?"},
      {"/8", "'' is not an IPv4 or IPv6 address"},
  };
  for (const auto& c : cases) {
    const auto prefix = IpPrefix::parse(c.text);
    ASSERT_FALSE(prefix) << c.text;
    EXPECT_EQ(prefix.error().message, c.message);
  }
}

TEST(IpPrefix, ContainsItsAddressesAndNoOthers) {
  const struct {
    const char* prefix;
    const char* address;
    bool inside;
  } cases[] = {
      {"10.0.0.0/8", "10.255.255.255", true},
      {"10.0.0.0/8", "11.0.0.0", false},
      {"0.0.0.0/0", "255.255.255.255", true},
      {"0.0.0.0/0", "::", false},
      {"192.0.2.1/32", "192.0.2.1", true},
      {"192.0.2.128/25", "192.0.2.127", false},
      {"::/0", "0.0.0.0", false},
      {"2001:db8:8000::/33", "2001:db8:7fff::1", false},
      {"2001:db8::/33", "2001:db8::1", true},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(IpPrefix::parse(c.prefix)->contains(*IpAddress::parse(c.address)), c.inside)
        << c.prefix << " " << c.address;
  }
}

TEST(IpPrefix, OfClearsHostBitsAndCapsTheLength) {
  EXPECT_EQ(IpPrefix::of(IpAddress::v4(0xffffffff), 9).str(), "255.128.0.0/9");
  EXPECT_EQ(IpPrefix::of(IpAddress::v4(0x0a000001), 200).str(), "10.0.0.1/32");
}

TEST(MacAddress, ParsesAndPrints) {
  const auto mac = MacAddress::parse("02:00:5E:ff:0a:01");
  ASSERT_TRUE(mac);
  EXPECT_EQ(mac->str(), "02:00:5e:ff:0a:01");
  for (const std::string_view text :
       {""sv, "02:00:5e:ff:0a"sv, "02:00:5e:ff:0a:1"sv, "02:00:5e:ff:0a:011"sv, "02-00-5e-ff-0a-01"sv,
        "02:00:5e:ff:0a:0g"sv, " 2:00:5e:ff:0a:01"sv, "02:00:5e:ff:0a: 1"sv, "0x:00:5e:ff:0a:01"sv,
        "02:00:5e:ff:0a:01 "sv, "-2:00:5e:ff:0a:01"sv}) {
    EXPECT_FALSE(MacAddress::parse(text)) << text;
  }
}

}  // namespace
}  // namespace sluice::packet
