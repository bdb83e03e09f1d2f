// Streams that come back to a key are reported, once each, and the keys are not kept.
#include "function/srtp/spent_keys.h"

#include <gmock/gmock.h>

#include "function/srtp/streams_trial_test.h"

namespace sluice::function {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string gcm_key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGw==";

MediaStreamSettings one(const std::string& text) {
  return read_stream_text(text, "a test", 1514)->front();
}

TEST(SpentKeys, AreKnownBy5TupleAndKey) {
  SpentKeys keys = *SpentKeys::make();
  keys.spend(one(text_of(7000)));
  EXPECT_TRUE(keys.has(one(text_of(7000) + "max_ssrcs = 5\nrate = 9\n")));
  EXPECT_FALSE(keys.has(one(text_of(7001))));
  EXPECT_FALSE(keys.has(one(text_of(7000, "protect", other_key30))));
  EXPECT_FALSE(keys.has(one(text_of(7000, "unprotect"))));
  keys.spend(one(text_of(7001, "unprotect")));
  keys.spend(settings_of(7002)[0]);  // RTSP's
  EXPECT_EQ(keys.size(), 1U);
}

TEST(SpentKeys, OfEachMasterKeyAndOfEverySuite) {
  SpentKeys keys = *SpentKeys::make();
  const auto text = [](const std::string& crypto) {
    std::string all = text_of(7000);
    return all.replace(all.find("1 AES_CM"), all.rfind('"') - all.find("1 AES_CM"), crypto);
  };
  keys.spend(one(text("1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|1:4;inline:" + other_key30 + "|2:4")));
  keys.spend(one(text("1 AEAD_AES_128_GCM inline:" + gcm_key)));
  EXPECT_EQ(keys.size(), 3U);
  EXPECT_TRUE(keys.has(one(text_of(7000, "protect", other_key30)))) << "whatever its MKI";
  EXPECT_TRUE(keys.has(one(text("1 AES_CM_128_HMAC_SHA1_32 inline:" + key30)))) << "the same keystream";
  EXPECT_TRUE(keys.has(one(text("1 AEAD_AES_128_GCM inline:" + gcm_key))));
}

TEST(SpentKeys, ThatWereLeftLongestAgoAreForgottenFirst) {
  SpentKeys keys = *SpentKeys::make(2);
  for (const unsigned port : {7000U, 7001U, 7000U, 7002U}) keys.spend(one(text_of(port)));
  EXPECT_EQ(keys.size(), 2U);
  EXPECT_TRUE(keys.has(one(text_of(7000)))) << "left again meanwhile";
  EXPECT_FALSE(keys.has(one(text_of(7001))));
  EXPECT_TRUE(keys.has(one(text_of(7002))));
}

const std::string warning_of_7000 =
    "the SRTP stream 10.0.0.1:5004 -> 10.0.0.2:7000 protects with a key that it has had";

TEST(Streams, ThatComeBackToTheirKeyOverTheApiAreReported) {
  SrtpTrial trial("");
  MediaStreams& streams = streams_of(trial);
  ASSERT_TRUE(streams.add_text(text_of(7000), "the request"));
  ASSERT_TRUE(streams.replace_text(text_of(7000) + "rate = 9_000_000\n", "the request")) << "keeps its indexes";
  ASSERT_TRUE(streams.replace_text(text_of(7000, "protect", other_key30), "the request"));
  EXPECT_THAT(streams.take_warnings(), IsEmpty());
  EXPECT_FALSE(streams.replace_text(text_of(7000, "protect", other_key30) + "max_ssrcs = 3\n", "the request"));
  EXPECT_THAT(streams.take_warnings(), IsEmpty());
  ASSERT_TRUE(streams.remove_text(text_of(7000), "the request"));
  ASSERT_TRUE(streams.add_text(text_of(7000), "the request"));
  const auto warnings = streams.take_warnings();
  ASSERT_THAT(warnings, ElementsAre(HasSubstr(warning_of_7000)));
  EXPECT_EQ(warnings[0].find(key30.substr(0, 8)), std::string::npos);
  EXPECT_THAT(streams.take_warnings(), IsEmpty());
  EXPECT_EQ(trial.metric("srtp_keys_again"), 1U);
}

TEST(Streams, ThatComeBackToTheirKeyByReloadsAreReported) {
  SrtpTrial trial(stream_text("protect"));
  MediaStreams& streams = streams_of(trial);
  EXPECT_THAT(streams.take_warnings(), ElementsAre(HasSubstr("1 SRTP stream of the file protect")));
  const auto reload = [&](const std::string& text) { trial.element().reload(*srtp_of(text))->commit(); };
  reload(stream_text("protect", "rate = 9_000_000\n"));
  reload("");
  EXPECT_EQ(trial.metric("srtp_keys_again"), 0U);
  reload(stream_text("protect"));
  EXPECT_THAT(streams.take_warnings(), ElementsAre(HasSubstr("protects with a key that it has had before")));
  reload(stream_text("protect", "", other_key30));
  reload(stream_text("protect"));
  EXPECT_EQ(trial.metric("srtp_keys_again"), 2U);
}

TEST(Streams, OnlyThoseThatProtectAreReportedAtTheStart) {
  SrtpTrial opens(stream_text("unprotect"));
  EXPECT_THAT(streams_of(opens).take_warnings(), IsEmpty());
  SrtpTrial trial(stream_text("protect", "rtcp_source_port = 9\nrtcp_destination_port = 10") + "[[srtp.stream]]\n" +
                  text_of(7000, "protect", other_key30) + "[[srtp.stream]]\n" + text_of(7001, "unprotect"));
  EXPECT_THAT(streams_of(trial).take_warnings(), ElementsAre(HasSubstr("2 SRTP streams of the file protect")));
}

TEST(Streams, ThatWaitForTheLogAreFew) {
  SrtpTrial trial("[srtp]\nmax_keys = 256\n");
  MediaStreams& streams = streams_of(trial);
  for (int twice = 0; twice < 2; ++twice) {
    for (unsigned port = 7000; port < 7040; ++port) {
      ASSERT_TRUE(streams.add_text(text_of(port), "the request"));
      ASSERT_TRUE(streams.release_text(text_of(port), "the request"));
    }
  }
  const auto warnings = streams.take_warnings();
  EXPECT_EQ(warnings.size(), 17U);
  EXPECT_THAT(warnings.back(), HasSubstr("srtp_keys_again and srtp_keys_shared count all"));
  EXPECT_EQ(trial.metric("srtp_keys_again"), 40U);
}

}  // namespace
}  // namespace sluice::function
