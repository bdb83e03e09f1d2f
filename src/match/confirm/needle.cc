#include "match/confirm/needle.h"

#include <algorithm>
#include <cstring>

#include "match/automaton/pattern.h"

namespace sluice::match {
namespace {

char folded(char byte) {
  return static_cast<char>(fold(static_cast<std::uint8_t>(byte)));
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
  return nocase_ ? folded(byte) : byte;
}

// How many of the text's first bytes are known behind one more. Less than all were known before.
std::size_t Needle::after(std::size_t known, char byte) const {
  while (known != 0 && text_[known] != byte) known = border_[known - 1];
  return text_[known] == byte ? known + 1 : 0;
}

std::size_t Needle::find_folded(std::string_view bytes, std::size_t from, std::size_t to) const {
  const char first = text_.front();
  std::size_t known = 0;
  for (std::size_t i = from; i < to; ++i) {
    if (known == 0) {
      while (i < to && folded(bytes[i]) != first) ++i;
      if (i == to) break;
    }
    known = after(known, folded(bytes[i]));
    if (known == text_.size()) return i + 1 - known;
  }
  return npos;
}

std::size_t Needle::find_exactly(std::string_view bytes, std::size_t from, std::size_t to) const {
  const void* const at = memmem(bytes.data() + from, to - from, text_.data(), text_.size());
  return at == nullptr ? npos : static_cast<std::size_t>(static_cast<const char*>(at) - bytes.data());
}

bool Needle::begins_at_end_of(std::string_view bytes) const {
  std::size_t known = 0;
  for (const char byte : bytes.substr(bytes.size() - std::min(bytes.size(), text_.size() - 1))) {
    known = after(known, as_compared(byte));
  }
  return known != 0;
}

}  // namespace sluice::match
