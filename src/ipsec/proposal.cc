#include "ipsec/proposal.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace sluice::ipsec {
namespace {

using crypto::Cipher;
using crypto::Hash;

struct CipherName {
  std::string_view name;
  Cipher cipher;
  std::uint8_t key, salt, icv;  // icv: of a cipher that authenticates; 0: a hash has to
};
constexpr std::array ciphers = {
    CipherName{"aes128", Cipher::aes_cbc, 16, 0, 0},
    CipherName{"aes192", Cipher::aes_cbc, 24, 0, 0},
    CipherName{"aes256", Cipher::aes_cbc, 32, 0, 0},
    CipherName{"aes128ctr", Cipher::aes_ctr_esp, 16, 4, 0},
    CipherName{"aes192ctr", Cipher::aes_ctr_esp, 24, 4, 0},
    CipherName{"aes256ctr", Cipher::aes_ctr_esp, 32, 4, 0},
    CipherName{"aes128gcm16", Cipher::aes_gcm_esp, 16, 4, 16},
    CipherName{"aes192gcm16", Cipher::aes_gcm_esp, 24, 4, 16},
    CipherName{"aes256gcm16", Cipher::aes_gcm_esp, 32, 4, 16},
    CipherName{"aes128gcm12", Cipher::aes_gcm_esp, 16, 4, 12},
    CipherName{"aes192gcm12", Cipher::aes_gcm_esp, 24, 4, 12},
    CipherName{"aes256gcm12", Cipher::aes_gcm_esp, 32, 4, 12},
    CipherName{"aes128gcm8", Cipher::aes_gcm_esp, 16, 4, 8},
    CipherName{"aes192gcm8", Cipher::aes_gcm_esp, 24, 4, 8},
    CipherName{"aes256gcm8", Cipher::aes_gcm_esp, 32, 4, 8},
    CipherName{"chacha20poly1305", Cipher::chacha20_poly1305_esp, 32, 4, 16},
    CipherName{"null", Cipher::null, 0, 0, 0},
};

struct HashName {
  std::string_view name;
  Hash hash;
  std::uint8_t key, icv;  // RFC 2404, RFC 4868
};
// Of several ICVs of a hash the usual one is first.
constexpr std::array hashes = {
    HashName{"sha1", Hash::hmac_sha1, 20, 12},     HashName{"sha1_160", Hash::hmac_sha1, 20, 20},
    HashName{"sha256", Hash::hmac_sha256, 32, 16}, HashName{"sha256_96", Hash::hmac_sha256, 32, 12},
    HashName{"sha384", Hash::hmac_sha384, 48, 24}, HashName{"sha512", Hash::hmac_sha512, 64, 32},
};

// Other names: of a whole word, or behind "aes128", "aes192" and "aes256".
struct OtherName {
  std::string_view name, is;
};
constexpr OtherName other_names[] = {{"aes", "aes128"},      {"sha", "sha1"},
                                     {"sha2_256", "sha256"}, {"sha2_256_96", "sha256_96"},
                                     {"sha2_384", "sha384"}, {"sha2_512", "sha512"}};
constexpr OtherName other_endings[] = {{"gcm128", "gcm16"}, {"gcm", "gcm16"}, {"gcm96", "gcm12"}, {"gcm64", "gcm8"}};

// Of IKE: Diffie-Hellman groups and other key exchanges, and pseudo-random functions.
constexpr std::string_view of_ike[] = {
    "none",         "modpnone",        "modpnull",     "modp768",  "modp1024",  "modp1536",  "modp2048",  "modp3072",
    "modp4096",     "modp6144",        "modp8192",     "ecp192",   "ecp224",    "ecp256",    "ecp384",    "ecp521",
    "modp1024s160", "modp2048s224",    "modp2048s256", "ecp224bp", "ecp256bp",  "ecp384bp",  "ecp512bp",  "curve25519",
    "x25519",       "curve448",        "x448",         "ntru112",  "ntru128",   "ntru192",   "ntru256",   "newhope128",
    "mlkem512",     "mlkem768",        "mlkem1024",    "prfsha1",  "prfsha256", "prfsha384", "prfsha512", "prfmd5",
    "prfaesxcbc",   "prfcamelliaxcbc", "prfaescmac"};

template <class Names>
auto find_name(const Names& names, std::string_view name) {
  return std::ranges::find(names, name, [](const auto& one) { return one.name; });
}

template <class Names>
std::string list(const Names& names) {
  std::string all;
  for (const auto& one : names) all += (all.empty() ? "" : ", ") + std::string(one.name);
  return all;
}

tl::unexpected<Error> refuse(std::string_view text, const std::string& why) {
  return make_error("\"" + std::string(text) + "\" " + why);
}

// As the tables above have it.
std::string usual_name(std::string_view word) {
  if (const auto* const one = find_name(other_names, word); one != std::end(other_names)) return std::string(one->is);
  constexpr std::size_t prefix = std::string_view("aes128").size();
  const auto* const end = find_name(other_endings, word.size() > prefix ? word.substr(prefix) : "");
  if (end == std::end(other_endings)) return std::string(word);
  return std::string(word.substr(0, prefix)) + std::string(end->is);
}

// "modp2048", and "ke1_mlkem768" of several key exchanges.
bool is_of_ike(std::string_view word) {
  constexpr std::size_t number = 2, underscore = 3;
  if (word.size() > underscore && word.starts_with("ke") && word[number] >= '1' && word[number] <= '7' &&
      word[underscore] == '_') {
    word.remove_prefix(underscore + 1);
  }
  return std::ranges::find(of_ike, word) != std::end(of_ike);
}

// The words of a proposal by their kinds.
struct Words {
  const CipherName* cipher = nullptr;
  const HashName* hash = nullptr;
  std::optional<bool> esn;
  std::string ignored;
};

void ignore(Words& words, std::string_view word) {
  words.ignored += (words.ignored.empty() ? "" : "-") + std::string(word);
}

Expected<Words> read_words(std::string_view text, Protocol protocol) {
  Words words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('-', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::string name = usual_name(word);
    at = end + 1;
    if (const auto* const cipher = find_name(ciphers, name); cipher != ciphers.end()) {
      if (words.cipher != nullptr) return refuse(text, "has two ciphers, and an SA has one");
      words.cipher = &*cipher;
    } else if (const auto* const hash = find_name(hashes, name); hash != hashes.end()) {
      if (words.hash != nullptr) return refuse(text, "has two hashes, and an SA has one");
      words.hash = &*hash;
    } else if (word == "esn" || word == "noesn") {
      if (words.esn) return refuse(text, "says twice whether there are extended sequence numbers");
      words.esn = word == "esn";
    } else if (is_of_ike(word)) {
      ignore(words, word);
    } else if (text.find(',') != text.npos) {
      return refuse(text, "has several proposals, and an SA has one");
    } else {
      return refuse(text, "has \"" + std::string(word) + "\", which is not here; there are " +
                              (protocol == Protocol::ah ? "" : "the ciphers " + list(ciphers) + ", and ") +
                              "the hashes " + list(hashes));
    }
  }
  return words;
}

}  // namespace

Expected<Proposal> parse_proposal(std::string_view text, Protocol protocol) {
  auto words = read_words(text, protocol);
  if (!words) return tl::unexpected(words.error());
  Proposal proposal;
  if (protocol == Protocol::ah) {
    if (words->cipher != nullptr) {
      return refuse(text, "has a cipher, and AH has none: write the hash alone, as in \"sha256\"");
    }
    if (words->hash == nullptr) return refuse(text, "has no hash; there are " + list(hashes));
  } else {
    if (words->cipher == nullptr) return refuse(text, "has no cipher; there are " + list(ciphers));
    const CipherName& cipher = *words->cipher;
    proposal.cipher = cipher.cipher;
    proposal.key_length = cipher.key;
    proposal.salt_length = cipher.salt;
    proposal.icv_length = cipher.icv;
    if (cipher.icv != 0 && words->hash != nullptr) ignore(*words, words->hash->name);
    if (cipher.icv != 0) words->hash = nullptr;
    if (cipher.icv == 0 && words->hash == nullptr) {
      return refuse(text, "has no hash, without which ESP is not safe: write \"" + std::string(cipher.name) +
                              "-sha256\", or another of " + list(hashes));
    }
  }
  proposal.esn = words->esn;
  proposal.ignored = std::move(words->ignored);
  if (words->hash == nullptr) return proposal;
  proposal.hash = words->hash->hash;
  proposal.auth_key_length = words->hash->key;
  proposal.icv_length = words->hash->icv;
  return proposal;
}

std::string proposal_text(const Transform& transform, Protocol protocol) {
  const auto of_icv = [&](const HashName& one) {
    return one.hash == transform.hash && one.icv == transform.icv_length;
  };
  const auto* hash = std::ranges::find_if(hashes, of_icv);
  if (hash == hashes.end()) hash = std::ranges::find(hashes, transform.hash, &HashName::hash);
  std::string hash_name(hash == hashes.end() ? "" : hash->name);
  if (protocol == Protocol::ah) return hash_name;
  const auto cipher = std::ranges::find_if(ciphers, [&](const CipherName& one) {
    return one.cipher == transform.cipher && one.key == transform.cipher_key.length &&
           (one.icv == 0 || one.icv == transform.icv_length);
  });
  const std::string name(cipher == ciphers.end() ? "unknown" : cipher->name);
  return hash_name.empty() ? name : name + "-" + hash_name;
}

Expected<Transform> make_transform(const Proposal& proposal, std::span<const std::uint8_t> cipher_key,
                                   std::span<const std::uint8_t> auth_key) {
  const std::size_t wanted = std::size_t{proposal.key_length} + proposal.salt_length;
  const auto bytes = [](std::size_t count) { return std::to_string(count) + " bytes"; };
  if (cipher_key.size() != wanted) {
    return make_error("the cipher's key has " + bytes(cipher_key.size()) + ", not " + bytes(wanted) +
                      (proposal.salt_length == 0 ? "" : ", the last 4 of them the salt"));
  }
  if (auth_key.size() != proposal.auth_key_length) {
    return make_error("the hash's key has " + bytes(auth_key.size()) + ", not " + bytes(proposal.auth_key_length));
  }
  Transform transform;
  transform.cipher = proposal.cipher;
  transform.hash = proposal.hash;
  transform.icv_length = proposal.icv_length;
  const auto copy = [](std::span<const std::uint8_t> from, SecretKey& to) {
    std::ranges::copy(from, to.bytes.bytes);
    to.length = static_cast<std::uint8_t>(from.size());
  };
  copy(cipher_key.first(proposal.key_length), transform.cipher_key);
  copy(cipher_key.subspan(proposal.key_length), transform.salt);
  copy(auth_key, transform.auth_key);
  return transform;
}

}  // namespace sluice::ipsec
