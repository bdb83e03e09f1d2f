// What secret bytes need: to be wiped, compared without saying where they differ, and stretched into keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace sluice::crypto {

// Zeros that the compiler does not leave out.
void wipe(void* bytes, std::size_t length);

// In constant time for a given length.
bool equal(const std::uint8_t* a, const std::uint8_t* b, std::size_t length);

// N bytes that are wiped at their end, on the stack or in an object. Never printed: there is no operator<<.
template <std::size_t N>
struct Secret {
  Secret() = default;
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { wipe(bytes, N); }
  std::span<std::uint8_t> first(std::size_t length) { return std::span(bytes).first(length); }
  std::span<const std::uint8_t> first(std::size_t length) const { return std::span(bytes).first(length); }

  std::uint8_t bytes[N] = {};
};

// `out`: the keystream of AES in counter mode (SP 800-38A) from the counter block `iv` on; `key`: 16 or 32 bytes. False
// if libcrypto refuses. By OpenSSL: it allocates and takes about 1 us, so it is for key derivation, not for packets.
[[nodiscard]] bool aes_ctr_keystream(std::span<const std::uint8_t> key, std::span<const std::uint8_t, 16> iv,
                                     std::span<std::uint8_t> out);

}  // namespace sluice::crypto
