// What is wrong in [srtp] and [[srtp.stream]], and where.
#include <algorithm>
#include <chrono>

#include "function/srtp/srtp_trial_test.h"
#include "function/srtp/stream_settings.h"

namespace sluice::function {
namespace {

TEST(SrtpSettings, MistakesNameTheLineAndShowNoKey) {
  const std::string crypto = "crypto = \"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "\"";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = stream_text("protect");
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::pair<std::string, std::string> cases[] = {
      {with("action = \"protect\"", ""), "action: is missing"},
      {with("\"protect\"", "\"both\""), "action: allowed is \"protect\", \"unprotect\""},
      {with("10.0.0.1", "10.0.0"), "source: "},
      {with("10.0.0.1", "2001:db8::1"), "another address family"},
      {with("10.0.0.1", "::ffff:10.2.0.80"),
       "source: is an IPv4 address in IPv6's form, which no packet has: write 10.2.0.80"},
      {with("10.0.0.2", "::ffff:10.2.0.80"), "destination: is an IPv4 address in IPv6's form"},
      {with("10.0.0.1", "0.0.0.0"), "source: is no host's"},
      {with("10.0.0.2", "0.0.0.0"), "destination: is no host's"},
      {with("10.0.0.1", "::"), "source: is no host's"},
      {with("10.0.0.1", "127.0.0.1"), "source: never leaves its host"},
      {with("10.0.0.2", "::1"), "destination: never leaves its host"},
      {with("10.0.0.1", "239.1.2.3"), "source: is of many hosts"},
      {with("10.0.0.1", "ff15::1"), "source: is of many hosts"},
      {with("source_port = 5004", ""), "source_port: is missing"},
      {with("source_port = 5004", "source_port = 70000"), "source_port: "},
      {with(crypto, ""), "crypto: is missing"},
      {with(crypto, "crypto = \"\""), "crypto: give "},
      {with("source = \"10.0.0.1\"", "source = \"\""), "source: is not an IPv4 or IPv6 address"},
      {with("inline:", ""), "crypto: "},
      {with("1 AES_CM_128_HMAC_SHA1_80 ", ""), "crypto: give "},
      {with("1 AES_CM_128_HMAC_SHA1_80 inline:", ""), "crypto: give "},
      {with("HMAC_SHA1_80 ", "HMAC_SHA1_90 "), "crypto: its suite is none that is supported: give "},
      {with("crypto = ", "cripto = "), "cripto: unknown key"},
      {stream_text("protect", "ingres = 5"), "ingres: unknown key; did you mean \"ingress\"?"},
      {stream_text("protect", "rtcp_source_prt = 5"),
       "rtcp_source_prt: unknown key; did you mean \"rtcp_source_port\"?"},
      {with(crypto, "crypto = [\"" + key30 + "\"]"), "crypto: allowed is a text"},
      {with(key30, key30.substr(4)), "crypto: a=crypto: the key and salt of AES_CM_128_HMAC_SHA1_80 are 30 bytes"},
      {stream_text("protect", "roc = 3"), "ssrc and roc go together"},
      {stream_text("protect", "rtcp_source_port = 3"), "rtcp_destination_port: is missing"},
      {stream_text("protect", "rate = 0"), "rate: allowed is "},
      {stream_text("protect", "rate = 1000\nburst = 3027"), "burst: allowed is a whole number from 3028"},
      {stream_text("protect", "burst = 5000"), "burst: there is no rate"},
      {stream_text("protect", "packet_bytes = 500"), "packet_bytes: there is no rate"},
      {stream_text("protect", "measured = true"), "measured: there is no rate"},
      {stream_text("protect", "rate = 1000\nmeasured = 1"), "measured: allowed is true or false"},
      {stream_text("protect", "rate = 1000\nmeasured = true\nmeasure_time = 5"), "measure_time: "},
      {stream_text("protect", "rate = 1000\nmeasured = true\nrate_margin = 1001"), "rate_margin: allowed is "},
      {stream_text("protect", "rate = 1000\nmeasure_time = \"5s\""),
       "measure_time: is for a stream that is measured: set measured = true beside its rate"},
      {stream_text("protect", "rate = 1000\nrate_margin = 5"), "rate_margin: is for a stream that is measured"},
      {stream_text("protect", "rate = 1000\npacket_bytes = 63"), "packet_bytes: allowed is a whole number from 64"},
      {stream_text("protect") + stream_text("unprotect"), "10.0.0.1:5004 -> 10.0.0.2:6000 is in the table already"},
      {"[srtp]\nmax_keys = 2\n" + stream_text("protect") +
           stream_text("protect", "", key30, "AES_CM_128_HMAC_SHA1_80", true),
       "max_keys: the streams take 4 keys"},
      {"[srtp]\nmax_keys = 4\n" + with(key30, key30 + " KDR=10"), "max_keys: the streams take 8 keys"},
      {"[srtp]\nstream = [{crypto = \"" + key30 + "\"}, 5]\n", "stream: allowed is a list of sections"},
  };
  for (const auto& [text, message] : cases) {
    std::vector<std::string> mistakes;
    srtp_of(text, &mistakes);
    std::string all;
    for (const std::string& line : mistakes) all += line + "\n";
    EXPECT_NE(all.find(message), std::string::npos) << text << all;
    EXPECT_NE(all.find("a.toml:"), std::string::npos) << all;
    EXPECT_EQ(all.find(key30.substr(0, 8)), std::string::npos) << all;
    EXPECT_EQ(all.find(key30.substr(10, 8)), std::string::npos) << all;
  }
}

TEST(SrtpSettings, ACryptoLineIsTakenAsItIsCopiedOrRefusedByItsReason) {
  const std::string suite = "AES_CM_128_HMAC_SHA1_80", inline_key = "inline:" + key30 + "|2^31|1:4",
                    value = "1 " + suite + " " + inline_key;
  const struct {
    std::string crypto;
    const char* refusal;  // empty: it is taken
  } cases[] = {
      {value, ""},
      {"a=crypto:" + value, ""},
      {"a=crypto:" + value + "\\r", ""},
      {"  a=crypto:" + value + " \\t\\r\\n", ""},
      {"crypto:" + value, ""},
      {"a=crypto:1\\t" + suite + "  " + inline_key + " WSH=256", ""},
      {"a=crypto:0 " + suite + " " + inline_key + " KDR=0", ""},
      {"a=crypto:" + value + ";inline:" + other_key30 + "|2^20|2:4 -LATER=3", ""},
      {"a=crypto:" + value + "\\r\\na=crypto:2 " + suite + " " + inline_key, "crypto: has several lines: "},
      {"a=key-mgmt:mikey AQAFgAAAAAAAAAAA", "crypto: is MIKEY, which is read from RTSP alone: give "},
      {"mikey " + key30, "crypto: is MIKEY, "},
      {suite + " " + inline_key, "crypto: begins with the suite: its tag, a number, belongs in front"},
      {"a=crypto:" + suite + " " + inline_key, "crypto: begins with the suite"},
      {"1234567890 " + suite + " " + inline_key, "crypto: its tag has more than nine digits"},
      {"a=crypto:1 F8_128_HMAC_SHA1_80 " + inline_key, "crypto: its suite is none that is supported: give "},
      {"1 " + inline_key, "crypto: its suite is none that is supported: give "},
      {"1", "crypto: give "},
      {"a=crypto:", "crypto: give "},
      {inline_key, "crypto: give "},
      {"1 " + suite, "crypto: a=crypto: no key"},
      {"1 " + suite + " inline: " + key30, "crypto: a=crypto: the key and salt of "},
      {"a=crypto:" + value + " UNENCRYPTED_SRTCP", "crypto: a=crypto: UNENCRYPTED_SRTCP is not supported"},
      {"a=crypto:" + value + " " + inline_key, "crypto: a=crypto: session parameter of 56 characters is unknown"},
  };
  for (const auto& [crypto, refusal] : cases) {
    std::string text = stream_text("protect");
    const std::size_t at = text.find("1 AES_CM"), end = text.find('"', at);
    std::vector<std::string> mistakes;
    srtp_of(text.replace(at, end - at, crypto), &mistakes);
    if (*refusal == '\0') {
      EXPECT_EQ(mistakes, std::vector<std::string>()) << crypto;
      continue;
    }
    ASSERT_EQ(mistakes.size(), 1U) << crypto;
    EXPECT_NE(mistakes[0].find(refusal), std::string::npos) << crypto << "\n" << mistakes[0];
    EXPECT_EQ(mistakes[0].find(key30.substr(0, 8)), std::string::npos) << mistakes[0];
  }
}

TEST(SrtpSettings, OfTheApiAreTheKeysOfASectionOrTheSection) {
  const std::string section = stream_text("protect"), keys = section.substr(section.find('\n') + 1);
  for (const std::string& text : {section, keys, "# a comment\n" + section}) {
    const auto streams = read_stream_text(text, "the request", 1514);
    ASSERT_TRUE(streams) << text << streams.error().message;
    ASSERT_EQ(streams->size(), 1U);
    EXPECT_EQ(streams->front().name, "10.0.0.1:5004 -> 10.0.0.2:6000");
    EXPECT_EQ(streams->front().place, "");
    const auto ends = read_stream_ends(text, "the request");
    ASSERT_TRUE(ends) << ends.error().message;
    EXPECT_EQ(ends->front().key, streams->front().key);
  }
  const std::string all = keys +
                          "max_ssrcs = 2\nothers = \"pass\"\nssrc = 1\nroc = 2\nrate = 80000\nburst = 9000\n"
                          "packet_bytes = 900\nmeasured = true\nmeasure_time = \"5s\"\nrate_margin = 30\n"
                          "deadline = \"5ms\"\nrtcp_source_port = 5005\nrtcp_destination_port = 6001\n";
  ASSERT_TRUE(read_stream_text(all, "the request", 1514)) << "of what adds a stream";
  const auto ends = read_stream_ends(all + "ingress = \"lan\"\n", "the request");
  ASSERT_TRUE(ends) << "all may say which one it is: " << ends.error().message;
  EXPECT_EQ(ends->size(), 2U);
  const std::pair<std::string, std::string> cases[] = {
      {section + stream_text("unprotect"), "the request:1: srtp: give the keys of one stream"},
      {"[srtp]\nmax_keys = 9\n", "the request:1: srtp: give the keys of one stream"},
      {"[srtp]\nmax_keys = 9\n" + section, "max_keys: unknown key"},
      {"rate = 5\n" + section, "rate: unknown key"},
      {"[[srtp.stream]]\naction = \"protect\"\n", "crypto: is missing"},
      {"", "action: is missing"},
  };
  for (const auto& [text, message] : cases) {
    const auto streams = read_stream_text(text, "the request", 1514);
    ASSERT_FALSE(streams) << text;
    EXPECT_NE(streams.error().message.find(message), std::string::npos) << streams.error().message;
    EXPECT_EQ(streams.error().message.find(key30.substr(0, 8)), std::string::npos);
  }
}

TEST(SrtpSettings, MediaMayGoToMany) {
  std::string text = stream_text("protect");
  text.replace(text.find("10.0.0.2"), 8, "239.1.2.3");
  std::vector<std::string> mistakes;
  srtp_of(text, &mistakes);
  EXPECT_EQ(mistakes, std::vector<std::string>());
}

Settings srtp_section(const std::string& text, Diagnostics& diagnostics) {
  return Settings::from_text(text, "a.toml", diagnostics)->section("srtp");
}

std::string many_streams(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    std::string one = stream_text("protect");
    one.replace(one.find("10.0.0.1"), 8, "10.1." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1));
    text += one;
  }
  return text;
}

TEST(SrtpSettings, OneOfManyStreamsIsFoundAgain) {
  std::string text = many_streams(3000);
  std::string again = stream_text("unprotect");
  again.replace(again.find("10.0.0.1"), 8, "10.1.0.7");
  Diagnostics diagnostics;
  Settings section = srtp_section(text + again, diagnostics);
  (void)read_streams(section, 1514, engine::PortTable());
  ASSERT_EQ(diagnostics.lines.size(), 1U) << diagnostics.lines.front();
  EXPECT_NE(diagnostics.lines[0].find("10.1.0.7:5004 -> 10.0.0.2:6000 is in the table already"), std::string::npos);
}

// A file may have 100,000 of them: the last costs what the first does, and not a look at all before it.
TEST(SrtpSettings, ReadingEightTimesAsManyStreamsTakesLittleMoreThanEightTimesAsLong) {
  const auto time_of = [](unsigned count) {
    auto least = std::chrono::steady_clock::duration::max();
    Diagnostics diagnostics;
    Settings section = srtp_section(many_streams(count), diagnostics);
    for (int tried = 0; tried < 3; ++tried) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(read_streams(section, 1514, engine::PortTable()).size(), count);
      least = std::min(least, std::chrono::steady_clock::now() - begin);
    }
    return std::chrono::duration<double>(least).count();
  };
  const double few = time_of(4000), many = time_of(32'000);
  EXPECT_LT(many / few, 20) << few << " s and " << many << " s";
}

}  // namespace
}  // namespace sluice::function
