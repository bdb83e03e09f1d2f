// What check says of [srtp] that is no mistake.
#include "control/srtp_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::control {
namespace {

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
  EXPECT_THAT(shared_key_notes(config), ElementsAre(HasSubstr("7001 (a.toml:19) protects with a master key of ")));
  EXPECT_TRUE(config.ok()) << config.mistakes();
  Config one = Config::from_text(chain + ports + stream(7000), "a.toml");
  EXPECT_THAT(shared_key_notes(one), IsEmpty());
  Config none = Config::from_text(ports, "a.toml");
  EXPECT_THAT(shared_key_notes(none), IsEmpty());
}

}  // namespace
}  // namespace sluice::control
