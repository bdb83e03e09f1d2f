// Numbers of remotes over many reloads.
#include "function/vxlan/remote_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <utility>

namespace sluice::function {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

packet::IpAddress address(std::uint32_t number) {
  const std::array<std::uint8_t, 4> bytes{10, static_cast<std::uint8_t>(number >> 16),
                                          static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)};
  return packet::IpAddress::from_bytes(4, bytes.data());
}

// Those from `first` on.
RemoteIds::Addresses addresses(std::uint32_t first, std::uint32_t count) {
  RemoteIds::Addresses all;
  for (std::uint32_t i = 0; i < count; ++i) all.insert(address(first + i));
  return all;
}

TEST(RemoteIds, EachAddressHasItsOwnAndKeepsIt) {
  RemoteIds ids;
  ids.name(addresses(1, 3));
  const auto before = ids.all();
  EXPECT_EQ(before.size(), 3U);
  ids.name(addresses(0, 4));
  EXPECT_THAT(ids.resting(), IsEmpty());
  std::set<RemoteId> numbers;
  for (const auto& [one, id] : ids.all()) numbers.insert(id);
  EXPECT_EQ(numbers.size(), 4U);
  for (const auto& [one, id] : before) EXPECT_EQ(ids.all().at(one), id);
}

TEST(RemoteIds, OneThatRestsIsGivenToNobody) {
  RemoteIds ids;
  ids.name({address(1)});
  const RemoteId first = ids.all().at(address(1));
  ids.name({address(2)});
  EXPECT_THAT(ids.resting(), ElementsAre(first));
  EXPECT_NE(ids.all().at(address(2)), first);
  ids.name({address(1), address(2)});
  EXPECT_THAT(ids.resting(), IsEmpty()) << "its address is back";
  EXPECT_EQ(ids.all().at(address(1)), first);
  ids.name({address(2)});
  ids.release();
  EXPECT_FALSE(ids.all().contains(address(1)));
  ids.name({address(2), address(3)});
  EXPECT_EQ(ids.all().at(address(3)), first);
}

TEST(RemoteIds, NeverRunOutAsAddressesComeAndGo) {
  RemoteIds ids;
  constexpr std::uint32_t at_once = 1000;
  for (std::uint32_t first = 0; first < 2 * RemoteIds::most; first += at_once) {
    const auto used = addresses(first, at_once);
    ASSERT_TRUE(ids.has_capacity(used));
    ids.name(used);
    for (const auto& one : used) ASSERT_NE(ids.all().at(one), no_remote);
    ids.release();
    ASSERT_EQ(ids.all().size(), at_once);
  }
}

TEST(RemoteIds, ThereAreAsManyAsNumbers) {
  RemoteIds ids;
  EXPECT_FALSE(ids.has_capacity(addresses(0, RemoteIds::most + 1)));
  const auto all = addresses(0, RemoteIds::most);
  ASSERT_TRUE(ids.has_capacity(all));
  ids.name(all);
  std::set<RemoteId> numbers;
  for (const auto& [one, id] : ids.all()) numbers.insert(id);
  EXPECT_EQ(numbers.size(), RemoteIds::most);
  EXPECT_FALSE(numbers.contains(no_remote));
  const auto other = addresses(RemoteIds::most, 1);
  EXPECT_FALSE(ids.has_capacity(other)) << "those of old do not rest yet";
  ids.name(addresses(0, 1));
  EXPECT_FALSE(ids.has_capacity(other)) << "lanes may still know them";
  ids.release();
  EXPECT_TRUE(ids.has_capacity(other));
}

}  // namespace
}  // namespace sluice::function
