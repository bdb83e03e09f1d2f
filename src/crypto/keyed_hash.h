// A number for secret bytes from which nobody learns them: to know some again without keeping them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

namespace sluice::crypto {

// The first 64 bits of HMAC-SHA-256 (RFC 2104) of the parts, each behind its length. Two that differ are taken for the
// same once in 2^64. 0: OpenSSL has refused, for want of memory. Any thread; by OpenSSL, in about a microsecond.
std::uint64_t keyed_hash(std::span<const std::uint8_t, 32> key,
                         std::initializer_list<std::span<const std::uint8_t>> parts);

}  // namespace sluice::crypto
