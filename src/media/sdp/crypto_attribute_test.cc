#include "media/sdp/crypto_attribute.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::media::sdp {
namespace {

const std::string key30 = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";  // RFC 4568 section 9.2
const std::string key46 = std::string(60, 'A') + "AA==";
const std::string key28 = std::string(36, 'A') + "AA==";
const std::string key44 = std::string(56, 'A') + "AAA=";

TEST(Crypto, ThereAndBack) {
  for (const std::string& text : {
           "1 AES_CM_128_HMAC_SHA1_80 inline:" + key30,
           "1 AES_CM_128_HMAC_SHA1_32 inline:" + key30 + "|1048576",
           "999999999 AES_256_CM_HMAC_SHA1_80 inline:" + key46 + "|1048576|1:4",
           "7 AES_256_CM_HMAC_SHA1_32 inline:" + key46 + "|66051:4",
           "1 AEAD_AES_128_GCM inline:" + key28 + " KDR=24",
           "1 AEAD_AES_256_GCM inline:" + key44 + " WSH=128",
           "1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|1024|1:2;inline:" + key30 + "|2:2 KDR=1 WSH=64",
       }) {
    const auto attribute = parse_crypto(text);
    ASSERT_TRUE(attribute) << text << ": " << attribute.error().message;
    EXPECT_EQ(crypto_text(*attribute).view(), text);
  }
}

TEST(Crypto, ItsParts) {
  const auto one = parse_crypto("1  AES_CM_128_HMAC_SHA1_80\tinline:" + key30 + "|2^20|1:4 -LATER=x KDR=0");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->tag, 1U);
  EXPECT_EQ(one->suite, srtp::Suite::aes_cm_128_hmac_sha1_80);
  EXPECT_EQ(one->keys.at(0).lifetime, 1U << 20);
  EXPECT_EQ(one->keys.at(0).mki, 1U);
  EXPECT_EQ(one->keys.at(0).mki_length, 4U);
  EXPECT_EQ(one->keys.at(0).key.size(), 30U);
  EXPECT_EQ(one->keys.at(0).key.bytes()[0], 'Y');
}

TEST(Crypto, AsItIsCopied) {
  const std::string value = "1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|2^31|1:4";
  for (const auto& [before, behind] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", ""},
           {"a=crypto:", ""},
           {"a=crypto:", "\r\n"},
           {"A=Crypto: ", " \t\r"},
           {"\n \ta=crypto:", "\n\n"},
           {"crypto:", " "},
       }) {
    const std::string line = before + value + behind;
    EXPECT_EQ(crypto_value(line), value) << line;
    EXPECT_TRUE(parse_crypto(crypto_value(line))) << line;
  }
  EXPECT_EQ(crypto_value(""), "");
  EXPECT_EQ(crypto_value(" \r\n"), "");
  EXPECT_EQ(crypto_value("a=crypto:"), "");
  EXPECT_EQ(crypto_value("a=cryptograph:1 x"), "cryptograph:1 x");
}

TEST(Crypto, IsRefusedByName) {
  const std::string start = "1 AES_CM_128_HMAC_SHA1_80 inline:" + key30;
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "tag"},
      {"x " + start, "tag"},
      {"1234567890 AES_CM_128_HMAC_SHA1_80 inline:" + key30, "tag"},
      {"1 F8_128_HMAC_SHA1_80 inline:" + key30, "suite 'F8_128_HMAC_SHA1_80' is not supported"},
      {"1 NULL_HMAC_SHA1_80 inline:" + key30, "suite"},
      {"1 AES_CM_128_HMAC_SHA1_80", "no key"},
      {"1 AES_CM_128_HMAC_SHA1_80 " + key30, "key method"},
      {"1 AES_CM_128_HMAC_SHA1_80 outline:" + key30, "key method"},
      {"1 AES_CM_128_HMAC_SHA1_80 inline:" + key46, "30 bytes together, not 46"},
      {"1 AES_256_CM_HMAC_SHA1_80 inline:" + key30, "46 bytes together, not 30"},
      {"1 AES_CM_128_HMAC_SHA1_80 inline:!" + key30, "no base64"},
      {start + "|2^49", "lifetime"},
      {start + "|0", "lifetime"},
      {start + "|2^", "lifetime"},
      {start + "|-1", "lifetime"},
      {start + "|1:0", "length of an MKI"},
      {start + "|1:129", "length of an MKI"},
      {start + "|256:1", "fits in its length"},
      {start + "|1:4|1:4", "at most a lifetime and an MKI"},
      {start + "|1:4|2^20", "at most a lifetime and an MKI"},
      {start + "|2^20|2^20", "at most a lifetime and an MKI"},
      {start + ";inline:" + key30, "MKI each"},
      {start + "|1:4;inline:" + key30 + "|1:4", "MKI each"},
      {start + "|1:4;inline:" + key30 + "|2:2", "MKI each"},
      {start + " KDR=25", "KDR"},
      {start + " KDR", "KDR"},
      {start + " WSH=63", "WSH"},
      {start + " WSH=16385", "WSH is 64 to 16384"},
      {start + " UNENCRYPTED_SRTP", "UNENCRYPTED_SRTP is not supported"},
      {start + " UNENCRYPTED_SRTCP", "UNENCRYPTED_SRTCP is not supported"},
      {start + " UNAUTHENTICATED_SRTP", "UNAUTHENTICATED_SRTP is not supported"},
      {start + " FEC_ORDER=FEC_SRTP", "FEC_ORDER is not supported"},
      {start + " FEC_KEY=inline:" + key30, "FEC_KEY is not supported"},
      {start + " NEW=1", "'NEW' is unknown"},
      {start + " inline:" + key30 + "|1:4", "session parameter of 51 characters is unknown"},
      {start + " KDR=inline:" + key30, "KDR is 0 to 24, not of 47 characters"},
      {start + " WSH=" + key30, "not of 40 characters"},
  };
  for (const auto& [text, part] : cases) {
    const auto attribute = parse_crypto(text);
    ASSERT_FALSE(attribute) << text;
    EXPECT_NE(attribute.error().message.find(part), std::string::npos) << text << ": " << attribute.error().message;
    EXPECT_EQ(attribute.error().message.find("WVNf"), std::string::npos) << "a key in a message";
  }
}

TEST(Crypto, AtMostSixteenKeys) {
  std::string text = "1 AES_CM_128_HMAC_SHA1_80 ";
  for (unsigned i = 1; i <= 16; ++i) {
    text += (i > 1 ? ";inline:" : "inline:") + key30 + '|' + std::to_string(i) + ":1";
  }
  EXPECT_TRUE(parse_crypto(text));
  EXPECT_FALSE(parse_crypto(text + ";inline:" + key30 + "|17:1"));
}

}  // namespace
}  // namespace sluice::media::sdp
