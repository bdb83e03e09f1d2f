// The CPU's jobs of all algorithms against OpenSSL's, on random batches and one by one.
#include "crypto/cpu.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "crypto/algorithm.h"
#include "crypto/key_table.h"

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

struct Material {
  const Algorithm* algorithm;
  Bytes cipher_key, salt, auth_key;
  std::uint8_t tag_length;
  bool opens;  // the jobs with this key, where it has to be said

  Cipher cipher() const { return algorithm->cipher; }
  KeyMaterial view() const {
    return {algorithm->cipher, algorithm->hash, cipher_key, salt, auth_key, tag_length, opens};
  }
};

Material random_material(std::mt19937& random, const Algorithm& algorithm) {
  const auto one_of = [&](Lengths lengths) {
    return lengths.least + random() % ((lengths.most - lengths.least) / lengths.step + 1) * lengths.step;
  };
  return {.algorithm = &algorithm,
          .cipher_key = random_bytes(random, algorithm.key_lengths[random() % algorithm.key_lengths.size()]),
          .salt = random_bytes(random, algorithm.salt_length),
          .auth_key = random_bytes(random, one_of(algorithm.auth_key)),
          .tag_length = static_cast<std::uint8_t>(one_of(algorithm.tag)),
          .opens = random() % 2 == 0};
}

const EVP_CIPHER* cipher_of(const Material& material) {
  const std::size_t width = material.cipher_key.size() / 8 - 2;
  switch (material.cipher()) {
    case Cipher::aes_ctr:
    case Cipher::aes_ctr_esp:
      return std::array{EVP_aes_128_ctr(), EVP_aes_192_ctr(), EVP_aes_256_ctr()}[width];
    case Cipher::aes_cbc:
      return std::array{EVP_aes_128_cbc(), EVP_aes_192_cbc(), EVP_aes_256_cbc()}[width];
    case Cipher::aes_gcm:
    case Cipher::aes_gcm_esp:
      return std::array{EVP_aes_128_gcm(), EVP_aes_192_gcm(), EVP_aes_256_gcm()}[width];
    default:
      return EVP_chacha20_poly1305();
  }
}

const EVP_MD* hash_of(const Material& material) {
  return std::array{EVP_sha1(), EVP_sha256(), EVP_sha384(),
                    EVP_sha512()}[static_cast<std::size_t>(material.algorithm->hash) - 1];
}

// As job.h has it; of a packet that is sealed.
Bytes iv_of(const Material& material, const Job& job, const Bytes& packet) {
  Bytes iv = material.salt;
  const auto text = packet.begin() + job.cipher_offset;
  switch (material.cipher()) {
    case Cipher::aes_ctr:
    case Cipher::aes_gcm: {
      const std::size_t at = material.cipher() == Cipher::aes_gcm ? 2 : 4;
      for (std::size_t i = 0; i < sizeof job.nonce; ++i) iv[at + i] ^= job.nonce[i];
      if (material.cipher() == Cipher::aes_ctr) iv.resize(16, 0);
      return iv;
    }
    case Cipher::aes_cbc:
      return {text - 16, text};
    case Cipher::null:
      return {};
    default:
      iv.insert(iv.end(), text - 8, text);
      if (material.cipher() == Cipher::aes_ctr_esp) iv.insert(iv.end(), {0, 0, 0, 1});
      return iv;
  }
}

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

Bytes encipher(const EVP_CIPHER* cipher, const Bytes& key, const std::uint8_t* iv, const Bytes& additional,
               const std::uint8_t* text, int length, Bytes* tag) {
  const std::unique_ptr<EVP_CIPHER_CTX, FreeContext> context(EVP_CIPHER_CTX_new());
  Bytes sealed(static_cast<std::size_t>(length) + 16);
  int written = 0, more = 0;
  EVP_EncryptInit_ex(context.get(), cipher, nullptr, key.data(), iv);
  EVP_CIPHER_CTX_set_padding(context.get(), 0);
  if (!additional.empty()) {
    EVP_EncryptUpdate(context.get(), nullptr, &more, additional.data(), static_cast<int>(additional.size()));
  }
  EVP_EncryptUpdate(context.get(), sealed.data(), &written, text, length);
  EVP_EncryptFinal_ex(context.get(), sealed.data() + written, &more);
  sealed.resize(static_cast<std::size_t>(length));
  if (tag != nullptr) {
    EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag->size()), tag->data());
  }
  return sealed;
}

// `packet`, as it is sealed, with its tag.
Bytes seal_by_openssl(const Material& material, const Job& job, Bytes packet) {
  const bool suffix = (job.flags & job_has_suffix) != 0;
  const auto text = packet.begin() + job.cipher_offset;
  if (material.cipher() == Cipher::aes_cbc) {  // the block there becomes the IV
    const Bytes zeros(16);
    const Bytes iv = encipher(cipher_of(material), material.cipher_key, zeros.data(), {}, &*text - 16, 16, nullptr);
    std::copy(iv.begin(), iv.end(), text - 16);
  }
  const Bytes iv = iv_of(material, job, packet);
  Bytes tag(material.tag_length);
  Bytes additional(packet.begin(), text);
  if (material.algorithm->hash == Hash::none) {
    additional.resize(additional.size() - explicit_iv_length(material.cipher()));
    if (suffix) {
      const auto at = material.cipher() == Cipher::aes_gcm ? additional.end() : additional.begin() + 4;
      additional.insert(at, job.suffix, job.suffix + 4);
    }
    const Bytes sealed =
        encipher(cipher_of(material), material.cipher_key, iv.data(), additional, &*text, job.cipher_length, &tag);
    std::copy(sealed.begin(), sealed.end(), text);
  } else {
    if (material.cipher() != Cipher::null) {
      const Bytes sealed =
          encipher(cipher_of(material), material.cipher_key, iv.data(), {}, &*text, job.cipher_length, nullptr);
      std::copy(sealed.begin(), sealed.end(), text);
    }
    Bytes message(packet.begin(), text + job.cipher_length);
    if (suffix) message.insert(message.end(), job.suffix, job.suffix + 4);
    std::uint8_t digest[EVP_MAX_MD_SIZE];
    HMAC(hash_of(material), material.auth_key.data(), static_cast<int>(material.auth_key.size()), message.data(),
         message.size(), digest, nullptr);
    std::memcpy(tag.data(), digest, tag.size());
  }
  std::copy(tag.begin(), tag.end(), text + job.cipher_length + job.tag_gap);
  return packet;
}

// A job of one frame, which begins at a random place in it, with what must become of it.
struct Case {
  Job job = {};
  Bytes frame, expected;
  Verdict wanted = Verdict::done;
  std::size_t begin = 0, text_begin = 0, text_end = 0;
};

Case random_case(std::mt19937& random, const Material& material, std::uint32_t slot, std::size_t most_bytes) {
  Case made;
  Job& job = made.job;
  const bool chained = material.cipher() == Cipher::aes_cbc;
  const bool opens = chained ? material.opens : random() % 2 == 0;
  const bool suffix = random() % 2 == 0;
  const std::size_t iv = explicit_iv_length(material.cipher());
  const bool is_esp = iv == 8 && material.algorithm->hash == Hash::none;
  job.key = slot;
  job.cipher_offset = static_cast<std::uint16_t>(is_esp && suffix ? 16 : iv + random() % 90 + (iv == 0 ? 1 : 0));
  job.cipher_length = static_cast<std::uint16_t>(random() % 8 == 0 ? 0 : random() % most_bytes);
  if (chained) job.cipher_length = static_cast<std::uint16_t>((job.cipher_length / 16 + 1) * 16);
  job.tag_gap = static_cast<std::uint8_t>(random() % 3 == 0 ? random() % 140 : 0);
  job.flags = static_cast<std::uint8_t>((opens ? job_opens : 0) | (suffix ? job_has_suffix : 0));
  for (std::uint8_t& byte : job.nonce) byte = static_cast<std::uint8_t>(random());
  for (std::uint8_t& byte : job.suffix) byte = static_cast<std::uint8_t>(random());
  made.begin = random() % 16;
  made.text_begin = made.begin + job.cipher_offset;
  made.text_end = made.text_begin + job.cipher_length;
  const std::size_t tag = made.text_end + job.tag_gap;
  const Bytes plain = random_bytes(random, tag + material.tag_length + 4);
  const auto packet = plain.begin() + static_cast<std::ptrdiff_t>(made.begin);
  const Bytes sealed_packet = seal_by_openssl(material, job, {packet, plain.end()});
  Bytes sealed(plain.begin(), packet);
  sealed.insert(sealed.end(), sealed_packet.begin(), sealed_packet.end());
  made.frame = opens ? sealed : plain;
  made.expected = sealed;
  if (!opens) return made;
  std::copy(plain.begin() + static_cast<std::ptrdiff_t>(made.text_begin),
            plain.begin() + static_cast<std::ptrdiff_t>(made.text_end),
            made.expected.begin() + static_cast<std::ptrdiff_t>(made.text_begin));
  if (random() % 4 == 0) {  // a bit of what is authenticated is wrong, or of the tag
    made.wanted = Verdict::tag_mismatch;
    const std::size_t length = made.text_end - made.begin, which = random() % (length + material.tag_length + 4);
    const auto bit = static_cast<std::uint8_t>(1U << random() % 8);
    if (which < length) {
      made.frame[made.begin + which] ^= bit;
    } else if (which < length + material.tag_length || !suffix) {
      made.frame[tag + (which - length) % material.tag_length] ^= bit;
    } else {
      job.suffix[random() % 4] ^= bit;
    }
    made.expected = made.frame;
  }
  return made;
}

class CpuTest : public testing::Test {
 protected:
  static constexpr std::uint32_t slots = 96;

  void SetUp() override {
    for (std::uint32_t i = 0; i < slots; ++i) {
      materials_.push_back(random_material(random_, *algorithms()[i % algorithms().size()]));
      ASSERT_EQ(keys_.install(materials_.back().view()).value(), i);
    }
  }

  void make_cases(std::size_t count, std::size_t most_bytes) {
    cases_.clear();
    jobs_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t slot = random_() % slots;
      cases_.push_back(random_case(random_, materials_[slot], slot, most_bytes));
    }
    for (Case& one : cases_) {
      one.job.data = reinterpret_cast<std::uint64_t>(one.frame.data() + one.begin);
      jobs_.push_back(one.job);
    }
    verdicts_.assign(count, Verdict{0xee});
  }

  // All bytes of a frame. Only what an AEAD has opened and found wrong may be anything.
  void compare() {
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      Case& one = cases_[i];
      const Material& material = materials_[one.job.key];
      SCOPED_TRACE(std::string(material.algorithm->name) + ", job " + std::to_string(i) + " of " +
                   std::to_string(cases_.size()) + ", flags " + std::to_string(one.job.flags) + ", clear " +
                   std::to_string(one.job.cipher_offset) + ", text " + std::to_string(one.job.cipher_length));
      ASSERT_EQ(verdicts_[i], one.wanted);
      if (one.wanted == Verdict::tag_mismatch && material.algorithm->hash == Hash::none) {
        std::copy(one.frame.begin() + static_cast<std::ptrdiff_t>(one.text_begin),
                  one.frame.begin() + static_cast<std::ptrdiff_t>(one.text_end),
                  one.expected.begin() + static_cast<std::ptrdiff_t>(one.text_begin));
      }
      ASSERT_EQ(one.frame, one.expected);
    }
  }

  std::mt19937 random_{1};
  Cpu cpu_ = Cpu::make().value();
  KeyTable keys_ = KeyTable::make(slots, true).value();
  std::vector<Material> materials_;  // by slot
  std::vector<Case> cases_;
  std::vector<Job> jobs_;
  std::vector<Verdict> verdicts_;
};

// Algorithms, keys, directions, lengths, gaps and alignments mixed. Nothing but what a job may write changes.
TEST_F(CpuTest, BatchesDoAsOpensslDoes) {
  for (const std::size_t count : {1, 2, 3, 15, 16, 17, 63, 64, 65, 200, 300, 2000, 9000}) {
    ASSERT_NO_FATAL_FAILURE(make_cases(count, 1900));
    cpu_.run(keys_, jobs_, verdicts_);
    ASSERT_NO_FATAL_FAILURE(compare());
  }
}

TEST_F(CpuTest, OneByOneTheyDoSo) {
  make_cases(1500, 1900);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    cpu_.run(keys_, {&jobs_[i], 1}, std::span(verdicts_).subspan(i, 1));
  }
  ASSERT_NO_FATAL_FAILURE(compare());
}

TEST_F(CpuTest, ShortOnesAndTheLongest) {
  for (const std::size_t most_bytes : {20, 80, 65'000}) {
    make_cases(most_bytes > 1000 ? 200 : 3000, most_bytes);
    cpu_.run(keys_, jobs_, verdicts_);
    ASSERT_NO_FATAL_FAILURE(compare());
  }
}

}  // namespace
}  // namespace sluice::crypto
