// Names of algorithms, as swanctl.conf's esp_proposals and ah_proposals have them.
#include "ipsec/proposal.h"

#include <gmock/gmock.h>

#include <vector>

namespace sluice::ipsec {
namespace {

using crypto::Cipher;
using crypto::Hash;
using testing::AllOf;
using testing::HasSubstr;

struct Meaning {
  Cipher cipher;
  Hash hash;
  unsigned key, salt, auth_key, icv;
  bool operator==(const Meaning&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Meaning& one) {
  return out << static_cast<int>(one.cipher) << ' ' << static_cast<int>(one.hash) << ' ' << one.key << ' ' << one.salt
             << ' ' << one.auth_key << ' ' << one.icv;
}

Meaning meaning_of(const Proposal& of) {
  return {of.cipher, of.hash, of.key_length, of.salt_length, of.auth_key_length, of.icv_length};
}

TEST(Proposal, TakesStrongSwansNames) {
  constexpr Cipher cbc = Cipher::aes_cbc, ctr = Cipher::aes_ctr_esp, gcm = Cipher::aes_gcm_esp;
  constexpr Hash none = Hash::none, sha1 = Hash::hmac_sha1, sha256 = Hash::hmac_sha256, sha384 = Hash::hmac_sha384,
                 sha512 = Hash::hmac_sha512;
  struct Case {
    const char* text;
    Meaning meaning;
    const char* usual;  // its name in lists
  };
  const Case cases[] = {
      {"aes-sha", {cbc, sha1, 16, 0, 20, 12}, "aes128-sha1"},
      {"aes128-sha1", {cbc, sha1, 16, 0, 20, 12}, "aes128-sha1"},
      {"aes128-sha1_160", {cbc, sha1, 16, 0, 20, 20}, "aes128-sha1_160"},
      {"aes192-sha2_256", {cbc, sha256, 24, 0, 32, 16}, "aes192-sha256"},
      {"aes128-sha256_96", {cbc, sha256, 16, 0, 32, 12}, "aes128-sha256_96"},
      {"aes128-sha2_256_96", {cbc, sha256, 16, 0, 32, 12}, "aes128-sha256_96"},
      {"aes256-sha2_384", {cbc, sha384, 32, 0, 48, 24}, "aes256-sha384"},
      {"aes256-sha2_512", {cbc, sha512, 32, 0, 64, 32}, "aes256-sha512"},
      {"sha512-aes256", {cbc, sha512, 32, 0, 64, 32}, "aes256-sha512"},
      {"aes128ctr-sha256", {ctr, sha256, 16, 4, 32, 16}, "aes128ctr-sha256"},
      {"aes192ctr-sha384", {ctr, sha384, 24, 4, 48, 24}, "aes192ctr-sha384"},
      {"aes256ctr-sha2_512", {ctr, sha512, 32, 4, 64, 32}, "aes256ctr-sha512"},
      {"aes128gcm8", {gcm, none, 16, 4, 0, 8}, "aes128gcm8"},
      {"aes128gcm64", {gcm, none, 16, 4, 0, 8}, "aes128gcm8"},
      {"aes192gcm12", {gcm, none, 24, 4, 0, 12}, "aes192gcm12"},
      {"aes256gcm96", {gcm, none, 32, 4, 0, 12}, "aes256gcm12"},
      {"aes128gcm16", {gcm, none, 16, 4, 0, 16}, "aes128gcm16"},
      {"aes128gcm128", {gcm, none, 16, 4, 0, 16}, "aes128gcm16"},
      {"aes256gcm", {gcm, none, 32, 4, 0, 16}, "aes256gcm16"},
      {"chacha20poly1305", {Cipher::chacha20_poly1305_esp, none, 32, 4, 0, 16}, "chacha20poly1305"},
      {"null-sha256", {Cipher::null, sha256, 0, 0, 32, 16}, "null-sha256"},
  };
  for (const Case& one : cases) {
    const auto proposal = parse_proposal(one.text, Protocol::esp);
    ASSERT_TRUE(proposal) << proposal.error().message;
    EXPECT_EQ(meaning_of(*proposal), one.meaning) << one.text;
    EXPECT_FALSE(proposal->esn) << one.text;
    EXPECT_EQ(proposal->ignored, "") << one.text;
    const std::vector<std::uint8_t> key(proposal->key_length + proposal->salt_length), auth(proposal->auth_key_length);
    const auto transform = make_transform(*proposal, key, auth);
    ASSERT_TRUE(transform) << transform.error().message;
    EXPECT_EQ(proposal_text(*transform, Protocol::esp), one.usual) << one.text;
  }
}

TEST(Proposal, OfAhIsAHash) {
  const auto proposal = parse_proposal("sha2_256-modp2048-esn", Protocol::ah);
  ASSERT_TRUE(proposal) << proposal.error().message;
  EXPECT_EQ(meaning_of(*proposal), (Meaning{Cipher::null, Hash::hmac_sha256, 0, 0, 32, 16}));
  EXPECT_EQ(proposal->esn, std::optional(true));
  EXPECT_EQ(proposal->ignored, "modp2048");
}

TEST(Proposal, KeepsWhatIsOfIkeApart) {
  struct Case {
    const char *text, *ignored;
    std::optional<bool> esn;
  };
  const Case cases[] = {
      {"aes128-sha256-modp2048", "modp2048", {}},
      {"aes128gcm16-ecp256", "ecp256", {}},
      {"aes128gcm16-curve25519-esn", "curve25519", true},
      {"aes256gcm16-x25519-noesn", "x25519", false},
      {"aes256gcm16-prfsha384-ecp384bp", "prfsha384-ecp384bp", {}},
      {"aes256gcm16-x25519-ke1_mlkem768", "x25519-ke1_mlkem768", {}},
      {"aes128-sha256-modpnone", "modpnone", {}},
      {"aes128gcm16-sha256", "sha256", {}},  // strongSwan takes it away, too
      {"aes128-sha1-esn", "", true},
  };
  for (const Case& one : cases) {
    const auto proposal = parse_proposal(one.text, Protocol::esp);
    ASSERT_TRUE(proposal) << proposal.error().message;
    EXPECT_EQ(proposal->ignored, one.ignored) << one.text;
    EXPECT_EQ(proposal->esn, one.esn) << one.text;
  }
  EXPECT_EQ(parse_proposal("aes128gcm16-sha256", Protocol::esp)->auth_key_length, 0);
}

TEST(Proposal, SaysWhatIsNotThere) {
  struct Case {
    const char* text;
    Protocol protocol;
    const char* why;
  };
  const Case cases[] = {
      {"", Protocol::esp, "has \"\", which is not here"},
      {"aes128", Protocol::esp, "has no hash, without which ESP is not safe: write \"aes128-sha256\""},
      {"null", Protocol::esp, "has no hash"},
      {"sha256", Protocol::esp, "has no cipher; there are aes128, "},
      {"modp2048", Protocol::esp, "has no cipher"},
      {"aes128-aes256-sha256", Protocol::esp, "has two ciphers, and an SA has one"},
      {"aes128-sha1-sha256", Protocol::esp, "has two hashes, and an SA has one"},
      {"aes128gcm16-esn-noesn", Protocol::esp, "says twice"},
      {"aes128-sha256, aes256-sha256", Protocol::esp, "has several proposals, and an SA has one"},
      {"aes128ccm16", Protocol::esp, "has \"aes128ccm16\", which is not here; there are the ciphers aes128, "},
      {"aes128gcm17", Protocol::esp, "has \"aes128gcm17\", which is not here"},
      {"aes512gcm", Protocol::esp, "has \"aes512gcm\", which is not here"},
      {"aes128-md5", Protocol::esp, "has \"md5\", which is not here"},
      {"aes128-sha256-", Protocol::esp, "has \"\", which is not here"},
      {"aes128-sha256-ke8_modp2048", Protocol::esp, "has \"ke8_modp2048\", which is not here"},
      {"aes128-sha256", Protocol::ah, "AH has none: write the hash alone"},
      {"modp2048", Protocol::ah, "has no hash; there are sha1, "},
      {"md5", Protocol::ah, "has \"md5\", which is not here; there are the hashes sha1, "},
  };
  for (const Case& one : cases) {
    const auto proposal = parse_proposal(one.text, one.protocol);
    ASSERT_FALSE(proposal) << one.text;
    EXPECT_THAT(proposal.error().message, AllOf(HasSubstr("\"" + std::string(one.text) + "\" "), HasSubstr(one.why)));
  }
}

}  // namespace
}  // namespace sluice::ipsec
