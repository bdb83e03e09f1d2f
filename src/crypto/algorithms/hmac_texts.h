// Keys and texts of the known answers of HMAC in RFC 2202 (SHA-1), 4231 and 4868 (SHA-2), in hexadecimal digits. For
// .cc files of this room only.
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
inline constexpr std::string_view key_0c = "0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c";
inline constexpr std::string_view truncation_text = "546573742057697468205472756e636174696f6e";
// RFC 4868's, of which each hash takes as many bytes as its digest has.
inline constexpr std::string_view jefe_64 =
    "4a6566654a6566654a6566654a6566654a6566654a6566654a6566654a656665"
    "4a6566654a6566654a6566654a6566654a6566654a6566654a6566654a656665";
inline constexpr std::string_view counting_64 =
    "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
    "2122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f40";
inline constexpr std::string_view counting_48 =  // of SHA-384, as it is there
    "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
    "0a0b0c0d0e0f10111213141516171819";

}  // namespace sluice::crypto
