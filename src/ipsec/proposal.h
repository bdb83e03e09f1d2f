// Names of ESP's and AH's algorithms as strongSwan's proposals have them: "aes128-sha256", "aes256gcm16",
// "aes128ctr-sha1", "chacha20poly1305", "null-sha256"; of AH the hash alone: "sha256".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "crypto/key.h"
#include "ipsec/security_association.h"

namespace sluice::ipsec {

struct Proposal {
  crypto::Cipher cipher = crypto::Cipher::null;
  crypto::Hash hash = crypto::Hash::none;
  std::uint8_t key_length = 0;       // bytes, without the salt
  std::uint8_t salt_length = 0;      // bytes, which follow the key where a file has one
  std::uint8_t auth_key_length = 0;  // bytes
  std::uint8_t icv_length = 0;       // bytes
};

// An Error names what there is.
Expected<Proposal> parse_proposal(std::string_view text, Protocol protocol);
std::string proposal_text(const Transform& transform, Protocol protocol);
// `cipher_key`: with the salt behind. An Error: a key has another length than the proposal's.
Expected<Transform> make_transform(const Proposal& proposal, std::span<const std::uint8_t> cipher_key,
                                   std::span<const std::uint8_t> auth_key);

}  // namespace sluice::ipsec
