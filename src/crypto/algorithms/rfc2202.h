// Keys and texts of RFC 2202's known answers of HMAC-SHA1, in hexadecimal digits. For .cc files of this room only.
#pragma once

#include <string_view>

namespace sluice::crypto {

inline constexpr std::string_view no_nonce = "00000000000000000000";
inline constexpr std::string_view cd_50 =
    "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd";
inline constexpr std::string_view dd_50 =
    "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";
inline constexpr std::string_view dd_46 =
    "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";
inline constexpr std::string_view hi_there = "4869205468657265";
inline constexpr std::string_view jefe_text = "7768617420646f2079612077616e7420666f72206e6f7468696e673f";
inline constexpr std::string_view hmac_key_4 = "0102030405060708090a0b0c0d0e0f10111213141516171819";
inline constexpr std::string_view key_0b = "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b";
inline constexpr std::string_view key_aa = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

}  // namespace sluice::crypto
