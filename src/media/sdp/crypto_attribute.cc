#include "media/sdp/crypto_attribute.h"

#include <algorithm>
#include <string>

#include "base/quote.h"
#include "media/text.h"

namespace sluice::media::sdp {

namespace {

constexpr std::uint64_t max_lifetime = std::uint64_t{1} << 48;
constexpr std::uint8_t max_mki_length = 128;

// The next word; `text` becomes what follows it.
std::string_view take_word(std::string_view& text) {
  text = trim(text);
  const std::size_t at = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view word = text.substr(0, at);
  text.remove_prefix(at);
  return word;
}

// Messages show nothing of the keys' part: what stands in the wrong place there may be a key.
tl::unexpected<Error> wrong(const std::string& what) {
  return make_error("a=crypto: " + what);
}

Expected<std::uint64_t> lifetime_of(std::string_view text) {
  if (text.starts_with("2^")) {
    const auto exponent = number<unsigned>(text.substr(2), 48);
    if (!exponent) {
      return wrong("a lifetime is 2^0 to 2^48 packets");
    }
    return std::uint64_t{1} << *exponent;
  }
  const auto packets = number<std::uint64_t>(text, max_lifetime);
  if (!packets || *packets == 0) {
    return wrong("a lifetime is 1 to 2^48 packets");
  }
  return *packets;
}

Expected<void> take_mki(std::string_view text, CryptoKey& key) {
  const auto value = number<std::uint64_t>(take_until(text, ':'));
  const auto length = number<std::uint8_t>(text, max_mki_length);
  if (!length || *length == 0) {
    return wrong("the length of an MKI is 1 to 128 bytes");
  }
  if (!value || (*length < 8 && *value >> (8 * *length) != 0)) {
    return wrong("an MKI is a number that fits in its length, " + std::to_string(*length) + " bytes, and in eight");
  }
  key.mki = *value;
  key.mki_length = *length;
  return {};
}

// inline:KEY||SALT["|" lifetime]["|" MKI ":" length]
Expected<CryptoKey> key_of(std::string_view text, const srtp::SuiteFacts& suite) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || !same_name(text.substr(0, colon), "inline")) {
    return wrong("the key method is not supported: inline is");
  }
  text.remove_prefix(colon + 1);
  const auto bytes = base64_decode(take_until(text, '|'));
  if (!bytes) {
    return wrong("the key " + bytes.error().message);
  }
  if (bytes->size() != suite.key_and_salt_length()) {
    return wrong("the key and salt of " + std::string(suite.name) + " are " +
                 std::to_string(suite.key_and_salt_length()) + " bytes together, not " + std::to_string(bytes->size()));
  }
  CryptoKey key;
  key.key = MasterKey(*bytes);
  bool lifetime_may_come = true;
  while (!text.empty()) {
    const std::string_view part = take_until(text, '|');
    if (part.find(':') != std::string_view::npos && !key.mki) {
      if (const auto taken = take_mki(part, key); !taken) {
        return tl::unexpected(taken.error());
      }
    } else if (lifetime_may_come && !key.mki) {
      const auto lifetime = lifetime_of(part);
      if (!lifetime) {
        return tl::unexpected(lifetime.error());
      }
      key.lifetime = *lifetime;
    } else {
      return wrong("behind the key come at most a lifetime and an MKI, in this order");
    }
    lifetime_may_come = false;
  }
  return key;
}

Expected<void> take_keys(std::string_view text, CryptoAttribute& attribute) {
  while (!text.empty()) {
    if (attribute.keys.size() == max_crypto_keys) {
      return wrong("more than " + std::to_string(max_crypto_keys) + " keys");
    }
    auto key = key_of(take_until(text, ';'), srtp::facts(attribute.suite));
    if (!key) {
      return tl::unexpected(key.error());
    }
    for (const CryptoKey& other : attribute.keys) {
      if (!key->mki || !other.mki || key->mki_length != other.mki_length || key->mki == other.mki) {
        return wrong("several keys need an MKI each, of one length and with different values");
      }
    }
    attribute.keys.push_back(*key);
  }
  return attribute.keys.empty() ? Expected<void>(wrong("no key")) : Expected<void>();
}

// What stands where a session parameter does, and may be a second key behind a blank: that is in no message.
std::string shown(std::string_view text) {
  constexpr std::size_t longest = 24;  // the shortest key has 40 characters
  return text.size() <= longest ? in_quotes(text) : "of " + std::to_string(text.size()) + " characters";
}

Expected<void> take_parameter(std::string_view word, CryptoAttribute& attribute) {
  if (word.starts_with('-')) {
    return {};
  }
  std::string_view value = word;
  const std::string_view name = take_until(value, '=');
  if (name == "KDR") {
    const auto rate = number<unsigned>(value, 24);
    if (!rate) {
      return wrong("KDR is 0 to 24, not " + shown(value));
    }
    attribute.derivation_rate = *rate;
    return {};
  }
  if (name == "WSH") {
    const auto window = number<std::uint32_t>(value);
    if (!window || *window < 64 || *window > most_window) {
      return wrong("WSH is 64 to 16384, not " + shown(value));
    }
    attribute.window = *window;
    return {};
  }
  for (const std::string_view known :
       {"UNENCRYPTED_SRTP", "UNENCRYPTED_SRTCP", "UNAUTHENTICATED_SRTP", "FEC_ORDER", "FEC_KEY"}) {
    if (name == known) {
      return wrong(std::string(name) + " is not supported");
    }
  }
  return wrong("session parameter " + shown(name) + " is unknown");
}

std::string_view without_ends(std::string_view text) {
  constexpr std::string_view ends = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(ends), text.size()));
  text.remove_suffix(text.size() - (text.find_last_not_of(ends) + 1));  // npos + 1 is 0
  return text;
}

}  // namespace

std::string_view crypto_value(std::string_view line) {
  constexpr std::string_view attribute = "a=", name = "crypto:";
  line = without_ends(line);
  if (same_name(line.substr(0, attribute.size()), attribute)) line.remove_prefix(attribute.size());
  if (same_name(line.substr(0, name.size()), name)) line.remove_prefix(name.size());
  return without_ends(line);
}

Expected<CryptoAttribute> parse_crypto(std::string_view value) {
  CryptoAttribute attribute;
  const std::string_view tag = take_word(value);
  const auto tag_number = number<std::uint32_t>(tag, 999'999'999);
  if (!tag_number || tag.size() > 9) {
    return wrong("tag " + in_quotes(tag) + " is not a number of at most nine digits");
  }
  attribute.tag = *tag_number;
  const std::string_view suite_text = take_word(value);
  const auto suite = srtp::suite_named(suite_text);
  if (!suite) {
    return wrong("suite " + in_quotes(suite_text) + " is not supported");
  }
  attribute.suite = *suite;
  if (const auto taken = take_keys(take_word(value), attribute); !taken) {
    return tl::unexpected(taken.error());
  }
  for (std::string_view word = take_word(value); !word.empty(); word = take_word(value)) {
    if (const auto taken = take_parameter(word, attribute); !taken) {
      return tl::unexpected(taken.error());
    }
  }
  return attribute;
}

SecretText crypto_text(const CryptoAttribute& attribute) {
  SecretText text;
  text.reserve(64 + attribute.keys.size() * 160);
  text.append(std::to_string(attribute.tag)).append(" ").append(srtp::facts(attribute.suite).name).append(" ");
  bool first = true;
  for (const CryptoKey& key : attribute.keys) {
    text.append(first ? "inline:" : ";inline:").append(base64_encode(key.key.bytes()).view());
    first = false;
    if (key.lifetime) {
      text.append("|").append(std::to_string(*key.lifetime));
    }
    if (key.mki) {
      text.append("|").append(std::to_string(*key.mki)).append(":").append(std::to_string(key.mki_length));
    }
  }
  if (attribute.derivation_rate != 0) {
    text.append(" KDR=").append(std::to_string(attribute.derivation_rate));
  }
  if (attribute.window) {
    text.append(" WSH=").append(std::to_string(*attribute.window));
  }
  return text;
}

}  // namespace sluice::media::sdp
