#include "media/mikey/message.h"

#include <algorithm>
#include <string>

#include "media/text.h"

namespace sluice::media::mikey {

namespace {

// Payload types (RFC 3830 section 6.1).
enum Payload : std::uint8_t {
  last = 0,
  kemac = 1,
  timestamp = 5,
  certificate = 7,
  identity = 6,
  security_policy = 10,
  rand_bytes = 11,
  key_data = 20,
  general_extension = 21,
};

// Parameters of an SRTP policy (section 6.10.1; 20: RFC 7714 section 14.2).
enum Parameter : std::uint8_t {
  encryption = 0,
  encryption_key = 1,
  authentication = 2,
  authentication_key = 3,
  salt_key = 4,
  prf = 5,
  derivation = 6,
  srtp_encrypted = 7,
  srtcp_encrypted = 8,
  fec_order = 9,
  srtp_authenticated = 10,
  tag_length = 11,
  prefix_length = 12,
  aead_tag_length = 20,
};

constexpr std::uint8_t aes_cm = 1;
constexpr std::uint8_t aes_gcm = 6;
constexpr std::uint8_t hmac_sha1 = 1;
constexpr std::uint8_t tek = 2;
constexpr std::uint8_t tek_and_salt = 3;
constexpr std::size_t max_payloads = 32;

tl::unexpected<Error> wrong(std::string_view what) {
  return make_error("MIKEY: " + std::string(what));
}

// Reads forwards; beyond the end it gives zeros and remembers.
class Cursor {
 public:
  explicit Cursor(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint64_t take(unsigned size) {
    std::uint64_t value = 0;
    for (const std::uint8_t byte : bytes(size)) {
      value = value << 8 | byte;
    }
    return value;
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1)); }
  std::span<const std::uint8_t> bytes(std::size_t size) {
    if (size > bytes_.size()) {
      short_ = true;
      bytes_ = {};
      return {};
    }
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  bool cut() const { return short_; }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::uint8_t> bytes_;
  bool short_ = false;
};

void put(SecretBytes& out, std::uint64_t value, unsigned size) {
  while (size-- > 0) {
    out.push_back(static_cast<std::uint8_t>(value >> (8 * size)));
  }
}

void put_parameter(SecretBytes& out, Parameter type, std::uint8_t value) {
  out.insert(out.end(), {type, 1, value});
}

void put_policy(SecretBytes& out, const Message& message) {
  const sdp::SuiteFacts& suite = sdp::facts(message.suite);
  SecretBytes parameters;
  put_parameter(parameters, encryption, suite.gcm ? aes_gcm : aes_cm);
  put_parameter(parameters, encryption_key, suite.key);
  put_parameter(parameters, authentication, suite.gcm ? 0 : hmac_sha1);
  put_parameter(parameters, authentication_key, suite.gcm ? 0 : suite.tag_rtp == 4 ? 4 : 20);
  put_parameter(parameters, salt_key, suite.salt);
  if (message.derivation_rate != 0) {
    put_parameter(parameters, derivation, static_cast<std::uint8_t>(message.derivation_rate));
  }
  put_parameter(parameters, srtp_encrypted, 1);
  put_parameter(parameters, srtcp_encrypted, 1);
  put_parameter(parameters, srtp_authenticated, 1);
  put_parameter(parameters, suite.gcm ? aead_tag_length : tag_length, suite.tag_rtp);
  out.insert(out.end(), {kemac, 0, 0});  // policy 0, for SRTP
  put(out, parameters.size(), 2);
  out.insert(out.end(), parameters.begin(), parameters.end());
}

void put_kemac(SecretBytes& out, const Message& message) {
  const auto key = message.key.bytes();
  const bool spi = !message.mki.empty();
  out.insert(out.end(), {last, 0});  // no encryption
  put(out, 4 + key.size() + (spi ? 1 + message.mki.size() : 0), 2);
  out.insert(out.end(), {last, static_cast<std::uint8_t>(tek << 4 | (spi ? 1 : 0))});
  put(out, key.size(), 2);
  out.insert(out.end(), key.begin(), key.end());
  if (spi) {
    out.push_back(static_cast<std::uint8_t>(message.mki.size()));
    out.insert(out.end(), message.mki.begin(), message.mki.end());
  }
  out.push_back(0);  // no MAC
}

// What an SRTP policy said, with RFC 3830's defaults.
struct Policy {
  std::uint8_t encryption = aes_cm;
  std::uint8_t key = 16;
  std::uint8_t authentication = hmac_sha1;
  std::uint8_t authentication_key = 20;
  std::optional<std::uint8_t> salt;
  std::uint8_t derivation = 0;
  std::optional<std::uint8_t> tag;
};

// Parameters that switch protection off, or ask for what is not there. nullptr: taken.
const char* set_parameter(Policy& policy, std::uint8_t type, std::uint8_t value) {
  switch (type) {
    case encryption:
      policy.encryption = value;
      return nullptr;
    case encryption_key:
      policy.key = value;
      return nullptr;
    case authentication:
      policy.authentication = value;
      return nullptr;
    case authentication_key:
      policy.authentication_key = value;
      return nullptr;
    case salt_key:
      policy.salt = value;
      return nullptr;
    case prf:
      return value == 0 ? nullptr : "a pseudo-random function other than AES-CM is not supported";
    case derivation:
      policy.derivation = value;
      return value <= 24 ? nullptr : "a key derivation rate above 2^24 is not supported";
    case srtp_encrypted:
      return value == 1 ? nullptr : "SRTP without encryption is not supported";
    case srtcp_encrypted:
      return value == 1 ? nullptr : "SRTCP without encryption is not supported";
    case fec_order:
      return value == 0 ? nullptr : "FEC behind SRTP is not supported";
    case srtp_authenticated:
      return value == 1 ? nullptr : "SRTP without authentication is not supported";
    case tag_length:
    case aead_tag_length:
      policy.tag = value;
      return nullptr;
    case prefix_length:
      return value == 0 ? nullptr : "an SRTP prefix is not supported";
    default:
      return "the SRTP policy has an unknown parameter";
  }
}

Expected<Policy> policy_of(Cursor cursor) {
  Policy policy;
  while (cursor.left() > 0) {
    const std::uint8_t type = cursor.byte();
    const auto value = cursor.bytes(cursor.byte());
    if (cursor.cut() || value.size() != 1) {
      return wrong("a parameter of the SRTP policy is not one byte");
    }
    if (const char* const problem = set_parameter(policy, type, value[0])) {
      return wrong(problem);
    }
  }
  return policy;
}

// The tag's length of an HMAC policy: where RFC 3830 has it, or where GStreamer does.
std::uint8_t tag_of(const Policy& policy) {
  if (policy.authentication_key == 4 || policy.authentication_key == 10) {
    return policy.authentication_key;
  }
  return policy.tag.value_or(10);
}

Expected<sdp::Suite> suite_of(const Policy& policy) {
  for (unsigned i = 0; i < sdp::suite_count; ++i) {
    const auto suite = static_cast<sdp::Suite>(i);
    const sdp::SuiteFacts& facts = sdp::facts(suite);
    const bool same_cipher = policy.encryption == (facts.gcm ? aes_gcm : aes_cm) && policy.key == facts.key &&
                             policy.salt.value_or(facts.salt) == facts.salt;
    const bool same_authentication = facts.gcm ? policy.authentication == 0 && policy.tag.value_or(16) == 16
                                               : policy.authentication == hmac_sha1 && tag_of(policy) == facts.tag_rtp;
    const bool known_key_length =
        facts.gcm || policy.authentication_key == 20 || tag_of(policy) == policy.authentication_key;
    if (same_cipher && same_authentication && known_key_length) {
      return suite;
    }
  }
  return wrong("the SRTP policy is none of the supported suites");
}

// The one TEK of an unencrypted KEMAC.
Expected<void> take_keys(Cursor cursor, Message& message) {
  std::uint8_t next = key_data;
  while (next != last) {
    if (next != key_data) {
      return wrong("KEMAC has something that is no key");
    }
    next = cursor.byte();
    const std::uint8_t kind = cursor.byte();
    const auto key = cursor.bytes(cursor.take(2));
    std::span<const std::uint8_t> salt;
    if (kind >> 4 == tek_and_salt) {
      salt = cursor.bytes(cursor.take(2));
    } else if (kind >> 4 != tek) {
      return wrong("a key of KEMAC is no TEK");
    }
    switch (kind & 15) {
      case 0:
        break;
      case 1: {
        const auto spi = cursor.bytes(cursor.byte());
        message.mki.assign(spi.begin(), spi.end());
        break;
      }
      default:
        return wrong("a key's validity as an interval is not supported");
    }
    if (cursor.cut()) {
      return wrong("a key of KEMAC is cut short");
    }
    if (!message.key.empty()) {
      return wrong("several keys are not supported");
    }
    SecretBytes whole(key.begin(), key.end());
    whole.insert(whole.end(), salt.begin(), salt.end());
    if (whole.empty() || whole.size() > MasterKey::capacity) {
      return wrong("a key's length is not that of a suite");
    }
    message.key = MasterKey(whole);
  }
  return cursor.left() == 0 ? Expected<void>() : Expected<void>(wrong("KEMAC has bytes behind its last key"));
}

Expected<void> take_header(Cursor& cursor, Message& message, std::uint8_t& next) {
  if (cursor.byte() != 1) {
    return wrong("only version 1 is supported");
  }
  if (cursor.byte() != 0) {
    return wrong("only the pre-shared key method's first message is supported");
  }
  next = cursor.byte();
  if ((cursor.byte() & 0x7f) != 0) {
    return wrong("only the pseudo-random function MIKEY-1 is supported");
  }
  message.csb_id = static_cast<std::uint32_t>(cursor.take(4));
  const std::uint8_t streams = cursor.byte();
  if (cursor.byte() != 0) {
    return wrong("only SRTP's map of crypto sessions is supported");
  }
  if (streams > max_streams) {
    return wrong("more crypto sessions than 32");
  }
  for (unsigned i = 0; i < streams; ++i) {
    cursor.byte();  // its policy: there is one
    Stream stream;
    stream.ssrc = static_cast<std::uint32_t>(cursor.take(4));
    stream.roc = static_cast<std::uint32_t>(cursor.take(4));
    message.streams.push_back(stream);
  }
  return {};
}

// What the payloads of a message said.
struct Seen {
  std::optional<Policy> policy;
  bool keys = false;
};

Expected<void> take_kemac(Cursor& cursor, Message& message, Seen& seen) {
  if (seen.keys) {
    return wrong("several KEMACs");
  }
  seen.keys = true;
  if (cursor.byte() != 0) {
    return wrong("KEMAC is encrypted: only NULL encryption is supported");
  }
  const auto keys = cursor.bytes(cursor.take(2));
  if (cursor.byte() != 0) {
    return wrong("KEMAC is authenticated: only the NULL MAC is supported");
  }
  return cursor.cut() ? Expected<void>(wrong("KEMAC is cut short")) : take_keys(Cursor(keys), message);
}

Expected<void> take_policy(Cursor& cursor, Seen& seen) {
  cursor.byte();  // its number
  const std::uint8_t protocol = cursor.byte();
  const auto parameters = cursor.bytes(cursor.take(2));
  if (protocol != 0 || seen.policy) {
    return wrong("only one policy, of SRTP, is supported");
  }
  auto policy = policy_of(Cursor(parameters));
  if (!policy) {
    return tl::unexpected(policy.error());
  }
  seen.policy = *policy;
  return {};
}

Expected<void> take_payload(std::uint8_t type, Cursor& cursor, Message& message, Seen& seen) {
  switch (type) {
    case kemac:
      return take_kemac(cursor, message, seen);
    case timestamp: {
      const std::uint8_t kind = cursor.byte();
      if (kind > 2) {
        return wrong("a time of an unknown kind");
      }
      message.ntp_time = cursor.take(kind == 2 ? 4 : 8);  // 2: a counter
      return {};
    }
    case rand_bytes:
      cursor.bytes(cursor.byte());
      return {};
    case security_policy:
      return take_policy(cursor, seen);
    case identity:
    case general_extension:
      cursor.byte();
      cursor.bytes(cursor.take(2));
      return {};
    default:
      return wrong("a payload of type " + std::to_string(type) + " is not supported");
  }
}

}  // namespace

SecretBytes write(const Message& message, std::span<const std::uint8_t, 16> random) {
  SecretBytes out;
  out.reserve(256 + message.streams.size() * 9);
  const std::size_t streams = std::min(message.streams.size(), max_streams);
  out.insert(out.end(), {1, 0, timestamp, 0});
  put(out, message.csb_id, 4);
  out.insert(out.end(), {static_cast<std::uint8_t>(streams), 0});
  for (std::size_t i = 0; i < streams; ++i) {
    out.push_back(0);  // policy 0
    put(out, message.streams[i].ssrc, 4);
    put(out, message.streams[i].roc, 4);
  }
  out.insert(out.end(), {rand_bytes, 0});
  put(out, message.ntp_time, 8);
  out.insert(out.end(), {security_policy, 16});
  out.insert(out.end(), random.begin(), random.end());
  put_policy(out, message);
  put_kemac(out, message);
  return out;
}

Expected<Message> parse(std::span<const std::uint8_t> bytes) {
  Message message;
  Cursor cursor(bytes);
  std::uint8_t type = last;
  if (auto header = take_header(cursor, message, type); !header) {
    return tl::unexpected(header.error());
  }
  Seen seen;
  for (std::size_t count = 0; type != last; ++count) {
    const std::uint8_t next = cursor.byte();
    if (count == max_payloads || cursor.cut()) {
      return wrong("it is cut short, or has more than 32 payloads");
    }
    if (auto taken = take_payload(type, cursor, message, seen); !taken) {
      return tl::unexpected(taken.error());
    }
    type = next;
  }
  if (cursor.cut() || cursor.left() > 0) {
    return wrong(cursor.cut() ? "it is cut short" : "it has bytes behind its end");
  }
  const Policy policy = seen.policy.value_or(Policy{});
  const auto suite = suite_of(policy);
  if (!suite) {
    return tl::unexpected(suite.error());
  }
  message.suite = *suite;
  message.derivation_rate = policy.derivation;
  if (message.key.size() != sdp::facts(*suite).key_and_salt()) {
    return wrong("its key is not as long as that of " + std::string(sdp::facts(*suite).name));
  }
  return message;
}

SecretText key_mgmt_attribute(std::span<const std::uint8_t> message) {
  SecretText text("mikey ");
  text.append(base64_encode(message).view());
  return text;
}

Expected<std::optional<KeyMgmt>> parse_key_mgmt_header(std::string_view value) {
  while (!value.empty()) {
    std::string_view entry = take_unquoted(value, ',');
    KeyMgmt found;
    std::string_view protocol, data;
    while (!entry.empty()) {
      std::string_view text = trim(take_unquoted(entry, ';'));
      const std::string_view name = trim(take_until(text, '='));
      text = without_quotes(trim(text));
      if (same_name(name, "prot")) {
        protocol = text;
      } else if (same_name(name, "uri")) {
        found.uri = text;
      } else if (same_name(name, "data")) {
        data = text;
      }
    }
    if (!same_name(protocol, "mikey")) {
      continue;
    }
    auto bytes = base64_decode(data);
    if (!bytes) {
      return make_error("KeyMgmt: data " + bytes.error().message);
    }
    found.data = std::move(*bytes);
    return found;
  }
  return std::nullopt;
}

std::uint64_t ntp_of(std::uint64_t unix_seconds) {
  return (unix_seconds + 2'208'988'800U) << 32;
}

}  // namespace sluice::media::mikey
