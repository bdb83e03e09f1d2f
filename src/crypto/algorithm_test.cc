// The registry of algorithms, and who does what.
#include "crypto/algorithm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
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
  const std::vector<std::uint8_t> bytes(128);
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

TEST(Algorithm, SaysWhatIsWrongWithAJob) {
  Key cbc = {}, gcm = {}, ctr = {};
  cbc.cipher = Cipher::aes_cbc;
  cbc.hash = Hash::hmac_sha1;
  cbc.opens = 1;
  gcm.cipher = Cipher::aes_gcm_esp;
  ctr.cipher = Cipher::aes_ctr_esp;
  ctr.hash = Hash::hmac_sha256;
  struct Case {
    Key key;
    std::uint16_t clear, text;
    std::uint8_t flags;
    std::string_view why;
  };
  for (const Case& c :
       {Case{cbc, 24, 32, job_opens, ""}, Case{cbc, 16, 16, job_opens | job_has_suffix, ""}, Case{gcm, 16, 0, 0, ""},
        Case{gcm, 16, 1, job_has_suffix, ""}, Case{gcm, 40, 1, 0, ""}, Case{ctr, 8, 0, job_has_suffix, ""},
        Case{{}, 16, 16, 0, "its key is not installed"},
        Case{ctr, 0, 0, 0, "aes_ctr_esp_hmac_sha256: a packet of 0 bytes: must be 1 to 65535"},
        Case{gcm, 16, 65'520, 0, "aes_gcm_esp: a packet of 65536 bytes: must be 1 to 65535"},
        Case{ctr, 7, 9, 0, "aes_ctr_esp_hmac_sha256: a clear part of 7 bytes: its IV at the end has 8"},
        Case{gcm, 20, 9, job_has_suffix, "aes_gcm_esp: a clear part of 20 bytes: with a suffix must be 16"},
        Case{cbc, 24, 0, job_opens, "aes_cbc_hmac_sha1: a text of 0 bytes: must be whole blocks of 16, one at least"},
        Case{cbc, 24, 17, job_opens, "aes_cbc_hmac_sha1: a text of 17 bytes: must be whole blocks of 16, one at least"},
        Case{cbc, 24, 32, 0, "aes_cbc_hmac_sha1: its key is for opening"}}) {
    Job job = {};
    job.cipher_offset = c.clear;
    job.cipher_length = c.text;
    job.flags = c.flags;
    EXPECT_EQ(why_no_job(c.key, job), c.why);
  }
  cbc.opens = 0;
  Job job = {};
  job.cipher_offset = job.cipher_length = 32;
  EXPECT_EQ(why_no_job(cbc, job), "");
  job.flags = job_opens;
  EXPECT_EQ(why_no_job(cbc, job), "aes_cbc_hmac_sha1: its key is for sealing");
}

// A device before cores that must have a cipher.
constexpr Side enciphering = {.name = "enciphering", .priority = 1, .can = [](const Algorithm& algorithm, std::size_t) {
                                return algorithm.cipher != Cipher::null;
                              }};

TEST(Side, TheFirstByPriorityThatCanDoesIt) {
  const Side* const both[] = {&cpu_side(), &gpu_side()};
  const Side* const cores[] = {&cpu_side()};
  const Side* const cores_and_other[] = {&cpu_side(), &enciphering};
  const Side* const other[] = {&enciphering};
  for (const std::size_t length : {16U, 24U, 32U}) {
    EXPECT_EQ(side_for(both, Cipher::aes_ctr, Hash::hmac_sha1, length), &gpu_side());
  }
  EXPECT_EQ(side_for(both, Cipher::aes_gcm, Hash::none, 16), &gpu_side());
  EXPECT_EQ(side_for(cores, Cipher::aes_gcm, Hash::none, 16), &cpu_side());
  EXPECT_EQ(side_for(both, Cipher::null, Hash::hmac_sha1, 0), &gpu_side());
  EXPECT_EQ(side_for(cores_and_other, Cipher::null, Hash::hmac_sha1, 0), &cpu_side());
  EXPECT_EQ(side_for(other, Cipher::null, Hash::hmac_sha1, 0), nullptr);
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
  for (const Side* const side : {&enciphering, &cpu_side()}) {
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
  const auto of_it = known_answers(&enciphering), all = known_answers();
  EXPECT_EQ(known_answers(&cpu_side()).size(), all.size());
  EXPECT_LT(of_it.size(), all.size());
  EXPECT_TRUE(
      std::ranges::none_of(of_it, [](const RegisteredAnswer& one) { return one.algorithm->cipher == Cipher::null; }));
}

}  // namespace
}  // namespace sluice::crypto
