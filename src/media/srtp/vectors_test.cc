// The RFCs' own vectors: key derivation of RFC 3711 B.3 and RFC 6188 7.2; packets of RFC 7714 sections 16 and 17. The
// counter mode's (RFC 3711 B.2, RFC 6188 7.1) are in crypto/known_answers.cc.
#include <gtest/gtest.h>

#include "crypto/hex.h"
#include "media/srtp/channel_trial_test.h"
#include "media/srtp/key_derivation.h"

namespace sluice::srtp {
namespace {

using crypto::from_hex;
using test::Bytes;

Bytes bytes_of(std::span<const std::uint8_t> span) {
  return {span.begin(), span.end()};
}

TEST(Vectors, KeyDerivation) {
  struct Case {
    Suite suite;
    std::string_view key, salt, cipher_key, session_salt, auth_key;
  };
  for (const Case& c :
       {Case{Suite::aes_cm_128_hmac_sha1_80, "e1f97a0d3e018be0d64fa32c06de4139", "0ec675ad498afeebb6960b3aabe6",
             "c61e7a93744f39ee10734afe3ff7a087", "30cbbc08863d8c85d49db34a9ae1",
             "cebe321f6ff7716b6fd4ab49af256a156d38baa4"},
        Case{Suite::aes_256_cm_hmac_sha1_80, "f0f04914b513f2763a1b1fa130f10e2998f6f6e43e4309d1e622a0e332b9f1b6",
             "3b04803de51ee7c96423ab5b78d2", "5ba1064e30ec51613cad926c5a28ef731ec7fb397f70a960653caf06554cd8c4",
             "fa31791685ca444a9e07c6c64e93", "fd9c32d39ed5fbb5a9dc96b30818454d1313dc05"}}) {
    const auto keys = derive(c.suite, Protocol::rtp, from_hex(c.key), from_hex(c.salt), 0);
    ASSERT_TRUE(keys);
    const crypto::KeyMaterial material = keys->material(c.suite, Protocol::rtp);
    EXPECT_EQ(bytes_of(material.cipher_key), from_hex(c.cipher_key));
    EXPECT_EQ(bytes_of(material.salt), from_hex(c.session_salt));
    EXPECT_EQ(bytes_of(material.auth_key), from_hex(c.auth_key));
    EXPECT_EQ(material.tag_length, 10);
  }
}

// Section 4.3.1 by hand: key_id is the label and 48 bits of period, x is key_id XOR master_salt.
TEST(Vectors, APeriodChangesEveryKey) {
  const Bytes key = from_hex("e1f97a0d3e018be0d64fa32c06de4139");
  const Bytes salt = from_hex("0ec675ad498afeebb6960b3aabe6");
  const auto keys = derive(Suite::aes_cm_128_hmac_sha1_80, Protocol::rtcp, key, salt, 0x010203040506);
  ASSERT_TRUE(keys);
  const std::uint8_t block[16] = {
      0x0e,        0xc6,        0x75,        0xad,        0x49,        0x8a,        0xfe, 0xeb ^ 3,
      0xb6 ^ 0x01, 0x96 ^ 0x02, 0x0b ^ 0x03, 0x3a ^ 0x04, 0xab ^ 0x05, 0xe6 ^ 0x06, 0,    0};
  Bytes expected(16);
  ASSERT_TRUE(crypto::aes_ctr_keystream(key, block, expected));
  EXPECT_EQ(bytes_of(keys->cipher_key.first(16)), expected);
  EXPECT_EQ(derive(Suite::aead_aes_128_gcm, Protocol::rtp, key, salt, 0).error().message,
            "AEAD_AES_128_GCM: a master key of 16 and a salt of 14 bytes: must be 16 and 12");
}

// --- RFC 7714: packets under session keys ---

constexpr std::string_view key_128 = "000102030405060708090a0b0c0d0e0f";
constexpr std::string_view key_256 = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
constexpr std::string_view rtp =
    "8040f17b8041f8d35501a0b247616c6c696120657374206f6d6e697320646976"
    "69736120696e207061727465732074726573";
constexpr std::string_view rtcp =
    "81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61"
    "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef";

struct PacketCase {
  std::string_view section;
  Suite suite;
  Protocol protocol;
  std::string_view key, plain, sealed;
};
constexpr PacketCase packets[] = {
    {"16.1.1", Suite::aead_aes_128_gcm, Protocol::rtp, key_128, rtp,
     "8040f17b8041f8d35501a0b2f24de3a3fb34de6cacba861c9d7e4bcabe633bd5"
     "0d294e6f42a5f47a51c7d19b36de3adf8833899d7f27beb16a9152cf765ee4390cce"},
    {"16.2.1", Suite::aead_aes_256_gcm, Protocol::rtp, key_256, rtp,
     "8040f17b8041f8d35501a0b232b1de78a822fe12ef9f78fa332e33aab1801238"
     "9a58e2f3b50b2a0276ffae0f1ba63799b87b7aa3db36dfffd6b0f9bb7878d7a76c13"},
    {"17.1", Suite::aead_aes_128_gcm, Protocol::rtcp, key_128, rtcp,
     "81c8000d4d61727363e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32d"
     "c676a5f1730d6fda4ce09b4686303ded0bb9275bc84aa45896cf4d2fc5abf872"
     "45d9eade800005d4"},
    {"17.2", Suite::aead_aes_256_gcm, Protocol::rtcp, key_256, rtcp,
     "81c8000d4d617273d50ae4d1f5ce5d304ba297e47d470c282c3ece5dbffe0a50"
     "a2eaa5c1110555be8415f658c61de0476f1b6fad1d1eb30c4446839f57ff6f6c"
     "b26ac3be800005d4"},
};

// A channel whose session keys are the vector's instead of those that it has derived.
Channel channel_of(test::Lane& lane, const PacketCase& c, Direction direction) {
  const Bytes key = from_hex(c.key);
  const Bytes salt = from_hex("517569642070726f2071756f");
  const MasterKey master{.key = key, .salt = salt};
  auto channel = Channel::make({.suite = c.suite, .protocol = c.protocol, .direction = direction}, {&master, 1},
                               lane.keys, lane.pool);
  EXPECT_TRUE(
      lane.keys.replace(lane.keys.used() - 1, {crypto::Cipher::aes_gcm, crypto::Hash::none, key, salt, {}, 16}));
  return std::move(*channel);
}

TEST(Vectors, GcmPacketsAreProtected) {
  for (const PacketCase& c : packets) {
    test::Lane lane;
    Channel channel = channel_of(lane, c, Direction::protect);
    Bytes packet;
    // The vector's SRTCP index is not the first.
    for (int i = c.protocol == Protocol::rtcp ? 0 : 0x5d4; i <= 0x5d4; ++i) {
      packet = from_hex(c.plain);
      ASSERT_EQ(test::pass(lane, channel, packet), Status::ok);
    }
    EXPECT_EQ(packet, from_hex(c.sealed)) << c.section;
  }
}

TEST(Vectors, GcmPacketsAreUnprotected) {
  for (const PacketCase& c : packets) {
    test::Lane lane;
    Channel channel = channel_of(lane, c, Direction::unprotect);
    Bytes packet = from_hex(c.sealed);
    ASSERT_EQ(test::pass(lane, channel, packet), Status::ok) << c.section;
    EXPECT_EQ(packet, from_hex(c.plain)) << c.section;
  }
}

TEST(Vectors, SrtcpThatIsOnlyAuthenticatedIsAccepted) {
  const PacketCase c = {"17.3",
                        Suite::aead_aes_128_gcm,
                        Protocol::rtcp,
                        key_128,
                        rtcp,
                        "81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61"
                        "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef841dd9683dd78ec92ae58790"
                        "125f62b3000005d4"};
  test::Lane lane;
  Channel channel = channel_of(lane, c, Direction::unprotect);
  Bytes packet = from_hex(c.sealed);
  EXPECT_EQ(test::pass(lane, channel, packet), Status::ok);
  EXPECT_EQ(packet, from_hex(c.plain));
  packet = from_hex(c.sealed);
  packet[20] ^= 1;
  packet.back() ^= 1;  // another index, so that it is no replay
  EXPECT_EQ(test::pass(lane, channel, packet), Status::auth_failed);
}

}  // namespace
}  // namespace sluice::srtp
