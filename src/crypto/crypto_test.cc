// The CPU's jobs against known answers; the table of keys; secrets.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "crypto/algorithm.h"
#include "crypto/cpu.h"
#include "crypto/hex.h"
#include "crypto/key_table.h"
#include "crypto/known_answers.h"
#include "crypto/secret.h"
#include "crypto/selftest.h"

namespace sluice::crypto {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(Crypto, SelfTestPasses) {
  auto cpu = Cpu::make();
  ASSERT_TRUE(cpu) << cpu.error().message;
  EXPECT_NE(cpu->instruction_set(), "none");
  const auto tested = self_test(*cpu);
  EXPECT_TRUE(tested) << tested.error().message;
}

TEST(Crypto, AKnownAnswerThatDoesNotComeOutIsSeen) {
  auto cpu = Cpu::make();
  auto batch = KnownAnswerBatch::make(false);
  ASSERT_TRUE(cpu && batch);
  std::vector<Verdict> verdicts(batch->jobs().size());
  cpu->run(batch->keys(), batch->jobs(), verdicts);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    EXPECT_TRUE(batch->right(i, verdicts[i])) << batch->name(i);
    batch->packet(i)[255] ^= 1;
    EXPECT_FALSE(batch->right(i, verdicts[i])) << batch->name(i);
  }
}

// --- the table of keys ---

TEST(KeyTable, PowersAreThoseOfH) {
  auto keys = KeyTable::make(2, true);
  ASSERT_TRUE(keys);
  const Bytes key = from_hex("feffe9928665731c6d6a8f9467308308");
  const auto slot = keys->install({Cipher::aes_gcm, Hash::none, key, Bytes(12), {}, 16});
  ASSERT_TRUE(slot);
  // H as in the GCM specification, test case 4.
  EXPECT_EQ(Bytes(keys->key(*slot).power[0], keys->key(*slot).power[0] + 16),
            from_hex("b83b533708bf535d0aa6e52980d53b78"));
  // SP 800-38D 6.3, algorithm 1, bit by bit.
  const auto multiply = [](const std::uint8_t* x, const std::uint8_t* y, std::uint8_t* product) {
    std::uint8_t v[16];
    std::memcpy(v, y, 16);
    std::uint8_t z[16] = {};
    for (int i = 0; i < 128; ++i) {
      if ((x[i / 8] >> (7 - i % 8) & 1) != 0) {
        for (int k = 0; k < 16; ++k) {
          z[k] ^= v[k];
        }
      }
      const bool last = (v[15] & 1) != 0;
      for (int k = 15; k > 0; --k) {
        v[k] = static_cast<std::uint8_t>(v[k] >> 1 | v[k - 1] << 7);
      }
      v[0] >>= 1;
      v[0] ^= last ? 0xe1 : 0;
    }
    std::memcpy(product, z, 16);
  };
  std::uint8_t power[16];
  std::memcpy(power, keys->key(*slot).power[0], 16);
  for (std::size_t i = 0; i < hash_powers; ++i) {
    EXPECT_EQ(std::memcmp(keys->key(*slot).power[i], power, 16), 0) << i;
    multiply(power, keys->key(*slot).power[0], power);
  }
}

TEST(KeyTable, RefusesWhatTheCipherHasNot) {
  auto keys = KeyTable::make(1, false);
  auto with_gcm = KeyTable::make(1, true);
  ASSERT_TRUE(keys && with_gcm);
  const Bytes bytes(70);
  const auto some = [&](std::size_t length) { return std::span(bytes).first(length); };
  struct Case {
    KeyMaterial material;
    std::string_view error;
  };
  constexpr auto ctr = Cipher::aes_ctr;
  for (const Case& c :
       {Case{{Cipher::none, Hash::none, some(16), some(14), some(20), 10}, "a key without a cipher"},
        Case{{Cipher::aes_gcm, Hash::hmac_sha1, some(16), some(12), some(20), 16},
             "a key of a cipher and a hash that do not go together"},
        Case{{ctr, Hash::hmac_sha1, some(20), some(14), some(20), 10},
             "aes_ctr_hmac_sha1: a key of 20 bytes: must be 16, 24 or 32"},
        Case{{ctr, Hash::hmac_sha1, some(16), some(12), some(20), 10},
             "aes_ctr_hmac_sha1: a salt of 12 bytes: must be 14"},
        Case{{ctr, Hash::hmac_sha1, some(16), some(14), some(0), 10},
             "aes_ctr_hmac_sha1: an authentication key of 0 bytes: must be 1 to 64"},
        Case{{ctr, Hash::hmac_sha1, some(16), some(14), some(65), 10},
             "aes_ctr_hmac_sha1: an authentication key of 65 bytes: must be 1 to 64"},
        Case{{ctr, Hash::hmac_sha1, some(16), some(14), some(20), 21},
             "aes_ctr_hmac_sha1: a tag of 21 bytes: must be 1 to 20"},
        Case{{Cipher::aes_gcm, Hash::none, some(16), some(14), some(0), 16}, "aes_gcm: a salt of 14 bytes: must be 12"},
        Case{{Cipher::aes_gcm, Hash::none, some(16), some(12), some(20), 16},
             "aes_gcm: an authentication key of 20 bytes: must be 0"},
        Case{{Cipher::aes_gcm, Hash::none, some(16), some(12), some(0), 8}, "aes_gcm: a tag of 8 bytes: must be 16"},
        Case{{Cipher::aes_gcm_esp, Hash::none, some(24), some(4), some(0), 9},
             "aes_gcm_esp: a tag of 9 bytes: must be 8, 12 or 16"},
        Case{{Cipher::aes_cbc, Hash::none, some(16), some(0), some(0), 12},
             "a key of a cipher and a hash that do not go together"},
        Case{{Cipher::null, Hash::hmac_sha512, some(0), some(0), some(64), 33},
             "null_hmac_sha512: a tag of 33 bytes: must be 1 to 32"}}) {
    const auto slot = with_gcm->install(c.material);
    ASSERT_FALSE(slot) << c.error;
    EXPECT_EQ(slot.error().message, c.error);
  }
  EXPECT_EQ(keys->install({Cipher::aes_gcm, Hash::none, some(16), some(12), some(0), 16}).error().message,
            "aes_gcm: the table of keys has been made without GCM");
  ASSERT_TRUE(keys->install({ctr, Hash::hmac_sha1, some(16), some(14), some(20), 10}));
  EXPECT_EQ(keys->install({ctr, Hash::hmac_sha1, some(16), some(14), some(20), 10}).error().message,
            "the table of keys is full: it has capacity for 1");
}

// FIPS-197 5.3.5: what deciphers begins with the last round key of what enciphers, and ends with the first.
TEST(KeyTable, ACbcSlotIsForOneDirection) {
  auto keys = KeyTable::make(3, false);
  ASSERT_TRUE(keys);
  for (const std::size_t length : {16, 24, 32}) {
    const Bytes key = from_hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
    const auto material = [&](Cipher cipher, bool opens) {
      return KeyMaterial{cipher,
                         Hash::hmac_sha256,
                         std::span(key).first(length),
                         std::span(key).first(cipher == Cipher::aes_cbc ? 0 : 4),
                         key,
                         16,
                         opens};
    };
    const Key& seals = keys->key(keys->install(material(Cipher::aes_cbc, false)).value());
    const Key& opens = keys->key(keys->install(material(Cipher::aes_cbc, true)).value());
    const Key& either = keys->key(keys->install(material(Cipher::aes_ctr_esp, true)).value());
    EXPECT_EQ(seals.opens, 0);
    EXPECT_EQ(opens.opens, 1);
    EXPECT_EQ(either.opens, 0) << "means nothing there";
    const unsigned rounds = seals.rounds;
    EXPECT_EQ(rounds, length / 4 + 6);
    EXPECT_EQ(std::memcmp(opens.round_keys[0], seals.round_keys[rounds], aes_block), 0);
    EXPECT_EQ(std::memcmp(opens.round_keys[rounds], seals.round_keys[0], aes_block), 0);
    EXPECT_NE(std::memcmp(opens.round_keys[1], seals.round_keys[rounds - 1], aes_block), 0) << "not as InvMixColumns";
    EXPECT_EQ(std::memcmp(either.round_keys, seals.round_keys, sizeof seals.round_keys), 0);
    for (std::uint32_t slot = 0; slot < 3; ++slot) keys->release(slot);
  }
}

TEST(KeyTable, AReleasedSlotIsWipedAndUsedAgain) {
  auto keys = KeyTable::make(2, true);
  ASSERT_TRUE(keys);
  const Bytes key(32, 7);
  const auto all_zero = [](const auto& object) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&object);
    return std::all_of(bytes, bytes + sizeof object, [](std::uint8_t byte) { return byte == 0; });
  };
  const auto gcm = keys->install({Cipher::aes_gcm, Hash::none, key, std::span(key).first(12), {}, 16});
  const auto ctr = keys->install({Cipher::aes_ctr, Hash::hmac_sha1, key, std::span(key).first(14), key, 10});
  ASSERT_TRUE(gcm && ctr);
  EXPECT_EQ(keys->used(), 2U);
  EXPECT_EQ(keys->key(*gcm).rounds, 14);
  keys->release(*gcm);
  keys->release(*ctr);
  EXPECT_EQ(keys->used(), 0U);
  for (const std::uint32_t slot : {*gcm, *ctr}) {
    EXPECT_TRUE(all_zero(keys->keys()[slot]));
  }
  EXPECT_TRUE(keys->install({Cipher::aes_gcm, Hash::none, key, std::span(key).first(12), {}, 16}));
}

// What a reload that is refused gives back, beside what others take: each slot is one key's at a time.
TEST(KeyTable, SlotsComeAndGoOnSeveralThreads) {
  constexpr std::uint32_t capacity = 64;
  constexpr unsigned threads = 4, each = 8, rounds = 4'000;
  auto keys = KeyTable::make(capacity, false);
  ASSERT_TRUE(keys);
  const Bytes key(30, 7);
  const KeyMaterial material{Cipher::aes_ctr,          Hash::hmac_sha1,          std::span(key).first(16),
                             std::span(key).first(14), std::span(key).first(20), 10};
  std::vector<std::atomic<unsigned>> users(capacity);
  std::atomic<unsigned> shared{0}, refused{0};
  std::vector<std::thread> all;
  for (unsigned thread = 0; thread < threads; ++thread) {
    all.emplace_back([&] {
      std::vector<std::uint32_t> slots;
      for (unsigned round = 0; round < rounds; ++round) {
        for (unsigned i = 0; i < each; ++i) {
          const auto slot = keys->install(material);
          if (!slot) {
            ++refused;
            continue;
          }
          shared += users[*slot].fetch_add(1) == 0 ? 0 : 1;
          slots.push_back(*slot);
        }
        for (const std::uint32_t slot : slots) {
          --users[slot];
          keys->release(slot);
        }
        slots.clear();
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(shared, 0U) << "slots that had two keys at once";
  EXPECT_EQ(refused, 0U) << "there was capacity";
  EXPECT_EQ(keys->used(), 0U);
  std::set<std::uint32_t> slots;
  for (std::uint32_t i = 0; i < capacity; ++i) slots.insert(keys->install(material).value_or(capacity));
  EXPECT_EQ(slots.size(), capacity) << "each is there once";
  EXPECT_FALSE(slots.contains(capacity));
}

TEST(Secret, IsWipedAndCompared) {
  union Place {  // its bytes can be read after the secret's end
    Place() : secret() {}
    ~Place() {}
    Secret<4> secret;
    std::uint8_t bytes[4];
  } place;
  std::memcpy(place.secret.bytes, "abcd", 4);
  EXPECT_TRUE(equal(place.secret.bytes, reinterpret_cast<const std::uint8_t*>("abcd"), 4));
  EXPECT_FALSE(equal(place.secret.bytes, reinterpret_cast<const std::uint8_t*>("abce"), 4));
  place.secret.~Secret();
  EXPECT_EQ(Bytes(place.bytes, place.bytes + 4), Bytes(4));
}

TEST(Secret, AKeystreamNeedsAKeyOf16Or32Bytes) {
  const std::uint8_t iv[16] = {};
  std::uint8_t out[16];
  EXPECT_FALSE(aes_ctr_keystream(Bytes(24), iv, out));
  EXPECT_TRUE(aes_ctr_keystream(Bytes(32), iv, out));
}

}  // namespace
}  // namespace sluice::crypto
