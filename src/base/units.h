// Durations, byte sizes and counts as text: "250us", "512M", "2 lanes". Control path only.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// A number without a sign, which may have a fraction, and a unit of ns, us, ms or s: "250us", "1.5ms". Empty for any
// other text and for more than 100 days.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
// A whole number of bytes, or of K, M, G or T (powers of 1024): "512M". Empty for any other text and for more than
// 2^63 - 1.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// The shortest exact form: "250us", "1.5ms", "2s".
std::string duration_text(std::chrono::nanoseconds duration);
std::string bytes_text(std::uint64_t bytes);
// "1 lane", "2 lanes", for a word whose plural ends in s.
std::string counted_text(std::uint64_t count, std::string_view word);

}  // namespace sluice
