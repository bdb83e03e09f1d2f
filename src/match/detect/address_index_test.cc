#include "match/detect/address_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "match/rules/variables.h"

namespace sluice::match {
namespace {

using packet::IpAddress;

std::set<std::uint32_t> found_in(const AddressIndex& index, const IpAddress& address) {
  std::set<std::uint32_t> found;
  index.collect(address.bytes.data(), address.family, [&](std::uint32_t number) {
    EXPECT_TRUE(found.insert(number).second) << number << " twice for " << address.str();
  });
  return found;
}

// Few of the addresses there are, so that sets share and touch.
IpAddress random_address(std::mt19937& random) {
  if (random() % 3 == 0) {
    IpAddress address = *IpAddress::parse(random() % 2 == 0 ? "2001:db8::" : "::");
    address.bytes[15] = static_cast<std::uint8_t>(random() % 8);
    if (random() % 8 == 0) address.bytes.fill(0xff);
    return address;
  }
  const std::uint32_t ends[] = {0, 0xffffffff};
  if (random() % 10 == 0) return IpAddress::v4(ends[random() % 2]);
  return IpAddress::v4(0x0a000000 + (random() % 3 << 16) - 4 + random() % 8);
}

TEST(AddressIndex, FindsTheSetsThatHoldAnAddressAndNoOthers) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<AddressSet> sets(1 + random() % 12);
    std::vector<AddressIndex::Entry> entries;
    for (AddressSet& set : sets) {
      std::vector<AddressRange> ranges;
      for (unsigned left = 1 + random() % 4; left != 0; --left) {
        IpAddress first = random_address(random), last = random_address(random);
        if (last < first) std::swap(first, last);
        if (first.family == last.family) ranges.push_back({first, last});
      }
      set = AddressSet(std::move(ranges));
    }
    for (std::uint32_t i = 0; i < sets.size(); ++i) entries.push_back({i, &sets[i]});
    const AddressIndex index(entries);
    EXPECT_TRUE(index.left_out().empty());
    for (int packets = 0; packets < 50; ++packets) {
      const IpAddress address = random_address(random);
      std::set<std::uint32_t> holding;
      for (const auto& entry : entries) {
        if (entry.addresses->contains(address)) holding.insert(entry.number);
      }
      EXPECT_EQ(found_in(index, address), holding) << address.str();
    }
  }
}

TEST(AddressIndex, LeavesTheWidestOutWhereListsWouldBeTooLong) {
  std::vector<AddressSet> sets;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const IpAddress host = IpAddress::v4(0x0a000000 + 2 * i);
    sets.emplace_back(std::vector<AddressRange>{{host, host}});
  }
  sets.push_back(*parse_address("10.0.0.0/8"));
  std::vector<AddressIndex::Entry> entries;
  for (std::uint32_t i = 0; i < sets.size(); ++i) entries.push_back({i, &sets[i]});
  const AddressIndex index(entries, 150);  // with the widest 100 * 2 + 1 would be needed
  EXPECT_EQ(std::set(index.left_out().begin(), index.left_out().end()).count(100), 1U);
  EXPECT_LT(index.left_out().size(), 50U);
  for (std::uint32_t i = 0; i < 100; ++i) {
    const bool is_left = std::ranges::find(index.left_out(), i) != index.left_out().end();
    EXPECT_EQ(found_in(index, IpAddress::v4(0x0a000000 + 2 * i)).count(i), is_left ? 0U : 1U);
  }
}

TEST(AddressIndex, NoneFindsNothing) {
  EXPECT_TRUE(found_in(AddressIndex(), *IpAddress::parse("10.0.0.1")).empty());
  EXPECT_TRUE(AddressIndex(std::vector<AddressIndex::Entry>()).is_empty());
}

}  // namespace
}  // namespace sluice::match
