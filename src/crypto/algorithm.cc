#include "crypto/algorithm.h"

#include <algorithm>
#include <vector>

#include "crypto/algorithms/paired.h"
#include "crypto/key_table.h"

namespace sluice::crypto {

// One line each, here and in the list.
extern const Algorithm aes_ctr_hmac_sha1;
extern const Algorithm aes_gcm;
extern const PerHash<Algorithm> null_hmac;
extern const PerHash<Algorithm> aes_cbc_hmac;
extern const PerHash<Algorithm> aes_ctr_esp_hmac;
extern const Algorithm aes_gcm_esp;
extern const Algorithm chacha20_poly1305_esp;

namespace {

constexpr const Algorithm* registered[] = {
    &aes_ctr_hmac_sha1,   &aes_gcm,
    &null_hmac[0],        &null_hmac[1],
    &null_hmac[2],        &null_hmac[3],
    &aes_cbc_hmac[0],     &aes_cbc_hmac[1],
    &aes_cbc_hmac[2],     &aes_cbc_hmac[3],
    &aes_ctr_esp_hmac[0], &aes_ctr_esp_hmac[1],
    &aes_ctr_esp_hmac[2], &aes_ctr_esp_hmac[3],
    &aes_gcm_esp,         &chacha20_poly1305_esp,
};

// "16, 24 or 32".
std::string one_of(std::span<const std::size_t> lengths) {
  std::string text;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (i != 0) text += i + 1 == lengths.size() ? " or " : ", ";
    text += std::to_string(lengths[i]);
  }
  return text;
}

std::string between(Lengths lengths) {
  const std::string least = std::to_string(lengths.least);
  if (lengths.step != 1) {
    std::vector<std::size_t> all;
    for (std::size_t length = lengths.least; length <= lengths.most; length += lengths.step) all.push_back(length);
    return one_of(all);
  }
  return lengths.least == lengths.most ? least : least + " to " + std::to_string(lengths.most);
}

}  // namespace

std::span<const Algorithm* const> algorithms() {
  return registered;
}

const Algorithm* algorithm(Cipher cipher, Hash hash) {
  const auto* const found = std::ranges::find_if(
      registered, [&](const Algorithm* one) { return one->cipher == cipher && one->hash == hash; });
  return found == std::end(registered) ? nullptr : *found;
}

std::string why_no_key(const KeyMaterial& material, bool gcm) {
  const Algorithm* const one = algorithm(material.cipher, material.hash);
  if (material.cipher == Cipher::none) return "a key without a cipher";
  if (one == nullptr) return "a key of a cipher and a hash that do not go together";
  const auto wrong = [&](std::string_view what, std::size_t is, const std::string& allowed) {
    return std::string(one->name) + ": " + std::string(what) + " of " + std::to_string(is) + " bytes: must be " +
           allowed;
  };
  if (one->needs_gcm_key && !gcm) {
    return std::string(one->name) + ": the table of keys has been made without GCM";
  }
  if (std::ranges::find(one->key_lengths, material.cipher_key.size()) == one->key_lengths.end()) {
    return wrong("a key", material.cipher_key.size(), one_of(one->key_lengths));
  }
  if (material.salt.size() != one->salt_length) {
    return wrong("a salt", material.salt.size(), std::to_string(one->salt_length));
  }
  if (!one->auth_key.has(material.auth_key.size())) {
    return wrong("an authentication key", material.auth_key.size(), between(one->auth_key));
  }
  if (!one->tag.has(material.tag_length)) {
    return wrong("a tag", material.tag_length, between(one->tag));
  }
  return {};
}

std::string why_no_job(const Key& key, const Job& job) {
  if (key.cipher == Cipher::none) return "its key is not installed";
  const std::string name(algorithm_name(key.cipher, key.hash));
  const std::size_t clear = job.cipher_offset, text = job.cipher_length, iv = explicit_iv_length(key.cipher);
  const bool opens = (job.flags & job_opens) != 0, suffix = (job.flags & job_has_suffix) != 0;
  if (clear + text == 0 || clear + text > 65'535) {
    return name + ": a packet of " + std::to_string(clear + text) + " bytes: must be 1 to 65535";
  }
  if (clear < iv) {
    return name + ": a clear part of " + std::to_string(clear) + " bytes: its IV at the end has " + std::to_string(iv);
  }
  if (iv != 0 && key.hash == Hash::none && suffix && clear != 8 + iv) {
    return name + ": a clear part of " + std::to_string(clear) + " bytes: with a suffix must be " +
           std::to_string(8 + iv);
  }
  if (key.cipher != Cipher::aes_cbc) return {};
  if (text == 0 || text % aes_block != 0) {
    return name + ": a text of " + std::to_string(text) + " bytes: must be whole blocks of 16, one at least";
  }
  if (opens != (key.opens != 0)) return name + (opens ? ": its key is for sealing" : ": its key is for opening");
  return {};
}

const Side* side_for(std::span<const Side* const> sides, Cipher cipher, Hash hash, std::size_t key_length) {
  const Algorithm* const one = algorithm(cipher, hash);
  if (one == nullptr || std::ranges::find(one->key_lengths, key_length) == one->key_lengths.end()) return nullptr;
  const Side* best = nullptr;
  for (const Side* const side : sides) {
    if (side->can(*one, key_length) && (best == nullptr || side->priority > best->priority)) best = side;
  }
  return best;
}

}  // namespace sluice::crypto
