// Streams that protect with one master key are reported, with both places, and without the key.
#include "function/srtp/shared_keys.h"

#include <gmock/gmock.h>

#include "function/srtp/streams_trial_test.h"

namespace sluice::function {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::string third_key30 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd";
const std::string gcm_key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGw==";

// A section of the file.
std::string section(unsigned port, const std::string& action = "protect", const std::string& key = key30) {
  return "[[srtp.stream]]\n" + text_of(port, action, key);
}

std::string with_crypto(std::string text, const std::string& crypto) {
  return text.replace(text.find("1 AES_CM"), text.rfind('"') - text.find("1 AES_CM"), crypto);
}

auto names(unsigned port, unsigned line, unsigned other, unsigned other_line) {
  return HasSubstr("the SRTP stream 10.0.0.1:5004 -> 10.0.0.2:" + std::to_string(port) +
                   " (a.toml:" + std::to_string(line) + ") protects with a master key of 10.0.0.1:5004 -> 10.0.0.2:" +
                   std::to_string(other) + " (a.toml:" + std::to_string(other_line) + "): ");
}

// What the file's own streams say, but for the line on starts.
std::vector<std::string> warnings_at_start(const std::string& text) {
  SrtpTrial trial(text);
  std::vector<std::string> warnings = streams_of(trial).take_warnings();
  std::erase_if(warnings, [](const std::string& one) { return one.find(" of the file protect") != one.npos; });
  EXPECT_EQ(trial.metric("srtp_keys_shared"), warnings.size());
  return warnings;
}

std::vector<std::string> notes_of(const std::string& text) {
  Diagnostics diagnostics;
  Settings file = *Settings::from_text(text, "a.toml", diagnostics);
  Settings srtp = file.section("srtp");
  std::vector<MediaStreamSettings> streams = read_streams(srtp, 1514, engine::PortTable());
  EXPECT_THAT(diagnostics.lines, IsEmpty());
  return shared_key_notes(std::move(streams));
}

TEST(SharedKeys, OfTwoStreamsOfTheFileAreReportedAtTheStartAndByCheck) {
  const std::string two_keys = "1 AES_CM_128_HMAC_SHA1_80 inline:" + other_key30 + "|1:4;inline:" + key30 + "|2:4";
  const struct {
    const char* what;
    std::string text;
    bool is_said;
  } cases[] = {
      {"one key", section(7000) + section(7001), true},
      {"each its own", section(7000) + section(7001, "protect", other_key30), false},
      {"another suite, the same keystream",
       section(7000) + with_crypto(section(7001), "1 AES_CM_128_HMAC_SHA1_32 inline:" + key30), true},
      {"the second of two", section(7000) + with_crypto(section(7001), two_keys), true},
      {"GCM",
       with_crypto(section(7000), "1 AEAD_AES_128_GCM inline:" + gcm_key) +
           with_crypto(section(7001), "1 AEAD_AES_128_GCM inline:" + gcm_key),
       true},
      {"the way back", section(7000) + section(7001, "unprotect"), false},
      {"two that unprotect", section(7000, "unprotect") + section(7001, "unprotect"), false},
      {"RTCP beside its RTP", section(7000) + "rtcp_source_port = 5005\nrtcp_destination_port = 7001\n", false},
  };
  for (const auto& [what, text, is_said] : cases) {
    for (const auto& said : {warnings_at_start(text), notes_of(text)}) {
      EXPECT_THAT(said, SizeIs(is_said ? 1 : 0)) << what;
      if (!is_said || said.empty()) continue;
      EXPECT_THAT(said[0], AllOf(names(7001, 8, 7000, 1), HasSubstr("Give each a key of its own"),
                                 Not(HasSubstr(key30.substr(0, 8))), Not(HasSubstr(other_key30.substr(0, 8)))))
          << what;
      EXPECT_THAT(said[0], HasSubstr(text.find("GCM") == text.npos ? "head -c 30 " : "head -c 28 ")) << what;
    }
  }
}

MediaStreamSettings protecting(unsigned port, std::vector<std::uint64_t> hashes = {1}) {
  MediaStreamSettings stream = (*read_stream_text(text_of(port), "a test", 1514))[0];
  stream.master_hashes = std::move(hashes);
  return stream;
}

// Both as the one that has a key and as the one that comes with it, and as one that goes.
TEST(SharedKeys, LooksAtWhatProtectsMediaWithGivenKeysAlone) {
  const struct {
    const char* what;
    void (*change)(MediaStreamSettings&);
    bool is_looked_at = false;
  } cases[] = {
      {"as it is", [](MediaStreamSettings&) {}, true},
      {"the API's", [](MediaStreamSettings& one) { one.origin = MediaOrigin::api; }, true},
      {"RTP alone", [](MediaStreamSettings& one) { one.carries = Carries::rtp; }, true},
      {"RTSP's", [](MediaStreamSettings& one) { one.origin = MediaOrigin::rtsp; }},
      {"RTCP alone", [](MediaStreamSettings& one) { one.carries = Carries::rtcp; }},
      {"unprotects", [](MediaStreamSettings& one) { one.direction = srtp::Direction::unprotect; }},
      {"passes", [](MediaStreamSettings& one) { one.keyless = Keyless::passes; }},
      {"passes RTCP", [](MediaStreamSettings& one) { one.keyless = Keyless::passes_rtcp; }},
      {"drops RTCP", [](MediaStreamSettings& one) { one.keyless = Keyless::drops_rtcp; }},
      {"has ended", [](MediaStreamSettings& one) { one.keyless = Keyless::ended; }},
      {"has no hash", [](MediaStreamSettings& one) { one.master_hashes = {0}; }},
  };
  for (const auto& [what, change, is_looked_at] : cases) {
    const MediaStreamSettings first = protecting(7000);
    MediaStreamSettings second = protecting(7001);
    change(second);
    SharedKeys keys;
    EXPECT_EQ(keys.come(first), std::nullopt);
    EXPECT_EQ(keys.come(second), is_looked_at ? std::optional(first.key) : std::nullopt) << what;
    SharedKeys turned;
    EXPECT_EQ(turned.come(second), std::nullopt) << what;
    EXPECT_EQ(turned.empty(), !is_looked_at) << what;
    EXPECT_EQ(turned.come(first), is_looked_at ? std::optional(second.key) : std::nullopt) << what;
    MediaStreamSettings changed = first;
    change(changed);
    SharedKeys left;
    left.come(first);
    left.go(changed);
    EXPECT_EQ(left.empty(), is_looked_at) << what;
  }
}

// As one that has one key under two MKIs, or is there again.
TEST(SharedKeys, NoStreamSharesWithItself) {
  SharedKeys keys;
  const MediaStreamSettings twice = protecting(7000, {1, 1}), other = protecting(7001, {2, 1});
  EXPECT_EQ(keys.come(twice), std::nullopt);
  EXPECT_EQ(keys.come(twice), std::nullopt);
  EXPECT_EQ(keys.come(other), twice.key);
  EXPECT_EQ(keys.come(twice), other.key) << "not itself, which has the key, too";
}

TEST(SharedKeys, OfManyStreamsAreAFewLines) {
  std::string text = "[srtp]\nmax_keys = 256\n";
  for (unsigned port = 7000; port < 7040; ++port) text += section(port);
  const auto notes = notes_of(text);
  ASSERT_THAT(notes, SizeIs(17));
  EXPECT_EQ(notes.back(), "23 more SRTP streams protect with a master key of another");
  SrtpTrial trial(text);
  const auto warnings = streams_of(trial).take_warnings();
  ASSERT_THAT(warnings, SizeIs(18)) << "and the one on starts";
  EXPECT_THAT(warnings[16], HasSubstr("srtp_keys_shared count all"));
  EXPECT_EQ(trial.metric("srtp_keys_shared"), 39U);
}

TEST(SharedKeys, OfStreamsThatComeLaterAreReported) {
  SrtpTrial trial(section(7000));
  MediaStreams& streams = streams_of(trial);
  (void)streams.take_warnings();
  const auto added = streams.add_text(text_of(7001), "the request");
  ASSERT_TRUE(added);
  EXPECT_THAT(added->warnings,
              ElementsAre(HasSubstr("10.0.0.2:7001 (of the API) protects with a master key of 10.0.0.1:5004 -> "
                                    "10.0.0.2:7000 (a.toml:1): ")));
  EXPECT_EQ(streams.take_warnings(), added->warnings) << "who asked, and the log";
  ASSERT_TRUE(streams.replace_text(text_of(7001, "protect", other_key30), "the request"));
  ASSERT_TRUE(streams.add_text(text_of(7002, "protect", third_key30), "the request"));
  EXPECT_THAT(streams.take_warnings(), IsEmpty());
  const auto replaced = streams.replace_text(text_of(7002, "protect", other_key30), "the request");
  ASSERT_TRUE(replaced);
  EXPECT_THAT(replaced->warnings, ElementsAre(HasSubstr("10.0.0.2:7002 (of the API) protects with a master key")));
  EXPECT_EQ(streams.take_warnings(), replaced->warnings);
  ASSERT_TRUE(streams.remove_text(text_of(7001), "the request"));
  ASSERT_TRUE(streams.remove_text(text_of(7002), "the request"));
  ASSERT_TRUE(streams.add_text(text_of(7003, "protect", other_key30), "the request")) << "nobody has it any more";
  EXPECT_THAT(streams.take_warnings(), IsEmpty());
  EXPECT_EQ(trial.metric("srtp_keys_shared"), 2U);
}

// However many wait for the log.
TEST(SharedKeys, AreReportedToWhoAsksAndOnce) {
  SrtpTrial trial("[srtp]\nmax_keys = 256\n" + section(7000));
  MediaStreams& streams = streams_of(trial);
  for (unsigned port = 7001; port < 7040; ++port) {
    const auto added = streams.add_text(text_of(port), "the request");
    ASSERT_TRUE(added);
    EXPECT_THAT(added->warnings, ElementsAre(HasSubstr(":" + std::to_string(port) + " (of the API) protects")));
  }
  EXPECT_THAT(streams.add_text(text_of(7040, "protect", other_key30), "the request")->warnings, IsEmpty());
}

TEST(SharedKeys, AreThoseAfterAReloadAndNamedByTheNewFilesLines) {
  SrtpTrial trial(section(7000) + section(7001, "protect", other_key30));
  MediaStreams& streams = streams_of(trial);
  const auto reload = [&](const std::string& text) { trial.element().reload(*srtp_of(text))->commit(); };
  (void)streams.take_warnings();
  // 7001 takes the key that 7000 leaves with the same reload.
  reload(section(7001) + section(7000, "protect", third_key30));
  EXPECT_THAT(streams.take_warnings(), IsEmpty());
  reload("\n\n" + section(7001) + section(7000, "protect", third_key30) + section(7002));
  EXPECT_THAT(streams.take_warnings(), ElementsAre(names(7002, 17, 7001, 3)));
  reload(section(7002));
  reload(section(7002) + section(7003));
  EXPECT_THAT(streams.take_warnings(), ElementsAre(names(7003, 8, 7002, 1)));
}

}  // namespace
}  // namespace sluice::function
