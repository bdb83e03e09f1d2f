// Any bytes as a session description and each line as the value of a=crypto. What is read is written so that it is read
// again byte for byte with nothing left out. What is made SRTP has a key for every medium that is left, and a crypto
// attribute says the same when it is read again.
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
  REQUIRE(secured->left_out.empty() && offered->media.size() == secured->media.size());
  std::size_t next = 0;  // of the clear media
  for (std::size_t i = 0; i < secured->media.size(); ++i) {
    const sdp::Medium& medium = secured->media[i];
    const auto is_offered = [](const sdp::Medium& one) {
      return (one.profile() == sdp::Profile::avp || one.profile() == sdp::Profile::avpf) &&
             one.ssrcs().size() <= mikey::max_streams;
    };
    while (next < clear.media.size() && !is_offered(clear.media[next])) ++next;
    REQUIRE(next < clear.media.size());
    const sdp::Medium& before = clear.media[next++];
    REQUIRE(medium.profile() == sdp::Profile::savp || medium.profile() == sdp::Profile::savpf);
    REQUIRE(medium.attributes("crypto").size() == 1 && medium.attributes("key-mgmt").size() == 1);
    REQUIRE(medium.kind() == before.kind() && medium.formats() == before.formats());
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
  const SecretText written = description->text();
  const auto again = sdp::Description::parse(written.view());
  REQUIRE(again || (description->media.empty() && !description->left_out.empty()));
  if (again) {
    REQUIRE(again->text().view() == written.view() && again->left_out.empty());
  }
  for (const sdp::Medium& medium : description->media) {
    (void)description->rate(medium, false);
    (void)medium.connection();
    REQUIRE(!medium.kind().empty() && !medium.protocol().empty());
    for (const std::string_view value : medium.attributes("crypto")) {
      check_crypto(value);
    }
  }
  check_secured(text, *description);
  return 0;
}
