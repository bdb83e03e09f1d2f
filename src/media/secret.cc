#include "media/secret.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace sluice::media {

namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// -1: not of the alphabet.
int base64_value(char c) {
  const std::size_t at = alphabet.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

void SecretText::consume(std::size_t count) {
  count = std::min(count, size());
  if (count == 0) {
    return;
  }
  const std::size_t left = size() - count;
  std::memmove(bytes_.data(), bytes_.data() + count, left);
  crypto::wipe(bytes_.data() + left, count);
  bytes_.resize(left);
}

MasterKey::MasterKey(std::span<const std::uint8_t> bytes)
    : size_(static_cast<std::uint8_t>(std::min(bytes.size(), capacity))) {
  std::copy_n(bytes.begin(), size_, bytes_.bytes);
}

bool MasterKey::operator==(const MasterKey& other) const {
  return crypto::equal(bytes_.bytes, other.bytes_.bytes, capacity) && size_ == other.size_;
}

Expected<void> system_random(std::span<std::uint8_t> bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + at, bytes.size() - at, 0);
    if (got > 0) {
      at += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      return make_error(std::string("the system gives no random bytes for keys: getrandom: ") + std::strerror(errno));
    }
  }
  return {};
}

SecretText base64_encode(std::span<const std::uint8_t> bytes) {
  SecretText text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - at);
    const std::uint32_t group = bytes[at] << 16 | (left > 1 ? bytes[at + 1] << 8 : 0) | (left > 2 ? bytes[at + 2] : 0);
    for (std::size_t i = 0; i < 4; ++i) {
      text.push_back(i <= left ? alphabet[group >> (18 - 6 * i) & 63] : '=');
    }
  }
  return text;
}

Expected<SecretBytes> base64_decode(std::string_view text) {
  const std::size_t length = text.size();
  while (!text.empty() && text.back() == '=' && length - text.size() < 2) {
    text.remove_suffix(1);
  }
  if (text.size() % 4 == 1 || (text.size() != length && length % 4 != 0)) {
    return make_error("is no base64: its length is wrong");
  }
  SecretBytes bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const int value = base64_value(c);
    if (value < 0) {
      return make_error("is no base64: it has a character that does not belong there");
    }
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<std::uint8_t>(bits >> count));
      bits &= (1U << count) - 1;
    }
  }
  if (bits != 0) {
    return make_error("is no base64: bits are left over at its end");
  }
  return bytes;
}

}  // namespace sluice::media
