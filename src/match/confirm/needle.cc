#include "match/confirm/needle.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "match/automaton/pattern.h"

namespace sluice::match {
namespace {

char folded(char byte) {
  return static_cast<char>(fold(static_cast<std::uint8_t>(byte)));
}

// A byte as it is, or one that has been folded, in either case.
template <bool Nocase>
class Letter {
 public:
  explicit Letter(char byte)
      : lower_(_mm256_set1_epi8(byte)),
        upper_(_mm256_set1_epi8(byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 'a' + 'A') : byte)) {}
  __m256i places_in(const char* bytes) const {
    const __m256i these = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
    const __m256i same = _mm256_cmpeq_epi8(these, lower_);
    return Nocase ? _mm256_or_si256(same, _mm256_cmpeq_epi8(these, upper_)) : same;
  }

 private:
  __m256i lower_, upper_;
};

template <bool Nocase>
char compared(char byte) {
  return Nocase ? folded(byte) : byte;
}

}  // namespace

Needle::Needle(std::string_view text, bool nocase) : text_(text), nocase_(nocase), border_(text.size()) {
  for (char& byte : text_) byte = as_compared(byte);
  std::size_t known = 0;
  for (std::size_t i = 1; i < text_.size(); ++i) {
    known = after(known, text_[i]);
    border_[i] = static_cast<std::uint32_t>(known);
  }
}

char Needle::as_compared(char byte) const {
  return nocase_ ? compared<true>(byte) : compared<false>(byte);
}

// How many of the text's first bytes are known behind one more. Less than all were known before.
std::size_t Needle::after(std::size_t known, char byte) const {
  while (known != 0 && text_[known] != byte) known = border_[known - 1];
  return text_[known] == byte ? known + 1 : 0;
}

// The next place that has the text's first two bytes and its last, or `to`. Of the last places that the text fits in,
// one with the first byte is enough.
template <bool Nocase>
std::size_t Needle::next_begin(std::string_view bytes, std::size_t from, std::size_t to) const {
  const std::size_t last = text_.size() - 1, second = std::min<std::size_t>(1, last);
  if (to - from >= last + sizeof(__m256i)) {
    using Byte = Letter<Nocase>;
    const Byte letters[] = {Byte(text_[0]), Byte(text_[second]), Byte(text_[last])};
    for (; to - from >= last + sizeof(__m256i); from += sizeof(__m256i)) {
      const char* const at = bytes.data() + from;
      const __m256i begins = _mm256_and_si256(letters[0].places_in(at), letters[1].places_in(at + second));
      const __m256i all = _mm256_and_si256(begins, letters[2].places_in(at + last));
      const auto places = static_cast<std::uint32_t>(_mm256_movemask_epi8(all));
      if (places != 0) return from + static_cast<std::size_t>(std::countr_zero(places));
    }
  }
  while (from < to && compared<Nocase>(bytes[from]) != text_.front()) ++from;
  return from;
}

template <bool Nocase>
std::size_t Needle::search(std::string_view bytes, std::size_t from, std::size_t to) const {
  std::size_t known = 0;
  for (std::size_t i = from; i < to; ++i) {
    if (known == 0) {
      i = next_begin<Nocase>(bytes, i, to);
      if (i == to) break;
    }
    known = after(known, compared<Nocase>(bytes[i]));
    if (known == text_.size()) return i + 1 - known;
  }
  return npos;
}

template std::size_t Needle::search<true>(std::string_view bytes, std::size_t from, std::size_t to) const;
template std::size_t Needle::search<false>(std::string_view bytes, std::size_t from, std::size_t to) const;

bool Needle::begins_at_end_of(std::string_view bytes) const {
  std::size_t known = 0;
  for (const char byte : bytes.substr(bytes.size() - std::min(bytes.size(), text_.size() - 1))) {
    known = after(known, as_compared(byte));
  }
  return known != 0;
}

}  // namespace sluice::match
