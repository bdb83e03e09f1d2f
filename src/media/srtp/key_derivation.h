// Session keys from a master key: RFC 3711 section 4.3 with AES-CM as the PRF (RFC 6188 for 256 bits, RFC 7714 section
// 11). Any thread. About 3 us: three keystreams of libcrypto.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "crypto/key_table.h"
#include "crypto/secret.h"
#include "media/srtp/suite.h"

namespace sluice::srtp {

struct SessionKeys {
  crypto::Secret<max_key_length> cipher_key;
  crypto::Secret<crypto::sha1_length> auth_key;
  crypto::Secret<max_salt_length> salt;

  // Spans into this object.
  crypto::KeyMaterial material(Suite suite, Protocol protocol) const;
};

// `key` and `salt`: as long as the suite wants. `period`: the index divided by the key derivation rate, 0 where that is
// 0.
Expected<SessionKeys> derive(Suite suite, Protocol protocol, std::span<const std::uint8_t> key,
                             std::span<const std::uint8_t> salt, std::uint64_t period);

}  // namespace sluice::srtp
