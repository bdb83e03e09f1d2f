// Any bytes as a MIKEY message and as a KeyMgmt header: the parser stays inside them, and what it takes is written and
// read again as the same.
#include <array>
#include <cstdint>
#include <string_view>

#include "media/mikey/message.h"
#include "require.h"

using namespace sluice::media;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto header = mikey::parse_key_mgmt_header({reinterpret_cast<const char*>(data), size});
  if (header && *header) {
    (void)mikey::parse((*header)->data);
  }
  const auto message = mikey::parse({data, size});
  if (!message) {
    return 0;
  }
  REQUIRE(message->key.size() == sluice::srtp::facts(message->suite).key_and_salt_length());
  REQUIRE(message->streams.size() <= mikey::max_streams && message->derivation_rate <= 24);
  const auto again = mikey::parse(mikey::write(*message, std::array<std::uint8_t, 16>{}));
  REQUIRE(again.has_value());
  REQUIRE(again->suite == message->suite && again->key == message->key && again->streams == message->streams);
  REQUIRE(again->mki == message->mki && again->csb_id == message->csb_id);
  REQUIRE(again->derivation_rate == message->derivation_rate);
  return 0;
}
