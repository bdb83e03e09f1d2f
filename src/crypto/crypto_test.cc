// The CPU's jobs against known answers and, on random batches, against OpenSSL; the table of keys.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <atomic>
#include <cstring>
#include <random>
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

Bytes random_bytes(std::mt19937& random, std::size_t length) {
  Bytes bytes(length);
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

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

// --- against OpenSSL ---

struct Material {
  Cipher cipher;
  Hash hash;
  Bytes cipher_key, salt, auth_key;
  std::uint8_t tag_length;

  KeyMaterial view() const { return {cipher, hash, cipher_key, salt, auth_key, tag_length}; }
};

Material random_material(std::mt19937& random) {
  Material material;
  const Algorithm& algorithm = *algorithms()[random() % algorithms().size()];
  material.cipher = algorithm.cipher;
  material.hash = algorithm.hash;
  const bool gcm = material.cipher == Cipher::aes_gcm;
  material.cipher_key = random_bytes(random, algorithm.key_lengths[random() % algorithm.key_lengths.size()]);
  material.salt = random_bytes(random, algorithm.salt_length);
  material.auth_key = random_bytes(random, gcm ? 0 : 1 + random() % 64);
  material.tag_length = static_cast<std::uint8_t>(gcm ? 16 : 1 + random() % 20);
  return material;
}

// The sealed text and the tag.
struct Sealed {
  Bytes text, tag;
};

Bytes iv_of(const Material& material, const Job& job) {
  Bytes iv = material.salt;
  if (material.cipher == Cipher::null) return iv;
  const std::size_t at = material.cipher == Cipher::aes_gcm ? 2 : 4;
  for (std::size_t i = 0; i < sizeof job.nonce; ++i) {
    iv[at + i] ^= job.nonce[i];
  }
  if (material.cipher == Cipher::aes_ctr) {
    iv.resize(16, 0);
  }
  return iv;
}

Sealed seal_by_openssl(const Material& material, const Job& job, const Bytes& packet) {
  const Bytes iv = iv_of(material, job);
  Bytes clear(packet.begin(), packet.begin() + job.cipher_offset);
  const bool suffix = (job.flags & job_has_suffix) != 0;
  const bool wide = material.cipher_key.size() == 32;
  Sealed sealed{Bytes(job.cipher_length), Bytes(material.tag_length)};
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  int written = 0;
  if (material.cipher == Cipher::aes_gcm) {
    EVP_EncryptInit_ex(context, wide ? EVP_aes_256_gcm() : EVP_aes_128_gcm(), nullptr, material.cipher_key.data(),
                       iv.data());
    if (suffix) {
      clear.insert(clear.end(), job.suffix, job.suffix + 4);
    }
    EVP_EncryptUpdate(context, nullptr, &written, clear.data(), static_cast<int>(clear.size()));
    EVP_EncryptUpdate(context, sealed.text.data(), &written, packet.data() + job.cipher_offset, job.cipher_length);
    std::uint8_t none[16];
    EVP_EncryptFinal_ex(context, none, &written);
    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, 16, sealed.tag.data());
  } else {
    if (material.cipher == Cipher::null) {
      std::copy_n(packet.data() + job.cipher_offset, job.cipher_length, sealed.text.data());
    } else {
      const EVP_CIPHER* const aes = wide                               ? EVP_aes_256_ctr()
                                    : material.cipher_key.size() == 24 ? EVP_aes_192_ctr()
                                                                       : EVP_aes_128_ctr();
      EVP_EncryptInit_ex(context, aes, nullptr, material.cipher_key.data(), iv.data());
      EVP_EncryptUpdate(context, sealed.text.data(), &written, packet.data() + job.cipher_offset, job.cipher_length);
    }
    Bytes message = clear;
    message.insert(message.end(), sealed.text.begin(), sealed.text.end());
    if (suffix) {
      message.insert(message.end(), job.suffix, job.suffix + 4);
    }
    std::uint8_t digest[20];
    HMAC(EVP_sha1(), material.auth_key.data(), static_cast<int>(material.auth_key.size()), message.data(),
         message.size(), digest, nullptr);
    std::memcpy(sealed.tag.data(), digest, material.tag_length);
  }
  EVP_CIPHER_CTX_free(context);
  return sealed;
}

// Batches of every length, ciphers, keys, directions, lengths, gaps and alignments mixed. Nothing but what a job may
// write changes; what it gives is OpenSSL's.
TEST(Crypto, BatchesDoAsOpensslDoes) {
  std::mt19937 random(1);
  auto cpu = Cpu::make();
  auto keys = KeyTable::make(64, true);
  ASSERT_TRUE(cpu && keys);
  std::vector<Material> materials;
  for (std::uint32_t i = 0; i < 64; ++i) {
    materials.push_back(random_material(random));
    ASSERT_EQ(keys->install(materials.back().view()).value(), i);
  }
  for (std::size_t count : {1, 2, 3, 15, 16, 17, 63, 64, 65, 200, 300}) {
    std::vector<Bytes> frames;
    std::vector<Bytes> expected;
    std::vector<Job> jobs(count);
    std::vector<Verdict> wanted(count, Verdict::done);
    for (Job& job : jobs) {
      const std::size_t at = random() % 16;
      const bool opens = random() % 2 == 0;
      job.key = random() % 64;
      job.cipher_offset = static_cast<std::uint16_t>(random() % 90);
      job.cipher_length = static_cast<std::uint16_t>(random() % 8 == 0 ? 0 : random() % 1500);
      job.tag_gap = static_cast<std::uint8_t>(random() % 3 == 0 ? random() % 140 : 0);
      job.flags = static_cast<std::uint8_t>((opens ? job_opens : 0) | (random() % 2 == 0 ? job_has_suffix : 0));
      const Bytes nonce = random_bytes(random, 10);
      const Bytes suffix = random_bytes(random, 4);
      std::memcpy(job.nonce, nonce.data(), 10);
      std::memcpy(job.suffix, suffix.data(), 4);
      Bytes open = random_bytes(random, at + job.cipher_offset + job.cipher_length + job.tag_gap + 24);
      const Bytes packet(open.begin() + static_cast<std::ptrdiff_t>(at), open.end());
      const Material& material = materials[job.key];
      const Sealed sealed = seal_by_openssl(material, job, packet);
      std::uint8_t* const tag = open.data() + at + job.cipher_offset + job.cipher_length + job.tag_gap;
      if (opens) {
        std::memcpy(tag, sealed.tag.data(), sealed.tag.size());
      }
      Bytes closed = open;
      std::copy(sealed.text.begin(), sealed.text.end(),
                closed.begin() + static_cast<std::ptrdiff_t>(at + job.cipher_offset));
      std::memcpy(closed.data() + (tag - open.data()), sealed.tag.data(), sealed.tag.size());
      frames.push_back(opens ? closed : open);
      expected.push_back(opens ? open : closed);
      if (opens && random() % 4 == 0) {
        const auto i = static_cast<std::size_t>(&job - jobs.data());
        frames[i][static_cast<std::size_t>(tag - open.data()) + random() % sealed.tag.size()] ^= 1U << random() % 8;
        wanted[i] = Verdict::tag_mismatch;
      }
      job.data = at;
    }
    for (std::size_t i = 0; i < count; ++i) {
      jobs[i].data += reinterpret_cast<std::uint64_t>(frames[i].data());
    }
    std::vector<Verdict> verdicts(count, Verdict::tag_mismatch);
    cpu->run(*keys, jobs, verdicts);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(verdicts[i], wanted[i]) << i << " of " << count;
      if (wanted[i] == Verdict::done) {
        ASSERT_EQ(frames[i], expected[i]) << i << " of " << count;
      }
    }
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
        Case{{Cipher::aes_gcm, Hash::none, some(16), some(12), some(0), 8}, "aes_gcm: a tag of 8 bytes: must be 16"}}) {
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
