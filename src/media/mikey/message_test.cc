#include "media/mikey/message.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace sluice::media::mikey {
namespace {

using srtp::Suite;

SecretBytes bytes_of(std::string_view base64) {
  auto bytes = base64_decode(base64);
  EXPECT_TRUE(bytes) << base64;
  return bytes ? *bytes : SecretBytes{};
}

MasterKey counting_key(std::size_t size) {
  std::uint8_t bytes[46];
  std::iota(std::begin(bytes), std::end(bytes), std::uint8_t{0});
  return MasterKey({bytes, size});
}

Message message_of(Suite suite) {
  Message message;
  message.csb_id = 0x12345678;
  message.streams = {{0xdeadbeef, 7}, {1, 0}};
  message.ntp_time = ntp_of(1'000'000'000);
  message.suite = suite;
  message.key = counting_key(srtp::facts(suite).key_and_salt_length());
  return message;
}

constexpr std::array<std::uint8_t, 16> random_bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

// What GStreamer 1.22's GstMIKEYMessage.new_from_caps() makes of keys 00 01 02...
const std::string gst_aes128_80 =
    "AQAFAGuNoEIAAAsA7q25FiyRKYgKEJsxjFPFYTJYoCPk6X3m9EIBAAAAFQABAQEBEAIBAQMBCgcBAQgBAQoBAQAAACIAIAAeAAECAwQFBgcICQoLDA"
    "0ODxAREhMUFRYXGBkaGxwdAA==";
const std::string gst_aes256_32 =
    "AQAFAILnbDwAAAsA7q25FiyeI2wKEI/MXR4z4mY6ynW3YIT0MMgBAAAAFQABAQEBIAIBAQMBBAcBAQgBAQoBAQAAADIAIAAuAAECAwQFBgcICQoLDA"
    "0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLQA=";
const std::string gst_gcm128 =
    "AQAFABj1cY8AAAsA7q25FiyjL0QKEPbsmzoOWNokqMpsQZd6K94BAAAAFQABBgEBEAIBAAMBAAcBAQgBAQoBAQAAACAAIAAcAAECAwQFBgcICQoLDA"
    "0ODxAREhMUFRYXGBkaGwA=";

TEST(Mikey, ReadsWhatGStreamerWrites) {
  for (const auto& [text, suite] :
       {std::pair{gst_aes128_80, Suite::aes_cm_128_hmac_sha1_80},
        std::pair{gst_aes256_32, Suite::aes_256_cm_hmac_sha1_32}, std::pair{gst_gcm128, Suite::aead_aes_128_gcm}}) {
    const auto message = parse(bytes_of(text));
    ASSERT_TRUE(message) << message.error().message;
    EXPECT_EQ(message->suite, suite);
    EXPECT_TRUE(message->key == counting_key(srtp::facts(suite).key_and_salt_length()));
    EXPECT_TRUE(message->streams.empty());
    EXPECT_TRUE(message->mki.empty());
  }
  EXPECT_EQ(parse(bytes_of(gst_aes128_80))->csb_id, 0x6b8da042U);
}

TEST(Mikey, ThereAndBack) {
  for (unsigned i = 0; i < srtp::suites.size(); ++i) {
    Message message = message_of(srtp::suites[i].suite);
    message.derivation_rate = i;
    message.mki.assign(i, 0x55);
    const auto back = parse(write(message, random_bytes));
    ASSERT_TRUE(back) << i << ": " << back.error().message;
    EXPECT_EQ(back->suite, message.suite);
    EXPECT_TRUE(back->key == message.key);
    EXPECT_EQ(back->streams, message.streams);
    EXPECT_EQ(back->csb_id, message.csb_id);
    EXPECT_EQ(back->ntp_time, message.ntp_time);
    EXPECT_EQ(back->derivation_rate, message.derivation_rate);
    EXPECT_EQ(back->mki, message.mki);
  }
}

TEST(Mikey, Layout) {
  Message message = message_of(Suite::aes_cm_128_hmac_sha1_80);
  message.streams.resize(1);
  const SecretBytes bytes = write(message, random_bytes);
  const std::uint8_t expected[] = {
      1,  0,    5,    0,    0x12, 0x34, 0x56, 0x78, 1,  0,  // HDR: one crypto session of SRTP
      0,  0xde, 0xad, 0xbe, 0xef, 0,    0,    0,    7,      // policy 0, SSRC, ROC
      11, 0,    0xbf, 0x45, 0x48, 0x80, 0,    0,    0,  0,  // T: NTP-UTC
      10, 16,   1,    2,    3,    4,    5,    6,    7,  8, 9, 10, 11, 12, 13,   14, 15, 16,  // RAND
      1,  0,    0,    0,    27,                                                              // SP: policy 0 of SRTP
      0,  1,    1,    1,    1,    16,   2,    1,    1,  3, 1, 20, 4,  1,  14,   7,  1,  1,
      8,  1,    1,    10,   1,    1,    11,   1,    10, 0, 0, 0,  34, 0,  0x20, 0,  30};  // KEMAC, NULL; a TEK of 30
                                                                                          // bytes
  ASSERT_EQ(bytes.size(), sizeof expected + 31);
  EXPECT_TRUE(std::equal(std::begin(expected), std::end(expected), bytes.begin()));
  EXPECT_EQ(bytes[sizeof expected + 29], 29);
  EXPECT_EQ(bytes.back(), 0) << "no MAC";
}

TEST(Mikey, EveryCutIsRefused) {
  Message message = message_of(Suite::aes_cm_128_hmac_sha1_80);
  message.mki.assign(4, 1);
  const SecretBytes whole = write(message, random_bytes);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse(std::span(whole).first(size))) << size;
  }
  SecretBytes longer = whole;
  longer.push_back(0);
  EXPECT_FALSE(parse(longer));
}

TEST(Mikey, IsRefusedByName) {
  Message message = message_of(Suite::aes_cm_128_hmac_sha1_80);
  message.streams.clear();
  const SecretBytes whole = write(message, random_bytes);
  struct Case {
    std::size_t at;
    std::uint8_t value;
    std::string_view part;
  };
  // HDR 0 to 9, T 10 to 19, RAND 20 to 37, SP 38 to 69, KEMAC from 70.
  for (const Case& one : {
           Case{0, 2, "version"},
           Case{1, 2, "first message"},
           Case{3, 1, "pseudo-random"},
           Case{8, 33, "32"},
           Case{9, 1, "map"},
           Case{11, 3, "time of an unknown kind"},
           Case{20, 7, "payload of type 7"},
           Case{40, 1, "policy"},
           Case{45, 2, "suites"},
           Case{48, 24, "suites"},
           Case{51, 0, "suites"},
           Case{54, 16, "suites"},
           Case{57, 13, "suites"},
           Case{60, 0, "SRTP without encryption"},
           Case{63, 0, "SRTCP without encryption"},
           Case{66, 0, "without authentication"},
           Case{69, 8, "suites"},
           Case{67, 99, "unknown parameter"},
           Case{68, 2, "one byte"},
           Case{71, 1, "encrypted"},
           Case{77, 31, "cut short"},
           Case{75, 0x00, "no TEK"},
           Case{75, 0x22, "interval"},
           Case{77, 29, "behind its last key"},
           Case{108, 1, "authenticated"},
       }) {
    SecretBytes changed = whole;
    ASSERT_LT(one.at, changed.size());
    changed[one.at] = one.value;
    const auto parsed = parse(changed);
    ASSERT_FALSE(parsed) << one.at << ": " << one.part;
    EXPECT_NE(parsed.error().message.find(one.part), std::string::npos) << one.at << ": " << parsed.error().message;
  }
}

TEST(Mikey, TekWithItsSaltApart) {
  // As RFC 3830 section 6.13 has it: type 3, the key, then the salt.
  Message message = message_of(Suite::aes_cm_128_hmac_sha1_80);
  message.streams.clear();
  SecretBytes bytes = write(message, random_bytes);
  bytes[73] = 36;    // KEMAC's length
  bytes[75] = 0x30;  // TEK+SALT
  bytes[77] = 16;
  const std::uint8_t salt_length[] = {0, 14};
  bytes.insert(bytes.begin() + 78 + 16, std::begin(salt_length), std::end(salt_length));
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->key == message.key);
}

TEST(Mikey, KeyMgmtHeader) {
  // As rtspsrc writes it.
  const std::string header = "prot=mikey;uri=\"rtsp://10.9.0.1:8554/a;b,c\";data=\"" + gst_aes128_80 + "\"";
  const auto one = parse_key_mgmt_header(header);
  ASSERT_TRUE(one && *one);
  EXPECT_EQ((*one)->uri, "rtsp://10.9.0.1:8554/a;b,c");
  EXPECT_TRUE(parse((*one)->data));
  const auto second = parse_key_mgmt_header("prot=other; data=\"x\", PROT=MIKEY; data=" + gst_aes128_80);
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->data, (*one)->data);
  EXPECT_FALSE(*parse_key_mgmt_header("prot=other;data=\"x\""));
  EXPECT_FALSE(*parse_key_mgmt_header(""));
  EXPECT_FALSE(parse_key_mgmt_header("prot=mikey;data=\"?\""));
}

}  // namespace
}  // namespace sluice::media::mikey
