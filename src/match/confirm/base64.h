// Base64 (RFC 4648 section 4) as found in traffic: decodes up to the first byte that is none of it; line breaks and
// blanks are skipped, as RFC 2045 has them.
//
// Thread-safety: any thread. Cost: some ns a byte; allocates where `out` has no capacity for
// base64_capacity(coded.size()).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::match {

// Bytes that so many may be decoded to, at most.
constexpr std::size_t base64_capacity(std::size_t coded) {
  return coded / 4 * 3 + 3;
}

// In the place of what `out` has.
void base64_decode(std::string_view coded, std::string& out);

}  // namespace sluice::match
