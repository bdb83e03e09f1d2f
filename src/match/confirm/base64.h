// Base64 (RFC 4648 section 4) as found in traffic: decodes up to the first byte that is none of it; line breaks and
// blanks are skipped, as RFC 2045 has them.
#pragma once

#include <string>
#include <string_view>

namespace sluice::match {

std::string base64_decode(std::string_view coded);

}  // namespace sluice::match
