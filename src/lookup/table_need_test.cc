#include "lookup/table_need.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "lookup/fib.h"

namespace sluice::lookup {
namespace {

// Scattered over the whole address space, as scripts/make-data does: hardly any share groups.
std::set<packet::IpPrefix> scattered(std::size_t count) {
  std::mt19937_64 random(6);
  std::discrete_distribution<std::size_t> share({400, 2500, 300, 400, 600, 4800, 20, 10});
  constexpr unsigned lengths[] = {29, 32, 36, 40, 44, 48, 56, 64};
  std::set<packet::IpPrefix> prefixes;
  while (prefixes.size() < count) {
    const std::uint64_t bits[2] = {random(), random()};
    auto address = packet::IpAddress::from_bytes(6, bits);
    address.bytes[0] = static_cast<std::uint8_t>(0x20 + address.bytes[0] % 12);
    prefixes.insert(packet::IpPrefix::of(address, lengths[share(random)]));
  }
  return prefixes;
}

TEST(TableNeed, ATableHoldsAsManyRoutesAsItWasMadeFor) {
  constexpr std::uint32_t count = 60'000;
  const auto fib = Fib::create({.name = "need", .max_routes4 = 10, .max_routes6 = count});
  ASSERT_TRUE(fib) << fib.error().message;
  TableNeed need;
  for (const packet::IpPrefix& prefix : scattered(count)) {
    const auto added = (*fib)->add(prefix, 1);
    ASSERT_TRUE(added) << added.error().message;
    need.add(prefix);
  }
  EXPECT_EQ(need.routes(6), count);
  EXPECT_EQ(need.groups(6), (*fib)->groups_used(6)) << "counted as the table counts";
  EXPECT_TRUE(need.fits(6, count));
  EXPECT_FALSE(need.fits(6, count - 1));
}

TEST(TableNeed, CountsAsTheTableDoes) {
  const auto fib = Fib::create({.name = "need", .max_routes4 = 100, .max_routes6 = 100});
  ASSERT_TRUE(fib) << fib.error().message;
  TableNeed need;
  for (const char* text :
       {"0.0.0.0/0", "10.0.0.0/24", "10.0.0.128/25", "10.0.0.1/32", "10.0.1.1/32", "255.255.255.0/26", "2001:db8::/32",
        "2001:db8:1::/48", "2001:db8:1::1/128", "8000::/1", "ffff::/48"}) {
    const auto prefix = *packet::IpPrefix::parse(text);
    ASSERT_TRUE((*fib)->add(prefix, 1));
    need.add(prefix);
    for (const int family : {4, 6}) EXPECT_EQ(need.groups(family), (*fib)->groups_used(family)) << text;
  }
}

}  // namespace
}  // namespace sluice::lookup
