// Memory for keys and for texts that hold keys, of any length: it is overwritten before it is given back
// (crypto/secret.h has what is of fixed length, and the wiping).
//
// Neither type prints itself. Copies are as secret as what they were made from and wipe themselves too; nothing here
// can reach a std::string that somebody makes of the bytes. Thread-safety: as the standard containers'. Cost: one pass
// over the memory when it is released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "crypto/secret.h"
#include "media/srtp/suite.h"

namespace sluice::media {

template <typename T>
struct WipingAllocator : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = WipingAllocator<U>;
  };
  void deallocate(T* memory, std::size_t count) {
    crypto::wipe(memory, count * sizeof(T));
    std::allocator<T>::deallocate(memory, count);
  }
};

// A text or bytes with keys in it. (A vector, for std::string keeps short texts in itself, where no allocator wipes.)
class SecretText {
 public:
  SecretText() = default;
  explicit SecretText(std::string_view text) { append(text); }
  SecretText& append(std::string_view text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  void push_back(char c) { bytes_.push_back(c); }
  // Forgets the first `count` bytes, at most all, and wipes them.
  void consume(std::size_t count);
  void clear() { consume(size()); }
  void reserve(std::size_t size) { bytes_.reserve(size); }
  std::string_view view() const { return {bytes_.data(), bytes_.size()}; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

 private:
  std::vector<char, WipingAllocator<char>> bytes_;
};

// A std::string that others have made of a text with keys, wiped at the end of its scope, however that comes.
class WipedString {
 public:
  explicit WipedString(std::string text) : text_(std::move(text)) {}
  WipedString(const WipedString&) = delete;
  WipedString& operator=(const WipedString&) = delete;
  ~WipedString() { crypto::wipe(text_.data(), text_.size()); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A master key and its master salt, one behind the other as SDES and MIKEY carry them: at most 32 + 14 bytes.
class MasterKey {
 public:
  static constexpr std::size_t capacity = srtp::max_key_length + srtp::max_salt_length;
  MasterKey() = default;
  // `bytes` beyond the capacity are an error of the caller and are cut off.
  explicit MasterKey(std::span<const std::uint8_t> bytes);

  std::span<const std::uint8_t> bytes() const { return bytes_.first(size_); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Equal in length and bytes; the time does not depend on the bytes.
  bool operator==(const MasterKey& other) const;

 private:
  crypto::Secret<capacity> bytes_;
  std::uint8_t size_ = 0;
};

// Fills the span with random bytes, or says why it cannot.
using RandomSource = std::function<Expected<void>(std::span<std::uint8_t>)>;

// The system's generator (getrandom); waits for its seed at boot.
Expected<void> system_random(std::span<std::uint8_t> bytes);

// RFC 4648 section 4, with padding.
SecretText base64_encode(std::span<const std::uint8_t> bytes);
// Nothing for any other character, a length that is no multiple of four, or bits behind the last byte that are not 0.
// Padding may be missing (RFC 4568 section 6.1 allows it).
using SecretBytes = std::vector<std::uint8_t, WipingAllocator<std::uint8_t>>;
Expected<SecretBytes> base64_decode(std::string_view text);

}  // namespace sluice::media
