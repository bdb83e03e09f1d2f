#include "ipsec/xfrm/algorithms.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace sluice::ipsec::xfrm {
namespace {

using crypto::Cipher;
using crypto::Hash;

constexpr std::size_t salt_length = 4;

// `name` is what Linux answers with; `short_name` means the same.
struct CipherName {
  std::string_view name, short_name;
  Cipher cipher;
  bool salted;  // the last four bytes of the key are the salt
  bool aead;
  std::array<std::uint8_t, 3> keys;  // lengths without the salt; 0: none
  std::array<std::uint8_t, 3> icvs;  // bytes
};
constexpr CipherName ciphers[] = {
    {"cbc(aes)", "aes", Cipher::aes_cbc, false, false, {16, 24, 32}, {}},
    {"rfc3686(ctr(aes))", "", Cipher::aes_ctr_esp, true, false, {16, 24, 32}, {}},
    {"ecb(cipher_null)", "cipher_null", Cipher::null, false, false, {0, 0, 0}, {}},
    {"rfc4106(gcm(aes))", "", Cipher::aes_gcm_esp, true, true, {16, 24, 32}, {8, 12, 16}},
    {"rfc7539esp(chacha20,poly1305)", "", Cipher::chacha20_poly1305_esp, true, true, {32, 32, 32}, {16, 16, 16}},
};

struct HashName {
  std::string_view name, short_name;
  Hash hash;
  std::uint8_t full, usual;  // bytes of the ICV: all, and where nothing is said
};
// Linux cuts HMAC-SHA-256 to 96 bits, as a draft of RFC 4868 did, unless XFRMA_ALG_AUTH_TRUNC says otherwise.
constexpr HashName hashes[] = {
    {"hmac(sha1)", "sha1", Hash::hmac_sha1, 20, 12},
    {"hmac(sha256)", "sha256", Hash::hmac_sha256, 32, 12},
    {"hmac(sha384)", "sha384", Hash::hmac_sha384, 48, 24},
    {"hmac(sha512)", "sha512", Hash::hmac_sha512, 64, 32},
};

// An attribute: name, key and length of the ICV in bits, where it has one.
struct Named {
  std::string_view name;
  std::span<const std::uint8_t> key;
  std::uint32_t icv_bits = 0;
};

template <typename Algorithm>
Result<Named> read_named(NetlinkBytes payload) {
  Algorithm fixed{};
  load_front(payload, fixed);  // Attributes has seen to the length
  const auto* const text = reinterpret_cast<const char*>(payload.data());
  const std::string_view name(text, strnlen(text, sizeof fixed.alg_name));
  if (name.size() == sizeof fixed.alg_name) return refuse(EINVAL, "an algorithm's name has no end");
  const std::size_t length = (std::size_t{fixed.alg_key_len} + 7) / 8;
  const NetlinkBytes behind_it = payload.subspan(sizeof fixed);
  if (length > behind_it.size()) return refuse(EINVAL, "the key of " + std::string(name) + " is cut short");
  Named named{name, {reinterpret_cast<const std::uint8_t*>(behind_it.data()), length}};
  if constexpr (requires { fixed.alg_trunc_len; }) named.icv_bits = fixed.alg_trunc_len;
  if constexpr (requires { fixed.alg_icv_len; }) named.icv_bits = fixed.alg_icv_len;
  return named;
}

SecretKey key_of(std::span<const std::uint8_t> bytes) {
  SecretKey key;
  std::copy(bytes.begin(), bytes.end(), key.bytes.bytes);
  key.length = static_cast<std::uint8_t>(bytes.size());
  return key;
}

tl::unexpected<Refusal> unknown(std::string_view name) {
  // What comes from a daemon goes to the log: printable characters only.
  std::string text(name);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char one) { return one < 0x20 || one > 0x7e; }, '?');
  return refuse(ENOSYS, "the algorithm " + text + " is not supported");
}

Result<void> read_cipher(const Named& named, bool aead, Transform& transform) {
  const auto* const found = std::find_if(std::begin(ciphers), std::end(ciphers), [&](const CipherName& one) {
    return one.aead == aead && (named.name == one.name || (!one.short_name.empty() && named.name == one.short_name));
  });
  if (found == std::end(ciphers)) return unknown(named.name);
  const std::size_t salt = found->salted ? salt_length : 0;
  const auto& keys = found->keys;
  if (named.key.size() < salt || std::find(keys.begin(), keys.end(), named.key.size() - salt) == keys.end()) {
    return refuse(EINVAL, std::string(found->name) + " has no key of " + std::to_string(named.key.size()) + " bytes");
  }
  transform.cipher = found->cipher;
  transform.cipher_key = key_of(named.key.first(named.key.size() - salt));
  transform.salt = key_of(named.key.last(salt));
  if (!aead) return {};
  const auto& icvs = found->icvs;
  if (named.icv_bits % 8 != 0 || std::find(icvs.begin(), icvs.end(), named.icv_bits / 8) == icvs.end()) {
    return refuse(EINVAL, std::string(found->name) + " has no ICV of " + std::to_string(named.icv_bits) + " bits");
  }
  transform.icv_length = static_cast<std::uint8_t>(named.icv_bits / 8);
  return {};
}

Result<void> read_hash(const Named& named, Transform& transform) {
  const auto* const found = std::find_if(std::begin(hashes), std::end(hashes), [&](const HashName& one) {
    return named.name == one.name || named.name == one.short_name;
  });
  if (found == std::end(hashes)) return unknown(named.name);
  if (named.key.empty() || named.key.size() > sizeof(SecretKey::bytes.bytes)) {
    return refuse(EINVAL, std::string(found->name) + " has no key of " + std::to_string(named.key.size()) + " bytes");
  }
  if (named.icv_bits % 8 != 0 || named.icv_bits / 8 > found->full) {
    return refuse(EINVAL, std::string(found->name) + " has no ICV of " + std::to_string(named.icv_bits) + " bits");
  }
  transform.hash = found->hash;
  transform.auth_key = key_of(named.key);
  transform.icv_length = named.icv_bits == 0 ? found->usual : static_cast<std::uint8_t>(named.icv_bits / 8);
  return {};
}

template <typename Algorithm>
void write_named(Message& message, int type, std::string_view name, std::span<const std::uint8_t> key,
                 std::span<const std::uint8_t> salt, std::uint8_t icv_length) {
  crypto::Secret<sizeof(Algorithm) + sizeof(SecretKey::bytes.bytes) + salt_length> bytes;
  Algorithm fixed{};
  name.copy(fixed.alg_name, sizeof fixed.alg_name - 1);
  fixed.alg_key_len = static_cast<unsigned>(8 * (key.size() + salt.size()));
  if constexpr (requires { fixed.alg_trunc_len; }) fixed.alg_trunc_len = 8U * icv_length;
  if constexpr (requires { fixed.alg_icv_len; }) fixed.alg_icv_len = 8U * icv_length;
  std::memcpy(bytes.bytes, &fixed, sizeof fixed);
  std::copy(key.begin(), key.end(), bytes.bytes + sizeof fixed);
  std::copy(salt.begin(), salt.end(), bytes.bytes + sizeof fixed + key.size());
  message.attribute(type, bytes.bytes, sizeof fixed + key.size() + salt.size());
}

}  // namespace

Result<Transform> read_transform(const Attributes& attributes, Protocol protocol) {
  const bool aead = attributes.has(XFRMA_ALG_AEAD), crypt = attributes.has(XFRMA_ALG_CRYPT);
  const bool truncated = attributes.has(XFRMA_ALG_AUTH_TRUNC), auth = truncated || attributes.has(XFRMA_ALG_AUTH);
  if (protocol == Protocol::ah ? aead || crypt || !auth : aead ? crypt || auth : !crypt) {
    return refuse(EINVAL, "the algorithms are not those of ESP or AH: a cipher and a hash, an AEAD, or for AH a hash");
  }
  Transform transform;
  const auto read = [&](auto named, const auto& into) -> Result<void> {
    return std::move(named).and_then([&](const Named& one) { return into(one); });
  };
  Result<void> done;
  if (aead) {
    done = read(read_named<xfrm_algo_aead>(attributes.payload(XFRMA_ALG_AEAD)),
                [&](const Named& one) { return read_cipher(one, true, transform); });
  }
  if (crypt) {
    done = read(read_named<xfrm_algo>(attributes.payload(XFRMA_ALG_CRYPT)),
                [&](const Named& one) { return read_cipher(one, false, transform); });
  }
  if (done && auth) {
    done = read(truncated ? read_named<xfrm_algo_auth>(attributes.payload(XFRMA_ALG_AUTH_TRUNC))
                          : read_named<xfrm_algo>(attributes.payload(XFRMA_ALG_AUTH)),
                [&](const Named& one) { return read_hash(one, transform); });
  }
  if (!done) return tl::unexpected(done.error());
  if (transform.cipher == Cipher::null && transform.hash == Hash::none) {
    return refuse(EINVAL, "there is neither a cipher nor a hash");
  }
  return transform;
}

void write_transform(Message& message, const Transform& transform, Protocol protocol) {
  for (const HashName& one : hashes) {
    if (one.hash != transform.hash) continue;
    write_named<xfrm_algo>(message, XFRMA_ALG_AUTH, one.name, transform.auth_key.view(), {}, 0);
    write_named<xfrm_algo_auth>(message, XFRMA_ALG_AUTH_TRUNC, one.name, transform.auth_key.view(), {},
                                transform.icv_length);
  }
  if (protocol == Protocol::ah) return;
  for (const CipherName& one : ciphers) {
    if (one.cipher != transform.cipher) continue;
    if (one.aead) {
      write_named<xfrm_algo_aead>(message, XFRMA_ALG_AEAD, one.name, transform.cipher_key.view(), transform.salt.view(),
                                  transform.icv_length);
    } else {
      write_named<xfrm_algo>(message, XFRMA_ALG_CRYPT, one.name, transform.cipher_key.view(), transform.salt.view(), 0);
    }
  }
}

}  // namespace sluice::ipsec::xfrm
