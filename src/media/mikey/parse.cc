#include <string>

#include "media/mikey/message.h"
#include "media/mikey/policy.h"
#include "media/text.h"

namespace sluice::media::mikey {

namespace {

constexpr std::size_t max_payloads = 32;

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
  if (message.key.size() != srtp::facts(*suite).key_and_salt_length()) {
    return wrong("its key is not as long as that of " + std::string(srtp::facts(*suite).name));
  }
  return message;
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

}  // namespace sluice::media::mikey
