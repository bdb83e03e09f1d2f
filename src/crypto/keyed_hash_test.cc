#include "crypto/keyed_hash.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <string_view>

namespace sluice::crypto {
namespace {

std::span<const std::uint8_t> bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// RFC 4231's keys are of other lengths; this one was made by Python's hmac.
TEST(KeyedHash, IsHmacSha256OfThePartsWithTheirLengths) {
  std::array<std::uint8_t, 32> key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  const std::uint64_t hash = keyed_hash(key, {bytes("ab"), bytes("c")});
  std::array<std::uint8_t, 8> first{};
  std::memcpy(first.data(), &hash, first.size());
  EXPECT_EQ(first, (std::array<std::uint8_t, 8>{0xb0, 0xc0, 0x0b, 0x9c, 0x00, 0x89, 0x47, 0x55}));
}

TEST(KeyedHash, DiffersByKeyAndByWherePartsEnd) {
  std::array<std::uint8_t, 32> key{}, other{};
  other[31] = 1;
  const std::set<std::uint64_t> all = {keyed_hash(key, {bytes("ab"), bytes("c")}),
                                       keyed_hash(key, {bytes("a"), bytes("bc")}), keyed_hash(key, {bytes("abc")}),
                                       keyed_hash(key, {bytes("abc"), bytes("")}), keyed_hash(other, {bytes("abc")})};
  EXPECT_EQ(all.size(), 5U);
  EXPECT_EQ(keyed_hash(key, {bytes("abc")}), keyed_hash(key, {bytes("abc")}));
}

}  // namespace
}  // namespace sluice::crypto
