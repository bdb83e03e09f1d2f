#include "ipsec/proposal.h"

#include <algorithm>
#include <array>

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
constexpr std::array hashes = {
    HashName{"sha1", Hash::hmac_sha1, 20, 12},
    HashName{"sha256", Hash::hmac_sha256, 32, 16},
    HashName{"sha384", Hash::hmac_sha384, 48, 24},
    HashName{"sha512", Hash::hmac_sha512, 64, 32},
};

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

}  // namespace

Expected<Proposal> parse_proposal(std::string_view text, Protocol protocol) {
  const std::size_t dash = text.find('-');
  std::string_view cipher_name = text.substr(0, dash);
  std::string_view hash_name = dash == text.npos ? std::string_view() : text.substr(dash + 1);
  Proposal proposal;
  if (protocol == Protocol::ah) {
    if (dash != text.npos) return refuse(text, "has a cipher, and AH has none: write the hash alone, as in \"sha256\"");
    hash_name = text;
  } else {
    const auto cipher = find_name(ciphers, cipher_name);
    if (cipher == ciphers.end()) {
      return refuse(text, "begins with no cipher that ESP has here; there are " + list(ciphers));
    }
    proposal = {
        .cipher = cipher->cipher, .key_length = cipher->key, .salt_length = cipher->salt, .icv_length = cipher->icv};
    if (cipher->icv != 0) {
      if (dash != text.npos) return refuse(text, "has a hash, and " + std::string(cipher_name) + " takes none");
      return proposal;
    }
    if (dash == text.npos) {
      return refuse(text, "has no hash, without which ESP is not safe: write \"" + std::string(cipher_name) +
                              "-sha256\", or another of " + list(hashes));
    }
  }
  const auto hash = find_name(hashes, hash_name);
  if (hash == hashes.end() && hash_name.ends_with("-esn")) return refuse(text, "has -esn: that is `esn = true` here");
  if (hash == hashes.end()) return refuse(text, "ends with no hash that there is here; there are " + list(hashes));
  proposal.hash = hash->hash;
  proposal.auth_key_length = hash->key;
  proposal.icv_length = hash->icv;
  return proposal;
}

std::string proposal_text(const Transform& transform, Protocol protocol) {
  const auto hash = std::ranges::find(hashes, transform.hash, &HashName::hash);
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
