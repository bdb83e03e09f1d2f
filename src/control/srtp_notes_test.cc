// What check says of [srtp] that is no mistake.
#include "control/srtp_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice::control {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string ports =
    "[[port]]\nname = \"a\"\ndevice = \"net_null0\"\ntwin = \"sl-a\"\n"
    "[[port]]\nname = \"b\"\ndevice = \"net_null1\"\ntwin = \"sl-b\"\n";
const std::string chain = "[engine]\nchain = [\"srtp\", \"route\"]\n";

std::string stream(unsigned port, const std::string& more = "") {
  return "[[srtp.stream]]\naction = \"protect\"\nsource = \"10.0.0.1\"\nsource_port = 5004\ndestination = "
         "\"10.0.0.2\"\n"
         "destination_port = " +
         std::to_string(port) +
         "\ncrypto = \"1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz\"\n" + more;
}

TEST(SrtpNotes, of_keys_that_streams_share) {
  Config config = Config::from_text(
      chain + ports + stream(7000, "rate = 9_000\npacket_bytes = 1514\ningress = \"a\"\n") + stream(7001), "a.toml");
  EXPECT_THAT(shared_key_notes(config), ElementsAre(HasSubstr("7001 (a.toml:21) protects with a master key of ")));
  EXPECT_TRUE(config.ok()) << config.mistakes();
  Config one = Config::from_text(chain + ports + stream(7000), "a.toml");
  EXPECT_THAT(shared_key_notes(one), IsEmpty());
  Config none = Config::from_text(ports, "a.toml");
  EXPECT_THAT(shared_key_notes(none), IsEmpty());
}

TEST(SrtpNotes, of_keys_that_everybody_may_read) {
  namespace fs = std::filesystem;
  const fs::path file = fs::path(testing::TempDir()) / ("keys-" + std::to_string(getpid()) + ".toml");
  std::ofstream(file) << chain << ports << stream(7000);
  fs::permissions(file, fs::perms(0644));
  Config open = Config::from_file(file);
  EXPECT_EQ(readable_keys_note(open),
            file.string() + ": every user of this machine can read its keys: chmod o= " + file.string());
  fs::permissions(file, fs::perms(0640));
  EXPECT_EQ(readable_keys_note(open), "");
  std::ofstream(file) << chain << ports;
  fs::permissions(file, fs::perms(0644));
  Config none = Config::from_file(file);
  EXPECT_EQ(readable_keys_note(none), "");
  fs::remove(file);
}

TEST(SrtpNotes, of_a_host_that_gives_the_proxy_too_little) {
  Config config = Config::from_text(chain + ports +
                                        "[srtp.rtsp]\nlisten = [\"10.1.0.1\"]\nmedia_ports = \"40000-40999\"\n"
                                        "audio_deadline = \"5ms\"\n[[srtp.rtsp.server]]\naddress = \"10.2.0.1\"\n",
                                    "a.toml");
  EXPECT_THAT(rtsp_notes(config, {}), IsEmpty());
  EXPECT_THAT(rtsp_notes(config, {.files = 1024, .first_local_port = 32768, .last_local_port = 60999}),
              ElementsAre(HasSubstr("max_connections = 4096 takes 8448 open files"),
                          HasSubstr("of media_ports the host's own programs may be given 40000-40999")));
  EXPECT_TRUE(config.ok()) << config.mistakes();
  Config none = Config::from_text(chain + ports + stream(7000), "a.toml");
  EXPECT_THAT(rtsp_notes(none, {.files = 1, .first_local_port = 1, .last_local_port = 65535}), IsEmpty());
}

TEST(SrtpNotes, of_what_clients_of_rtsp_will_not_like) {
  function::RtspOptions options;
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

// By check: with the suite of the file, and the profile that is to admit.
TEST(SrtpNotes, of_a_file_are_of_its_profile_too) {
  const std::string text = chain + ports + "[srtp.rtsp]\nservers = [\"10.2.0.0/24\"]\n";
  Config config = Config::from_text(text + "suite = \"AEAD_AES_128_GCM\"\n", "a.toml");
  EXPECT_THAT(rtsp_notes(config, {}), ElementsAre(HasSubstr("suite = \"AEAD_AES_128_GCM\"")));
  config.use_profile({});
  EXPECT_THAT(rtsp_notes(config, {}), ElementsAre(HasSubstr("no default_rate"), HasSubstr("suite = ")));
  Config all = Config::from_text(text + "[profile]\nfile = \"p.toml\"\nstreams = \"all\"\n", "a.toml", false);
  all.use_profile({});
  EXPECT_THAT(rtsp_notes(all, {}), IsEmpty());
}

}  // namespace
}  // namespace sluice::control
