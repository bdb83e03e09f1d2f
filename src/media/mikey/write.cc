#include <algorithm>

#include "media/mikey/message.h"
#include "media/mikey/payload.h"

namespace sluice::media::mikey {

namespace {

void put(SecretBytes& out, std::uint64_t value, unsigned size) {
  while (size-- > 0) {
    out.push_back(static_cast<std::uint8_t>(value >> (8 * size)));
  }
}

void put_parameter(SecretBytes& out, Parameter type, std::uint8_t value) {
  out.insert(out.end(), {type, 1, value});
}

void put_policy(SecretBytes& out, const Message& message) {
  const srtp::SuiteFacts& suite = srtp::facts(message.suite);
  SecretBytes parameters;
  put_parameter(parameters, encryption, suite.gcm() ? aes_gcm : aes_cm);
  put_parameter(parameters, encryption_key, suite.key_length);
  put_parameter(parameters, authentication, suite.gcm() ? 0 : hmac_sha1);
  put_parameter(parameters, authentication_key, suite.gcm() ? 0 : suite.rtp_tag_length == 4 ? 4 : 20);
  put_parameter(parameters, salt_key, suite.salt_length);
  if (message.derivation_rate != 0) {
    put_parameter(parameters, derivation, static_cast<std::uint8_t>(message.derivation_rate));
  }
  put_parameter(parameters, srtp_encrypted, 1);
  put_parameter(parameters, srtcp_encrypted, 1);
  put_parameter(parameters, srtp_authenticated, 1);
  put_parameter(parameters, suite.gcm() ? aead_tag_length : tag_length, suite.rtp_tag_length);
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

SecretText key_mgmt_attribute(std::span<const std::uint8_t> message) {
  SecretText text("mikey ");
  text.append(base64_encode(message).view());
  return text;
}

std::uint64_t ntp_of(std::uint64_t unix_seconds) {
  return (unix_seconds + 2'208'988'800U) << 32;
}

}  // namespace sluice::media::mikey
