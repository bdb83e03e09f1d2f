// Any bytes as a session description and each line as the value of a=crypto: what is read is written back byte for
// byte, what is made SRTP can be read again and has a key for every medium, and a crypto attribute says the same when
// it is read again.
#include <cstdint>
#include <string>
#include <string_view>

#include "media/mikey/message.h"
#include "media/rtsp/offers.h"
#include "media/sdp/crypto_attribute.h"
#include "media/sdp/description.h"
#include "require.h"

using namespace sluice;
using namespace sluice::media;

namespace {

Expected<void> no_chance(std::span<std::uint8_t> bytes) {
  std::fill(bytes.begin(), bytes.end(), std::uint8_t{7});
  return {};
}

void check_crypto(std::string_view value) {
  const auto attribute = sdp::parse_crypto(value);
  if (!attribute) {
    return;
  }
  REQUIRE(!attribute->keys.empty() && attribute->keys.size() <= sdp::max_crypto_keys);
  for (const sdp::CryptoKey& key : attribute->keys) {
    REQUIRE(key.key.size() == srtp::facts(attribute->suite).key_and_salt_length());
  }
  const SecretText text = sdp::crypto_text(*attribute);
  const auto again = sdp::parse_crypto(text.view());
  REQUIRE(again.has_value());
  REQUIRE(sdp::crypto_text(*again).view() == text.view());
}

void check_secured(std::string_view text, const sdp::Description& clear) {
  rtsp::Origin origin;
  origin.base = "rtsp://server/base/";
  const auto offered = rtsp::secure_description(text, origin, no_chance, {});
  if (!offered) {
    return;
  }
  const auto secured = sdp::Description::parse(offered->description.view(), {1U << 20, 10'000, 10'000, 100});
  REQUIRE(secured.has_value());
  REQUIRE(secured->media.size() == clear.media.size() && offered->media.size() == clear.media.size());
  for (std::size_t i = 0; i < secured->media.size(); ++i) {
    const sdp::Medium& medium = secured->media[i];
    REQUIRE(medium.profile() == sdp::Profile::savp || medium.profile() == sdp::Profile::savpf);
    REQUIRE(medium.attributes("crypto").size() == 1 && medium.attributes("key-mgmt").size() == 1);
    REQUIRE(medium.kind() == clear.media[i].kind() && medium.formats() == clear.media[i].formats());
    const auto mikey = mikey::parse(*base64_decode(medium.attribute("key-mgmt")->substr(6)));
    REQUIRE(mikey.has_value() && mikey->key == offered->media[i]->key);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_crypto(text);
  const auto description = sdp::Description::parse(text);
  if (!description) {
    return 0;
  }
  REQUIRE(description->text().view() == text);
  for (const sdp::Medium& medium : description->media) {
    (void)description->rate(medium, false);
    (void)medium.connection();
    REQUIRE(!medium.kind().empty() && !medium.formats().empty());
    for (const std::string_view value : medium.attributes("crypto")) {
      check_crypto(value);
    }
  }
  check_secured(text, *description);
  return 0;
}
