// NIST's vectors (CAVP): CBC, GCM and HMAC, as jobs on a core, a file in a batch. Data: tests/support/public_data.h.
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../tests/support/public_data.h"
#include "crypto/cpu.h"
#include "crypto/hex.h"
#include "crypto/key_table.h"

namespace sluice::crypto {
namespace {

using Bytes = std::vector<std::uint8_t>;

// A file is records of "NAME = VALUE", a blank line behind each. "[NAME = VALUE]" holds for all that follow, and a word
// alone is a name without a value.
using Record = std::map<std::string, std::string>;
std::vector<Record> read(const std::filesystem::path& path) {
  std::vector<Record> records;
  Record header, record;
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  const auto end = [&] {
    if (record.empty()) return;
    Record whole = header;
    for (const auto& [name, value] : record) whole[name] = value;
    records.push_back(std::move(whole));
    record.clear();
  };
  for (std::string line; std::getline(file, line);) {
    const bool is_header = line.starts_with('[');
    std::erase_if(line, [](char c) { return c == '\r' || c == ' ' || c == '[' || c == ']'; });
    if (line.empty()) end();
    if (line.empty() || line.front() == '#') continue;
    const std::size_t at = std::min(line.find('='), line.size());
    (is_header ? header : record)[line.substr(0, at)] = at < line.size() ? line.substr(at + 1) : "";
  }
  end();
  return records;
}

// D(K, block): what seals to an IV.
Bytes decipher_block(const Bytes& key, const Bytes& block) {
  struct Free {
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  };
  const std::unique_ptr<EVP_CIPHER_CTX, Free> context(EVP_CIPHER_CTX_new());
  const EVP_CIPHER* const ciphers[] = {EVP_aes_128_ecb(), EVP_aes_192_ecb(), EVP_aes_256_ecb()};
  Bytes text(32);
  int length = 0;
  EVP_DecryptInit_ex(context.get(), ciphers[key.size() / 8 - 2], nullptr, key.data(), nullptr);
  EVP_CIPHER_CTX_set_padding(context.get(), 0);
  EVP_DecryptUpdate(context.get(), text.data(), &length, block.data(), 16);
  text.resize(16);
  return text;
}

// A packet as it comes, and as it must leave.
struct Case {
  Cipher cipher;
  Hash hash;
  Bytes key, salt, auth_key;
  std::size_t tag_length;
  bool opens;
  std::size_t clear, text;  // lengths
  Bytes packet, expected;
  Verdict wanted = Verdict::done;
};

Bytes join(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class NistVectors : public testing::Test {
 protected:
  static constexpr const char* archive = "crypto/nist-cavp-selected.tar.xz";

  void SetUp() override {
    if (const std::string why = test::why_no_data(archive); !why.empty()) GTEST_SKIP() << why;
    std::string folder = testing::TempDir() + "sluice-nist-XXXXXX";
    folder_ = mkdtemp(folder.data());
    const std::string unpack =
        "tar -xJf '" + test::data_path(archive) + "' -C '" + folder_.string() + "' cavp/aes cavp/mac";
    ASSERT_EQ(std::system(unpack.c_str()), 0) << unpack;
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::vector<Record> records_of(const std::string& name) const { return read(folder_ / "cavp" / name); }

  // All in one batch. What is opened and not authentic may be anything.
  void run(std::vector<Case>& cases) {
    KeyTable keys = KeyTable::make(static_cast<std::uint32_t>(cases.size()), true).value();
    std::vector<Job> jobs;
    for (Case& one : cases) {
      const auto slot = keys.install({one.cipher, one.hash, one.key, one.salt, one.auth_key,
                                      static_cast<std::uint8_t>(one.tag_length), one.opens});
      ASSERT_TRUE(slot) << slot.error().message;
      Job job = {};
      job.data = reinterpret_cast<std::uint64_t>(one.packet.data());
      job.key = *slot;
      job.cipher_offset = static_cast<std::uint16_t>(one.clear);
      job.cipher_length = static_cast<std::uint16_t>(one.text);
      job.flags = one.opens ? job_opens : 0;
      jobs.push_back(job);
    }
    std::vector<Verdict> verdicts(jobs.size(), Verdict{0xee});
    cpu_.run(keys, jobs, verdicts);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_EQ(verdicts[i], cases[i].wanted) << i;
      if (cases[i].wanted == Verdict::done) {
        ASSERT_TRUE(std::equal(cases[i].expected.begin(), cases[i].expected.end(), cases[i].packet.begin())) << i;
      }
    }
  }

  std::filesystem::path folder_;
  Cpu cpu_ = Cpu::make().value();
};

// What has been sealed is opened again, for there are no tags.
TEST_F(NistVectors, Cbc) {
  std::size_t count = 0;
  for (const std::string name :
       {"KAT_AES/CBCGFSbox", "KAT_AES/CBCKeySbox", "KAT_AES/CBCVarKey", "KAT_AES/CBCVarTxt", "aesmmt/CBCMMT"}) {
    for (const std::string width : {"128", "192", "256"}) {
      SCOPED_TRACE(name + width);
      std::vector<Case> cases;
      std::vector<Bytes> opened;
      for (const Record& record : records_of("aes/" + name + width + ".rsp")) {
        const Bytes key = from_hex(record.at("KEY")), iv = from_hex(record.at("IV"));
        const Bytes text = from_hex(record.at("PLAINTEXT")), sealed = from_hex(record.at("CIPHERTEXT"));
        cases.push_back({Cipher::aes_cbc,
                         Hash::hmac_sha1,
                         key,
                         {},
                         key,
                         12,
                         false,
                         16,
                         text.size(),
                         join({decipher_block(key, iv), text, Bytes(12)}),
                         join({iv, sealed})});
        opened.push_back(join({iv, text}));
      }
      ASSERT_NO_FATAL_FAILURE(run(cases));
      for (std::size_t i = 0; i < cases.size(); ++i) {
        cases[i].opens = true;
        cases[i].expected = opened[i];
      }
      ASSERT_NO_FATAL_FAILURE(run(cases));
      count += cases.size();
    }
  }
  EXPECT_EQ(count, 2138U);
}

// As packets of ESP whose salt is the first third of the nonce.
TEST_F(NistVectors, Gcm) {
  std::size_t count = 0, refused = 0;
  for (const std::string name : {"gcmEncryptExtIV128", "gcmEncryptExtIV256", "gcmDecrypt128", "gcmDecrypt256"}) {
    SCOPED_TRACE(name);
    const bool opens = name.starts_with("gcmDecrypt");
    std::vector<Case> cases;
    for (const Record& record : records_of("mac/gcmtestvectors/" + name + ".rsp")) {
      const Bytes iv = from_hex(record.at("IV")), tag = from_hex(record.at("Tag"));
      if (iv.size() != 12 || (tag.size() != 8 && tag.size() != 12 && tag.size() != 16)) continue;
      const bool fails = record.contains("FAIL");
      const Bytes sealed = from_hex(record.at("CT")), text = fails ? Bytes(sealed.size()) : from_hex(record.at("PT"));
      const Bytes clear = join({from_hex(record.at("AAD")), {iv.begin() + 4, iv.end()}});
      const Bytes in_clear = join({clear, text, opens ? tag : Bytes(tag.size())}), closed = join({clear, sealed, tag});
      cases.push_back({Cipher::aes_gcm_esp,
                       Hash::none,
                       from_hex(record.at("Key")),
                       {iv.begin(), iv.begin() + 4},
                       {},
                       tag.size(),
                       opens,
                       clear.size(),
                       text.size(),
                       opens ? closed : in_clear,
                       opens ? in_clear : closed,
                       fails ? Verdict::tag_mismatch : Verdict::done});
      refused += fails ? 1 : 0;
    }
    ASSERT_NO_FATAL_FAILURE(run(cases));
    count += cases.size();
  }
  EXPECT_EQ(count, 4500U);
  EXPECT_GT(refused, 500U);
}

TEST_F(NistVectors, Hmac) {
  const std::map<std::string, Hash> hashes = {
      {"20", Hash::hmac_sha1}, {"32", Hash::hmac_sha256}, {"48", Hash::hmac_sha384}, {"64", Hash::hmac_sha512}};
  std::map<std::string, std::size_t> counts;
  std::vector<Case> sealed, opened;
  for (const Record& record : records_of("mac/hmactestvectors/HMAC.rsp")) {
    const auto hash = hashes.find(record.at("L"));
    if (hash == hashes.end()) continue;
    const Bytes key = from_hex(record.at("Key")), tag = from_hex(record.at("Mac")), text = from_hex(record.at("Msg"));
    if (key.size() > (digest_length(hash->second) > 32 ? 128 : 64) || tag.size() > max_tag_length) continue;
    const Bytes in_clear = join({text, Bytes(tag.size())}), closed = join({text, tag});
    sealed.push_back({Cipher::null, hash->second, {}, {}, key, tag.size(), false, 0, text.size(), in_clear, closed});
    opened.push_back({Cipher::null, hash->second, {}, {}, key, tag.size(), true, text.size(), 0, closed, closed});
    ++counts[hash->first];
  }
  ASSERT_NO_FATAL_FAILURE(run(sealed));
  ASSERT_NO_FATAL_FAILURE(run(opened));
  for (const auto& [length, hash] : hashes) EXPECT_GT(counts[length], 40U) << length;
}

}  // namespace
}  // namespace sluice::crypto
