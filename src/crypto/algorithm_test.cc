// The registry of algorithms, and who does what.
#include "crypto/algorithm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "crypto/cpu.h"
#include "crypto/hex.h"
#include "crypto/key_table.h"
#include "crypto/known_answers.h"

namespace sluice::crypto {
namespace {

TEST(Algorithm, EachHasANumberANameAndKnownAnswersOfEveryKeyLength) {
  std::set<std::pair<Cipher, Hash>> pairs;
  std::set<std::string_view> names;
  for (const Algorithm* const one : algorithms()) {
    EXPECT_TRUE(pairs.insert({one->cipher, one->hash}).second) << one->name;
    EXPECT_TRUE(names.insert(one->name).second) << one->name;
    EXPECT_EQ(algorithm(one->cipher, one->hash), one);
    EXPECT_EQ(algorithm_name(one->cipher, one->hash), one->name);
    EXPECT_TRUE(std::ranges::is_sorted(one->key_lengths)) << one->name;
    EXPECT_LE(one->tag.most, max_tag_length) << one->name;
    for (const std::size_t length : one->key_lengths) {
      EXPECT_TRUE(std::ranges::any_of(
          one->answers, [&](const KnownAnswer& answer) { return answer.cipher_key.size() == 2 * length; }))
          << one->name << ", keys of " << length;
    }
  }
  EXPECT_EQ(algorithm(Cipher::none, Hash::none), nullptr);
  EXPECT_EQ(algorithm(Cipher::null, Hash::none), nullptr);
  EXPECT_EQ(algorithm_name(Cipher::none, Hash::none), "none");
}

// What devices and grouping go by.
TEST(Algorithm, AKeySaysHowLongItIs) {
  auto keys = KeyTable::make(1, true);
  ASSERT_TRUE(keys);
  const std::vector<std::uint8_t> bytes(64);
  const auto some = [&](std::size_t length) { return std::span(bytes).first(length); };
  for (const Algorithm* const one : algorithms()) {
    for (const std::size_t length : one->key_lengths) {
      const auto slot = keys->install({one->cipher, one->hash, some(length), some(one->salt_length),
                                       some(one->auth_key.most), static_cast<std::uint8_t>(one->tag.most)});
      ASSERT_TRUE(slot) << slot.error().message;
      EXPECT_EQ(key_length(keys->key(*slot)), length) << one->name;
      EXPECT_EQ(keys->key(*slot).cipher, one->cipher);
      keys->release(*slot);
    }
  }
}

TEST(Side, TheFirstByPriorityThatCanDoesIt) {
  const Side* const both[] = {&cpu_side(), &gpu_side()};
  const Side* const cores[] = {&cpu_side()};
  const Side* const gpus[] = {&gpu_side()};
  for (const std::size_t length : {16U, 24U, 32U}) {
    EXPECT_EQ(side_for(both, Cipher::aes_ctr, Hash::hmac_sha1, length), &gpu_side());
  }
  EXPECT_EQ(side_for(both, Cipher::aes_gcm, Hash::none, 16), &gpu_side());
  EXPECT_EQ(side_for(cores, Cipher::aes_gcm, Hash::none, 16), &cpu_side());
  EXPECT_EQ(side_for(both, Cipher::null, Hash::hmac_sha1, 0), &cpu_side());
  EXPECT_EQ(side_for(gpus, Cipher::null, Hash::hmac_sha1, 0), nullptr);
  EXPECT_EQ(side_for(both, Cipher::none, Hash::none, 16), nullptr);
  EXPECT_EQ(side_for(both, Cipher::aes_gcm, Hash::none, 24), nullptr) << "no such key";
}

// A device that follows the table has nothing where its kernels would do something else.
TEST(Side, AFollowerGetsNoKeyThatItCannotUse) {
  auto keys = KeyTable::make(2, true);
  ASSERT_TRUE(keys);
  const std::vector<std::uint8_t> bytes(64, 7);
  const auto some = [&](std::size_t length) { return std::span(bytes).first(length); };
  const auto alone = keys->install({Cipher::null, Hash::hmac_sha1, {}, {}, some(20), 12});
  const auto gcm = keys->install({Cipher::aes_gcm, Hash::none, some(16), some(12), {}, 16});
  ASSERT_TRUE(alone && gcm);
  for (const Side* const side : {&gpu_side(), &cpu_side()}) {
    std::vector<KeyRecord> records(2);
    ASSERT_EQ(keys->take_changes(keys->follow(*side), records), 2U);
    for (const KeyRecord& record : records) {
      const bool has = record.slot == *gcm || side == &cpu_side();
      EXPECT_EQ(record.key.cipher, has ? keys->key(record.slot).cipher : Cipher::none);
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&record.key);
      EXPECT_EQ(std::all_of(bytes, bytes + sizeof record.key, [](std::uint8_t byte) { return byte == 0; }), !has);
    }
  }
}

TEST(Side, KnownAnswersAreOfWhatItCanDo) {
  const auto of_gpu = known_answers(&gpu_side()), all = known_answers();
  EXPECT_EQ(known_answers(&cpu_side()).size(), all.size());
  EXPECT_LT(of_gpu.size(), all.size());
  EXPECT_TRUE(
      std::ranges::none_of(of_gpu, [](const RegisteredAnswer& one) { return one.algorithm->cipher == Cipher::null; }));
}

}  // namespace
}  // namespace sluice::crypto
