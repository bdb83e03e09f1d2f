// Characters as a server with an 8-bit code page takes them: what a rule looks for in a path (uri.h).
//
// Sources: Microsoft's best-fit mapping of code page 1252 (Unicode's MAPPINGS/VENDORS/MICSFT/WindowsBestFit), as far as
// libhtp 0.5 has it, which is Suricata's default.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::flow::http {

// One byte for a Unicode character; below U+0100 the same, and '?' where there is none.
char best_fit(std::uint32_t code);

// UTF-8 to such bytes, in place; the new size, which is no larger. Overlong forms count as what they stand for. For
// each byte sequence that is no UTF-8 there is a '?'; one that ends too early at the end is left out.
std::size_t fit_utf8(char* text, std::size_t size);

}  // namespace sluice::flow::http
