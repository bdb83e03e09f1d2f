#include "crypto/known_answers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "crypto/hex.h"

namespace sluice::crypto {
namespace {

constexpr Cipher ctr = Cipher::aes_ctr_hmac_sha1;
constexpr Cipher gcm = Cipher::aes_gcm;

constexpr std::string_view zeros_16 = "00000000000000000000000000000000";
constexpr std::string_view zeros_32 = "0000000000000000000000000000000000000000000000000000000000000000";
constexpr std::string_view zeros_48 =
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";
constexpr std::string_view salt_14 = "0000000000000000000000000000";
constexpr std::string_view salt_12 = "000000000000000000000000";
constexpr std::string_view no_nonce = "00000000000000000000";
constexpr std::string_view cd_50 =
    "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd";
constexpr std::string_view dd_50 =
    "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";
constexpr std::string_view dd_46 =
    "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";
constexpr std::string_view hi_there = "4869205468657265";
constexpr std::string_view jefe_text = "7768617420646f2079612077616e7420666f72206e6f7468696e673f";

constexpr std::string_view gcm_key_4 = "feffe9928665731c6d6a8f9467308308";
constexpr std::string_view gcm_key_16 = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
constexpr std::string_view gcm_iv = "cafebabefacedbaddecaf888";
constexpr std::string_view gcm_text =
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba"
    "637b39";
constexpr std::string_view gcm_aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
constexpr std::string_view gcm_aad_16 = "feedfacedeadbeeffeedfacedeadbeef";
constexpr std::string_view gcm_sealed_4 =
    "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d"
    "58e091";
constexpr std::string_view gcm_tag_4 = "5bc94fbc3221a5db94fae95ae7121a47";
constexpr std::string_view gcm_sealed_16 =
    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abc"
    "c9f662";
constexpr std::string_view gcm_tag_16 = "76fc6ece0f4e1768cddf8853bb2d551b";

constexpr std::string_view hmac_key_4 = "0102030405060708090a0b0c0d0e0f10111213141516171819";
constexpr std::string_view hmac_tag_4 = "4c9007f4026250c6bc8414f9bf50c86c2d7235da";
constexpr std::string_view key_0b = "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b";
constexpr std::string_view key_aa = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

// Counter mode's blocks are RFC 3711's and RFC 6188's, whose counter begins at 0 as a job's does; the tags over them
// were computed with Python's hmac under RFC 2202's key 4.
constexpr std::array answers = {
    KnownAnswer{"RFC 3711 B.2", ctr, "2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfd", hmac_key_4,
                no_nonce, "", "", zeros_48,
                "e03ead0935c95e80e166b16dd92b4eb4d23513162b02d0f72a43a2fe4a5f97ab41e95b3bb0a2e8dd477901e4fca894c0",
                "00e8ee12f0c45dec14426e57beb0050634d68e2d"},
    KnownAnswer{"RFC 3711 B.2, nonce for salt", ctr, "2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f300000000000000000000",
                hmac_key_4, "f4f5f6f7f8f9fafbfcfd", "", "", zeros_48,
                "e03ead0935c95e80e166b16dd92b4eb4d23513162b02d0f72a43a2fe4a5f97ab41e95b3bb0a2e8dd477901e4fca894c0",
                "00e8ee12f0c45dec14426e57beb0050634d68e2d"},
    KnownAnswer{"RFC 6188 7.1", ctr, "57f82fe3613fd170a85ec93c40b1f0922ec4cb0dc025b58272147cc438944a98",
                "f0f1f2f3f4f5f6f7f8f9fafbfcfd", hmac_key_4, no_nonce, "", "", zeros_48,
                "92bdd28a93c3f52511c677d08b5515a49da71b2378a854f67050756ded165bac63c4868b7096d88421b563b8c94c9a31",
                "396105eecd14f91b8d052bd6ffeb1b6cee96e837"},
    KnownAnswer{"RFC 2202 3.1", ctr, zeros_16, salt_14, key_0b, no_nonce, hi_there, "", "", "",
                "b617318655057264e28bc0b6fb378c8ef146be00"},
    KnownAnswer{"RFC 2202 3.2", ctr, zeros_32, salt_14, "4a656665", no_nonce, jefe_text, "", "", "",
                "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"},
    KnownAnswer{"RFC 2202 3.3, 80 bits", ctr, zeros_16, salt_14, key_aa, no_nonce, dd_50, "", "", "",
                "125d7342b9ac11cd91a3"},
    KnownAnswer{"RFC 2202 3.3, 32 bits, suffix", ctr, zeros_16, salt_14, key_aa, no_nonce, dd_46, "dddddddd", "", "",
                "125d7342"},
    KnownAnswer{"RFC 2202 3.4", ctr, zeros_32, salt_14, hmac_key_4, no_nonce, cd_50, "", "", "", hmac_tag_4},
    KnownAnswer{"GCM test case 1", gcm, zeros_16, salt_12, "", no_nonce, "", "", "", "",
                "58e2fccefa7e3061367f1d57a4e7455a"},
    KnownAnswer{"GCM test case 2", gcm, zeros_16, salt_12, "", no_nonce, "", "", zeros_16,
                "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"},
    KnownAnswer{"GCM test case 4", gcm, gcm_key_4, gcm_iv, "", no_nonce, gcm_aad, "", gcm_text, gcm_sealed_4,
                gcm_tag_4},
    KnownAnswer{"GCM test case 4, nonce and suffix", gcm, gcm_key_4, "cafe00000000000000000000", "",
                "babefacedbaddecaf888", gcm_aad_16, "abaddad2", gcm_text, gcm_sealed_4, gcm_tag_4},
    KnownAnswer{"GCM test case 13", gcm, zeros_32, salt_12, "", no_nonce, "", "", "", "",
                "530f8afbc74536b9a963b4f1c4cb738b"},
    KnownAnswer{"GCM test case 14", gcm, zeros_32, salt_12, "", no_nonce, "", "", zeros_16,
                "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"},
    KnownAnswer{"GCM test case 16", gcm, gcm_key_16, gcm_iv, "", no_nonce, gcm_aad, "", gcm_text, gcm_sealed_16,
                gcm_tag_16},
    KnownAnswer{"GCM test case 16, nonce and suffix", gcm, gcm_key_16, "cafe00000000000000000000", "",
                "babefacedbaddecaf888", gcm_aad_16, "abaddad2", gcm_text, gcm_sealed_16, gcm_tag_16},
};

constexpr std::uint8_t filler = 0xa5;  // behind every packet: must be left alone

void append(std::vector<std::uint8_t>& to, std::string_view digits) {
  const auto bytes = from_hex(digits);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::span<const KnownAnswer> known_answers() {
  return answers;
}

Expected<KnownAnswerBatch> KnownAnswerBatch::make(bool opens) {
  auto keys = KeyTable::make(answers.size(), true);
  if (!keys) {
    return tl::unexpected(keys.error());
  }
  KnownAnswerBatch batch(std::move(*keys));
  batch.packets_.resize(answers.size() * packet_length, filler);
  batch.expected_ = batch.packets_;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (auto added = batch.add(answers[i], i, opens); !added) {
      return tl::unexpected(added.error());
    }
  }
  return batch;
}

Expected<void> KnownAnswerBatch::add(const KnownAnswer& answer, std::size_t i, bool opens) {
  const auto cipher_key = from_hex(answer.cipher_key);
  const auto salt = from_hex(answer.salt);
  const auto auth_key = from_hex(answer.auth_key);
  const auto nonce = from_hex(answer.nonce);
  const auto suffix = from_hex(answer.suffix);
  auto slot =
      keys_.install({answer.cipher, cipher_key, salt, auth_key, static_cast<std::uint8_t>(answer.tag.size() / 2)});
  if (!slot) {
    return make_error(std::string(answer.name) + ": " + slot.error().message);
  }
  std::vector<std::uint8_t> open;
  append(open, answer.clear);
  append(open, answer.text);
  std::vector<std::uint8_t> sealed;
  append(sealed, answer.clear);
  append(sealed, answer.sealed);
  append(sealed, answer.tag);
  std::uint8_t* const packet = packets_.data() + i * packet_length;
  std::uint8_t* const expected = expected_.data() + i * packet_length;
  std::copy(sealed.begin(), sealed.end(), opens ? packet : expected);
  std::copy(open.begin(), open.end(), opens ? expected : packet);
  if (opens) {  // the tag is left where it is
    std::copy(sealed.begin() + static_cast<std::ptrdiff_t>(open.size()), sealed.end(), expected + open.size());
  }
  Job job = {};
  job.data = reinterpret_cast<std::uint64_t>(packet);
  job.key = *slot;
  std::copy(suffix.begin(), suffix.end(), job.suffix);
  std::copy(nonce.begin(), nonce.end(), job.nonce);
  job.cipher_offset = static_cast<std::uint16_t>(answer.clear.size() / 2);
  job.cipher_length = static_cast<std::uint16_t>(answer.text.size() / 2);
  job.flags = static_cast<std::uint8_t>((opens ? job_opens : 0) | (suffix.empty() ? 0 : job_has_suffix));
  jobs_.push_back(job);
  return {};
}

bool KnownAnswerBatch::right(std::size_t i, Verdict verdict) const {
  return verdict == Verdict::done &&
         std::memcmp(packets_.data() + i * packet_length, expected_.data() + i * packet_length, packet_length) == 0;
}

}  // namespace sluice::crypto
