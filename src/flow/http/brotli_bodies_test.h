// Bodies in Brotli: what the brotli tool makes of short texts, and streams that a test puts together itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::flow::http::test {

inline std::string from_hex(std::string_view hex) {
  std::string bytes;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  }
  return bytes;
}

// brotli -q 11.
inline constexpr std::string_view fox = "The quick brown fox jumps over the lazy dog, and again: the quick brown fox.";
// Its window is declared in 1 bit, in 7, and in 4: 2^20, 2^24, which are more than is given.
inline constexpr std::string_view fox_windows[] = {
    "620900ac80b82dd5d1cfe92fd9500e471fc4070d2a6cc08143b60efb8c9b0e3b60eb17cbe49637438c617b5dca67a33ed3ff236a08be82846d"
    "9c"
    "04a4",
    "a15802002b206e4b75f473fa4b3694c3d107f141830a1b70e090adc33ee3a6c30ed8fac532b9e5cd1063d85e97f2d9a8cff4ff881a82af2061"
    "1b"
    "270129",
    "815802002b206e4b75f473fa4b3694c3d107f141830a1b70e090adc33ee3a6c30ed8fac532b9e5cd1063d85e97f2d9a8cff4ff881a82af2061"
    "1b"
    "270129",
    "134b006005c46da98e7e4e7fc9867238fa203e685061030e1cb275d867dc74d8015bbf5826b7bc19620cdbeb523e1bf599fe1f5143f015246c"
    "e3"
    "242005",
    "174b006005c46da98e7e4e7fc9867238fa203e685061030e1cb275d867dc74d8015bbf5826b7bc19620cdbeb523e1bf599fe1f5143f015246c"
    "e3"
    "242005",
    "1f4b006005c46da98e7e4e7fc9867238fa203e685061030e1cb275d867dc74d8015bbf5826b7bc19620cdbeb523e1bf599fe1f5143f015246c"
    "e3"
    "242005"};
inline std::string brotli_fox() {
  return from_hex(fox_windows[3]);
}
// 2,433 bytes: '<li><a href="/item/N">item 7*N</a></li>' and a line feed, 60 times.
inline constexpr std::string_view list_page_hex =
    "1b8009408c532c29932354ba0e0ec9036aaf93202f3e50c58940b76f51cacd147ead312978414a18d0565b8e4e1630a59be415fcd4b5ef7a74"
    "6f"
    "bbe0fc86bfc3a23d81cf5fb257327b933dffb97d26bf1fbdd1c436283614e7483c7071c91fe86004385b3c2738fc5e3ad8c23d28168a1889c1"
    "b8"
    "3822368c38ce16cf899ffcf36c1d6a811e140b058d84302e8e088711e16cf19c98e1f7abc32dae07c542f18e2ea8312e8e088411e46cf19cd0"
    "f0"
    "7beb488bf4a05828c6482cc6c5117161c473b6f8dc05f7f00f10";
inline std::string list_page() {
  std::string page;
  for (int i = 0; i < 60; ++i) {
    page += "<li><a href=\"/item/" + std::to_string(i) + "\">item " + std::to_string(i * 7) + "</a></li>\n";
  }
  return page;
}
// 2^24 times 'a', of a window of 2^24.
inline std::string brotli_bomb() {
  return from_hex("cfffff7f0024c2e2b14072efff07");
}

// RFC 7932 section 9, bit by bit; a window of 2^16.
class BrotliWriter {
 public:
  BrotliWriter() { bits(0, 1); }
  void bits(std::uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i, ++size_) {
      if (size_ % 8 == 0) bytes_ += '\0';
      bytes_.back() = static_cast<char>(bytes_.back() | (value >> i & 1) << size_ % 8);
    }
  }
  // At most 65,536 bytes, as they are.
  void stored(std::string_view text) {
    bits(0, 3);
    bits(text.size() - 1, 16);
    bits(1, 1);
    size_ = bytes_.size() * 8;
    bytes_ += text;
    size_ += text.size() * 8;
  }
  // An 'a', behind a context map of 16,384 entries.
  void large_map() {
    bits(0, 20);                                          // one byte, compressed
    bits(1 | 7U << 1 | 127U << 4, 11);                    // 256 types of literals
    symbol(0, 9), symbol(25, 5), bits(0, 24);             // codes of their types and lengths
    bits(0, 8);                                           // one of commands, one of distances
    for (int i = 0; i < 256; ++i) bits(2, 2);             // context modes
    bits(1, 4), bits(31, 5), symbol(13, 5), bits(0, 26);  // two trees; 2^13 zeros, twice
    bits(1, 2);                                           // inverse move-to-front, and one tree of distances
    symbol('a', 8), symbol('a', 8), symbol(8, 10), symbol(0, 6);
  }
  std::string end() {
    bits(3, 2);
    return bytes_;
  }

 private:
  // A prefix code of this one.
  void symbol(unsigned value, unsigned width) {
    bits(1, 4);
    bits(value, width);
  }
  std::string bytes_;
  std::size_t size_ = 0;  // bits
};

inline std::string brotli_stored(std::string_view text, std::size_t piece = 65536) {
  BrotliWriter writer;
  for (std::size_t at = 0; at < text.size(); at += piece) writer.stored(text.substr(at, piece));
  return writer.end();
}

}  // namespace sluice::flow::http::test
