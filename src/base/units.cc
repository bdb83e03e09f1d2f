#include "base/units.h"

#include <array>
#include <charconv>
#include <cmath>

namespace sluice {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

// Largest first, so that printing finds the largest that fits.
constexpr std::array duration_units{Unit{"s", 1'000'000'000}, Unit{"ms", 1'000'000}, Unit{"us", 1'000}, Unit{"ns", 1}};
constexpr std::array byte_units{Unit{"T", 1LL << 40}, Unit{"G", 1LL << 30}, Unit{"M", 1LL << 20}, Unit{"K", 1LL << 10}};
constexpr double longest_ns = 100.0 * 86400 * 1e9;

bool starts_with_digit(std::string_view text) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9';
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  double value = 0;
  if (!starts_with_digit(text)) return std::nullopt;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (problem != std::errc{}) return std::nullopt;
  const std::string_view suffix(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  for (const Unit& unit : duration_units) {
    if (suffix != unit.name) continue;
    const double ns = value * static_cast<double>(unit.factor);
    if (!(ns <= longest_ns)) return std::nullopt;
    return std::chrono::nanoseconds(std::llround(ns));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::int64_t value = 0;
  if (!starts_with_digit(text)) return std::nullopt;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{}) return std::nullopt;
  const std::string_view suffix(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (suffix.empty()) return static_cast<std::uint64_t>(value);
  for (const Unit& unit : byte_units) {
    if (suffix != unit.name) continue;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(value, unit.factor, &bytes)) return std::nullopt;
    return static_cast<std::uint64_t>(bytes);
  }
  return std::nullopt;
}

std::string duration_text(std::chrono::nanoseconds duration) {
  const std::int64_t ns = duration.count();
  for (const Unit& unit : duration_units) {
    if (std::llabs(ns) < unit.factor) continue;
    std::array<char, 40> buffer{};
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                      static_cast<double>(ns) / static_cast<double>(unit.factor), std::chars_format::fixed);
    return std::string(buffer.data(), end.ptr).append(unit.name);
  }
  return "0ns";
}

std::string bytes_text(std::uint64_t bytes) {
  for (const Unit& unit : byte_units) {
    const auto factor = static_cast<std::uint64_t>(unit.factor);
    if (bytes >= factor && bytes % factor == 0) return std::to_string(bytes / factor).append(unit.name);
  }
  return std::to_string(bytes);
}

std::string counted_text(std::uint64_t count, std::string_view word) {
  return std::to_string(count) + " " + std::string(word) + (count == 1 ? "" : "s");
}

}  // namespace sluice
