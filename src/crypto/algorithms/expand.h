// Parts of expanding keys that several algorithms share. For .cc files of this room only.
#pragma once

#include <cstdint>
#include <span>

#include "crypto/ipsec_mb.h"
#include "crypto/key.h"

namespace sluice::crypto {

// AES's round keys, for enciphering, of a key of 16, 24 or 32 bytes; and how many rounds.
void expand_aes(IMB_MGR* manager, std::span<const std::uint8_t> cipher_key, Key& key);
// HMAC's two states of SHA-1 (RFC 2104), of a key of at most 64 bytes.
void expand_hmac_sha1(IMB_MGR* manager, std::span<const std::uint8_t> auth_key, Key& key);

}  // namespace sluice::crypto
