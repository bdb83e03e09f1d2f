#include "ipsec/xfrm/algorithms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ipsec/xfrm/bytes_trial_test.h"

namespace sluice::ipsec::xfrm {
namespace {

using crypto::Cipher;
using crypto::Hash;
using testing::HasSubstr;

std::string text(const SecretKey& key) {
  return {reinterpret_cast<const char*>(key.view().data()), key.view().size()};
}

Result<Transform> read(const Bytes& attributes, Protocol protocol = Protocol::esp) {
  return Attributes::read(attributes.body()).and_then([&](const Attributes& all) {
    return read_transform(all, protocol);
  });
}

std::string of_size(std::size_t size) {
  std::string key(size, '\0');
  for (std::size_t i = 0; i < size; ++i) key[i] = static_cast<char>('!' + i);
  return key;
}

TEST(XfrmAlgorithms, CiphersHaveLinuxsNames) {
  const struct {
    const char* name;
    std::size_t key, salt;
    Cipher cipher;
  } cases[] = {
      {"cbc(aes)", 16, 0, Cipher::aes_cbc},
      {"aes", 24, 0, Cipher::aes_cbc},
      {"cbc(aes)", 32, 0, Cipher::aes_cbc},
      {"rfc3686(ctr(aes))", 16, 4, Cipher::aes_ctr_esp},
      {"rfc3686(ctr(aes))", 32, 4, Cipher::aes_ctr_esp},
      {"ecb(cipher_null)", 0, 0, Cipher::null},
      {"cipher_null", 0, 0, Cipher::null},
  };
  for (const auto& one : cases) {
    const std::string key = of_size(one.key + one.salt);
    const auto transform =
        read(Bytes().algorithm(XFRMA_ALG_CRYPT, one.name, key).algorithm(XFRMA_ALG_AUTH, "hmac(sha1)", of_size(20)));
    ASSERT_TRUE(transform) << one.name << ": " << transform.error().why;
    EXPECT_EQ(transform->cipher, one.cipher) << one.name;
    EXPECT_EQ(text(transform->cipher_key), key.substr(0, one.key)) << one.name;
    EXPECT_EQ(text(transform->salt), key.substr(one.key)) << one.name;
    EXPECT_EQ(transform->hash, Hash::hmac_sha1);
  }
}

TEST(XfrmAlgorithms, AeadsHaveLinuxsNamesAndTheIcvsOfTheirRfcs) {
  const struct {
    const char* name;
    std::size_t key;
    std::uint32_t bits;
    Cipher cipher;
  } cases[] = {
      {"rfc4106(gcm(aes))", 16, 64, Cipher::aes_gcm_esp},
      {"rfc4106(gcm(aes))", 24, 96, Cipher::aes_gcm_esp},
      {"rfc4106(gcm(aes))", 32, 128, Cipher::aes_gcm_esp},
      {"rfc7539esp(chacha20,poly1305)", 32, 128, Cipher::chacha20_poly1305_esp},
  };
  for (const auto& one : cases) {
    const std::string key = of_size(one.key + 4);
    const auto transform = read(Bytes().algorithm(XFRMA_ALG_AEAD, one.name, key, one.bits));
    ASSERT_TRUE(transform) << one.name << ": " << transform.error().why;
    EXPECT_EQ(transform->cipher, one.cipher);
    EXPECT_EQ(transform->hash, Hash::none);
    EXPECT_EQ(transform->icv_length, one.bits / 8);
    EXPECT_EQ(text(transform->cipher_key) + text(transform->salt), key);
    EXPECT_EQ(text(transform->salt).size(), 4U);
  }
}

// RFC 4868 cuts HMAC-SHA-256 to 128 bits. Linux takes XFRMA_ALG_AUTH, which says nothing of that, for 96.
TEST(XfrmAlgorithms, HashesAreCutAsLinuxCutsThem) {
  const struct {
    const char* name;
    std::optional<std::uint32_t> bits;
    Hash hash;
    unsigned icv;
  } cases[] = {
      {"sha1", std::nullopt, Hash::hmac_sha1, 12},
      {"hmac(sha1)", 160, Hash::hmac_sha1, 20},
      {"hmac(sha256)", std::nullopt, Hash::hmac_sha256, 12},
      {"sha256", 128, Hash::hmac_sha256, 16},
      {"hmac(sha256)", 0, Hash::hmac_sha256, 12},
      {"hmac(sha384)", std::nullopt, Hash::hmac_sha384, 24},
      {"hmac(sha512)", std::nullopt, Hash::hmac_sha512, 32},
      {"hmac(sha512)", 512, Hash::hmac_sha512, 64},
  };
  for (const auto& one : cases) {
    Bytes bytes;
    bytes.algorithm(XFRMA_ALG_CRYPT, "cbc(aes)", key16);
    bytes.algorithm(one.bits ? XFRMA_ALG_AUTH_TRUNC : XFRMA_ALG_AUTH, one.name, of_size(32), one.bits);
    const auto transform = read(bytes);
    ASSERT_TRUE(transform) << one.name << ": " << transform.error().why;
    EXPECT_EQ(transform->hash, one.hash) << one.name;
    EXPECT_EQ(transform->icv_length, one.icv) << one.name;
    EXPECT_EQ(text(transform->auth_key), of_size(32));
  }
}

TEST(XfrmAlgorithms, WhatSaysTheLengthCountsWhereBothAreThere) {
  const auto transform = read(Bytes()
                                  .algorithm(XFRMA_ALG_CRYPT, "cbc(aes)", key16)
                                  .algorithm(XFRMA_ALG_AUTH_TRUNC, "hmac(sha256)", key32, 128)
                                  .algorithm(XFRMA_ALG_AUTH, "hmac(sha256)", key32));
  ASSERT_TRUE(transform);
  EXPECT_EQ(transform->icv_length, 16);
}

TEST(XfrmAlgorithms, WhatIsNotKnownIsNamed) {
  const auto camellia = read(Bytes().algorithm(XFRMA_ALG_CRYPT, "cbc(camellia)", key16));
  ASSERT_FALSE(camellia);
  EXPECT_EQ(camellia.error().error, ENOSYS);
  EXPECT_THAT(camellia.error().why, HasSubstr("cbc(camellia)"));
  // The name of an AEAD is none of a cipher.
  EXPECT_EQ(read(Bytes().algorithm(XFRMA_ALG_CRYPT, "rfc4106(gcm(aes))", key20)).error().error, ENOSYS);
  const auto odd =
      read(Bytes().algorithm(XFRMA_ALG_CRYPT, "cbc(aes)", key16).algorithm(XFRMA_ALG_AUTH, "md\n5", key16));
  EXPECT_EQ(odd.error().why, "the algorithm md?5 is not supported");
}

TEST(XfrmAlgorithms, WrongLengthsAreRefused) {
  const Bytes cases[] = {
      Bytes().algorithm(XFRMA_ALG_CRYPT, "cbc(aes)", of_size(17)).algorithm(XFRMA_ALG_AUTH, "sha1", key20),
      Bytes().algorithm(XFRMA_ALG_CRYPT, "rfc3686(ctr(aes))", of_size(16)).algorithm(XFRMA_ALG_AUTH, "sha1", key20),
      Bytes().algorithm(XFRMA_ALG_CRYPT, "rfc3686(ctr(aes))", of_size(3)).algorithm(XFRMA_ALG_AUTH, "sha1", key20),
      Bytes().algorithm(XFRMA_ALG_CRYPT, "cipher_null", of_size(16)).algorithm(XFRMA_ALG_AUTH, "sha1", key20),
      Bytes().algorithm(XFRMA_ALG_AEAD, "rfc4106(gcm(aes))", of_size(16), 128),
      Bytes().algorithm(XFRMA_ALG_AEAD, "rfc4106(gcm(aes))", key20, 100),
      Bytes().algorithm(XFRMA_ALG_AEAD, "rfc4106(gcm(aes))", key20, 32),
      Bytes().algorithm(XFRMA_ALG_AEAD, "rfc7539esp(chacha20,poly1305)", of_size(36), 96),
      Bytes().algorithm(XFRMA_ALG_CRYPT, "aes", key16).algorithm(XFRMA_ALG_AUTH_TRUNC, "sha1", key20, 168),
      Bytes().algorithm(XFRMA_ALG_CRYPT, "aes", key16).algorithm(XFRMA_ALG_AUTH_TRUNC, "sha1", key20, 95),
      Bytes().algorithm(XFRMA_ALG_CRYPT, "aes", key16).algorithm(XFRMA_ALG_AUTH, "sha1", of_size(65)),
      Bytes().algorithm(XFRMA_ALG_CRYPT, "aes", key16).algorithm(XFRMA_ALG_AUTH, "sha1", ""),
  };
  for (const Bytes& one : cases) {
    const auto transform = read(one);
    ASSERT_FALSE(transform) << &one - cases;
    EXPECT_EQ(transform.error().error, EINVAL) << transform.error().why;
  }
}

TEST(XfrmAlgorithms, AKeyThatIsCutShortIsRefused) {
  xfrm_algo algorithm{};
  std::strcpy(algorithm.alg_name, "cbc(aes)");
  algorithm.alg_key_len = 128;  // and no key
  EXPECT_EQ(read(Bytes().attribute(XFRMA_ALG_CRYPT, algorithm)).error().error, EINVAL);
  algorithm.alg_key_len = ~0U;
  EXPECT_EQ(read(Bytes().attribute(XFRMA_ALG_CRYPT, algorithm)).error().error, EINVAL);
  std::memset(algorithm.alg_name, 'a', sizeof algorithm.alg_name);
  algorithm.alg_key_len = 0;
  EXPECT_EQ(read(Bytes().attribute(XFRMA_ALG_CRYPT, algorithm)).error().why, "an algorithm's name has no end");
}

TEST(XfrmAlgorithms, EachProtocolHasItsOwn) {
  const Bytes hash = Bytes().algorithm(XFRMA_ALG_AUTH, "hmac(sha1)", key20);
  EXPECT_EQ(read(hash).error().error, EINVAL);
  const auto ah = read(hash, Protocol::ah);
  ASSERT_TRUE(ah);
  EXPECT_EQ(ah->cipher, Cipher::null);
  EXPECT_EQ(read(Bytes(), Protocol::ah).error().error, EINVAL);
  EXPECT_EQ(read(Bytes()).error().error, EINVAL);
  const Bytes both = Bytes(hash).algorithm(XFRMA_ALG_AEAD, "rfc4106(gcm(aes))", key20, 128);
  EXPECT_EQ(read(both).error().error, EINVAL);
  EXPECT_EQ(read(both, Protocol::ah).error().error, EINVAL);
  EXPECT_EQ(read(Bytes().algorithm(XFRMA_ALG_CRYPT, "cipher_null", "")).error().error, EINVAL);
}

TEST(XfrmAlgorithms, WhatIsWrittenIsReadAgain) {
  const Bytes cases[] = {
      Bytes().algorithm(XFRMA_ALG_AEAD, "rfc4106(gcm(aes))", key20, 96),
      Bytes()
          .algorithm(XFRMA_ALG_CRYPT, "rfc3686(ctr(aes))", key20)
          .algorithm(XFRMA_ALG_AUTH_TRUNC, "sha256", key32, 128),
      Bytes().algorithm(XFRMA_ALG_CRYPT, "aes", key32).algorithm(XFRMA_ALG_AUTH, "sha1", key20),
  };
  for (const Bytes& one : cases) {
    const auto before = read(one);
    ASSERT_TRUE(before);
    Message message(XFRM_MSG_NEWSA, 0, 0, 0);
    write_transform(message, *before, Protocol::esp);
    const auto attributes = Attributes::read(attributes_of(message.bytes(), 0));
    ASSERT_TRUE(attributes);
    const auto after = read_transform(*attributes, Protocol::esp);
    ASSERT_TRUE(after) << after.error().why;
    EXPECT_EQ(after->cipher, before->cipher);
    EXPECT_EQ(after->hash, before->hash);
    EXPECT_EQ(after->icv_length, before->icv_length);
    EXPECT_EQ(text(after->cipher_key), text(before->cipher_key));
    EXPECT_EQ(text(after->salt), text(before->salt));
    EXPECT_EQ(text(after->auth_key), text(before->auth_key));
  }
}

}  // namespace
}  // namespace sluice::ipsec::xfrm
