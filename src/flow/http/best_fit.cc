#include "flow/http/best_fit.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace sluice::flow::http {
namespace {

constexpr char nothing_fits = '?';

// What characters in a row fit to.
struct Run {
  std::uint16_t first;
  std::string_view fits;
};

constexpr auto runs = std::to_array<Run>({
    {0x0100, "AaAaAaCcCcCcCcDd?dEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIi?\?JjKk?LlLlLl"},
    {0x0140, "?LlNnNnNn?\?\?OoOoOo?\?RrRrRrSsSsSs?\?TtTtTtUuUuUuUuUuUuWwYy?Z?Zz"},
    {0x0180, "b?\?\?\?\?\?\?\?\?\?\?\?\?\?\?\?\?\?\?\?\?\?I?\?l?\?\?\?OOo?\?\?\?\?\?\?\?\?t?\?TUu?\?\?\?\?z"},
    {0x01c0, "|?\?!?\?\?\?\?\?\?\?\?AaIiOoUuUuUuUuUu?Aa?\?\?\?GgGgKkOoOo?\?j"},
    {0x0261, "g"},
    {0x02b9, "'\"?'"},
    {0x02c4, "^?\?\?'?\?`?_"},
    {0x0300, "`?^~"},
    {0x030e, "\""},
    {0x0331, "__"},
    {0x037e, ";"},
    {0x0393, "G"},
    {0x0398, "T"},
    {0x03a3, "S?\?F?\?O"},
    {0x03b1, "a?\?de"},
    {0x03c0, "p?\?st?f"},
    {0x04bb, "h"},
    {0x0589, ":"},
    {0x066a, "%"},
    {0x2000, "       "},
    {0x2010, "--"},
    {0x2017, "="},
    {0x2032, "'?\?`"},
    {0x2044, "/"},
    {0x2074, "45678"},
    {0x207f, "n0123456789"},
    {0x20a7, "P"},
    {0x2102, "C"},
    {0x2107, "E?\?gHHHh?IILl?N?\?PPQRRR"},
    {0x2124, "Z?\?\?Z?K?BCeeEF?Mo"},
    {0x2212, "-?\?/\\*?\?v?\?\?8"},
    {0x2223, "|"},
    {0x2229, "n"},
    {0x2236, ":"},
    {0x223c, "~"},
    {0x2261, "=?\?=="},
    {0x2303, "^"},
    {0x2320, "()"},
    {0x2329, "<>"},
    {0x2500, "-"},
    {0x250c, "+?\?\?+?\?\?+?\?\?+?\?\?+"},
    {0x252c, "-"},
    {0x2534, "-"},
    {0x253c, "+"},
    {0x2550, "-?++++++++++++"},
    {0x2564, "------+++"},
    {0x2584, "_"},
    {0x2758, "|"},
    {0x3000, " "},
    {0x3008, "<>"},
    {0x301a, "[]"},
});

// Of the byte that a sequence begins with: how many follow, and what it has of the character.
struct Lead {
  unsigned more = 0;
  std::uint32_t bits = 0;
  bool is_valid = true;
};

Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {0, byte};
  if (byte < 0xc0 || byte > 0xf4) return {0, 0, false};
  if (byte < 0xe0) return {1, byte & 0x1fU};
  if (byte < 0xf0) return {2, byte & 0x0fU};
  return {3, byte & 0x07U};
}

// No surrogates, and nothing beyond U+10FFFF.
bool may_follow(std::uint8_t lead, bool first, std::uint8_t byte) {
  if ((byte & 0xc0U) != 0x80) return false;
  if (first && lead == 0xed) return byte < 0xa0;
  return !first || lead != 0xf4 || byte < 0x90;
}

}  // namespace

char best_fit(std::uint32_t code) {
  constexpr std::uint32_t full_width = 0xff01, ascii = 0x21, last = 0x7e;
  if (code <= 0xff) return static_cast<char>(code);
  if (code >= full_width && code - full_width <= last - ascii) return static_cast<char>(code - full_width + ascii);
  const auto* const behind = std::upper_bound(runs.begin(), runs.end(), code,
                                              [](std::uint32_t wanted, const Run& run) { return wanted < run.first; });
  if (behind == runs.begin()) return nothing_fits;
  const Run& run = *std::prev(behind);
  return code - run.first < run.fits.size() ? run.fits[code - run.first] : nothing_fits;
}

std::size_t fit_utf8(char* text, std::size_t size) {
  const auto byte_at = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  std::size_t to = 0;
  for (std::size_t at = 0; at < size;) {
    const std::uint8_t begin = byte_at(at++);
    const Lead lead = lead_of(begin);
    std::uint32_t code = lead.bits;
    unsigned more = lead.more;
    for (; more > 0 && at < size && may_follow(begin, more == lead.more, byte_at(at)); --more) {
      code = code << 6 | (byte_at(at++) & 0x3fU);
    }
    if (more > 0 && at == size) break;
    text[to++] = lead.is_valid && more == 0 ? best_fit(code) : nothing_fits;
  }
  return to;
}

}  // namespace sluice::flow::http
