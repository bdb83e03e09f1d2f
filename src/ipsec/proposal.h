// Names of ESP's and AH's algorithms as strongSwan's proposals have them: "aes128-sha256", "aes256gcm16",
// "aes128ctr-sha1", "chacha20poly1305", "null-sha256"; of AH the hash alone: "sha256".
//
// Source: proposal_keywords_static.txt of strongSwan 5.9 and 6.0. All of its names for algorithms that are here are
// taken with the meaning that they have there: "aes" is "aes128", "aes128gcm128" and "aes128gcm" are "aes128gcm16",
// "sha2_256" is "sha256". "-esn" and "-noesn" say whether sequence numbers have 64 bits.
#pragma once

#include <cstdint>
#include <optional>
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
  std::optional<bool> esn = {};      // where it says so
  // What it says of IKE, or of a hash beside a cipher that authenticates, and what is no part of an SA: "modp2048".
  std::string ignored = {};
};

// An Error names what there is.
Expected<Proposal> parse_proposal(std::string_view text, Protocol protocol);
std::string proposal_text(const Transform& transform, Protocol protocol);
// `cipher_key`: with the salt behind. An Error: a key has another length than the proposal's.
Expected<Transform> make_transform(const Proposal& proposal, std::span<const std::uint8_t> cipher_key,
                                   std::span<const std::uint8_t> auth_key);

}  // namespace sluice::ipsec
