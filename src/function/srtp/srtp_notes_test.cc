// What check says of [srtp] that is no mistake.
#include "function/srtp/srtp_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::function {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A file's section, on ports "a" and "b".
class View {
 public:
  explicit View(const std::string& text, const std::string& file = "a.toml", bool admits = false)
      : root_(*Settings::from_text(text, file, diagnostics_)),
        view_{root_.section("srtp"), options_, ports_, file, admits} {}
  operator engine::SectionView&() { return view_; }  // NOLINT(google-explicit-constructor)
  std::string mistakes() const { return diagnostics_.lines.empty() ? "" : diagnostics_.lines.front(); }

 private:
  static engine::PortInfo port(const char* name) {
    engine::PortInfo info;
    info.name = name;
    info.mtu = 1500;
    info.has_twin = true;
    return info;
  }
  Diagnostics diagnostics_;
  Settings root_;
  const engine::Options options_;
  const engine::PortTable ports_{{port("a"), port("b")}};
  engine::SectionView view_;
};

std::string stream(unsigned port, const std::string& more = "") {
  return "[[srtp.stream]]\naction = \"protect\"\nsource = \"10.0.0.1\"\nsource_port = 5004\ndestination = "
         "\"10.0.0.2\"\n"
         "destination_port = " +
         std::to_string(port) +
         "\ncrypto = \"1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz\"\n" + more;
}

TEST(SrtpNotes, OfKeysThatStreamsShare) {
  View file(stream(7000, "rate = 9_000\npacket_bytes = 1514\ningress = \"a\"\n") + stream(7001));
  EXPECT_THAT(shared_key_notes(file), ElementsAre(HasSubstr("7001 (a.toml:11) protects with a master key of ")));
  EXPECT_EQ(file.mistakes(), "");
  View one(stream(7000));
  EXPECT_THAT(shared_key_notes(one), IsEmpty());
  View none("");
  EXPECT_THAT(shared_key_notes(none), IsEmpty());
}

TEST(SrtpNotes, OfAHostThatGivesTheProxyTooLittle) {
  View file(
      "[srtp.rtsp]\nlisten = [\"10.1.0.1\"]\nmedia_ports = \"40000-40999\"\n"
      "audio_deadline = \"5ms\"\n[[srtp.rtsp.server]]\naddress = \"10.2.0.1\"\n");
  EXPECT_THAT(rtsp_notes(file, {}), IsEmpty());
  EXPECT_THAT(rtsp_notes(file, {.files = 1024, .first_local_port = 32768, .last_local_port = 60999}),
              ElementsAre(HasSubstr("max_connections = 4096 takes 8448 open files"),
                          HasSubstr("of media_ports the host's own programs may be given 40000-40999")));
  EXPECT_EQ(file.mistakes(), "");
  View none(stream(7000));
  EXPECT_THAT(rtsp_notes(none, {.files = 1, .first_local_port = 1, .last_local_port = 65535}), IsEmpty());
}

TEST(SrtpNotes, OfWhatClientsOfRtspWillNotLike) {
  RtspOptions options;
  EXPECT_THAT(media_notes(options, false), IsEmpty());
  EXPECT_THAT(media_notes(options, true),
              ElementsAre(AllOf(HasSubstr("no default_rate"), HasSubstr("are refused with 453"))));
  options.default_rate = 1'000'000;
  EXPECT_THAT(media_notes(options, true), IsEmpty());
  options.default_rate = 0;
  options.max_rate = 2'000'000;
  EXPECT_THAT(media_notes(options, false),
              ElementsAre(AllOf(HasSubstr("max_rate without default_rate"), HasSubstr("are held to nothing"))));
  EXPECT_THAT(media_notes(options, true), ElementsAre(HasSubstr("are refused with 453")));
  options.default_rate = 1'000'000;
  EXPECT_THAT(media_notes(options, false), IsEmpty());
  options.max_rate = 0;
  options.measured = true;
  EXPECT_THAT(media_notes(options, true), IsEmpty());
  EXPECT_THAT(media_notes(options, false), ElementsAre(HasSubstr("none is measured")));
  options.max_rate = 2'000'000;
  EXPECT_THAT(media_notes(options, false), IsEmpty());
  for (const srtp::SuiteFacts& suite : srtp::suites) {
    options.suite = suite.suite;
    if (suite.name.starts_with("AES_CM_128_")) {
      EXPECT_THAT(media_notes(options, false), IsEmpty()) << suite.name;
    } else {
      EXPECT_THAT(media_notes(options, false),
                  ElementsAre(AllOf(HasSubstr(suite.name), HasSubstr("play ciphertext as noise"))));
    }
  }
}

// By check: with the suite of the file, and whether a profile admits.
TEST(SrtpNotes, OfAFileAreOfItsProfileToo) {
  const std::string text = "[srtp.rtsp]\nservers = [\"10.2.0.0/24\"]\n";
  const std::string gcm = text + "suite = \"AEAD_AES_128_GCM\"\n";
  View file(gcm), admits(gcm, "a.toml", true), all(text);
  EXPECT_THAT(rtsp_notes(file, {}), ElementsAre(HasSubstr("suite = \"AEAD_AES_128_GCM\"")));
  EXPECT_THAT(rtsp_notes(admits, {}), ElementsAre(HasSubstr("no default_rate"), HasSubstr("suite = ")));
  EXPECT_THAT(rtsp_notes(all, {}), IsEmpty());
}

}  // namespace
}  // namespace sluice::function
