#include "match/automaton/key_set.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sluice::match {
namespace {

// How often ordinary traffic, text and binary, has this (folded) byte: bits of surprise, roughly.
int surprise(std::uint8_t byte) {
  if (byte == 0) return 2;
  if (byte >= 'a' && byte <= 'z') return std::string_view("etaoinshrdlc").find(static_cast<char>(byte)) < 12 ? 4 : 6;
  if (byte >= '0' && byte <= '9') return 5;
  if (byte == ' ' || byte == '\r' || byte == '\n' || byte == '/' || byte == '.' || byte == '-' || byte == '=' ||
      byte == ':')
    return 4;
  if (byte == 0xff || byte == 1) return 5;
  return byte < 0x80 ? 7 : 8;
}

std::string folded(std::string_view bytes) {
  std::string out(bytes);
  for (char& c : out) c = static_cast<char>(fold(static_cast<std::uint8_t>(c)));
  return out;
}

// Pieces that every HTTP message, HTML page or zeroed structure has.
bool commonplace(std::string_view gram) {
  static constexpr std::string_view common =
      "http/1.1\r\n http://www. https:// .com .html .php .asp .cgi .exe host: user-agent: mozilla/5.0 content-type: "
      "content-length: content-disposition: form-data application/x-www-form-urlencoded text/html accept: cookie: "
      "referer: connection: keep-alive post / get / \r\n\r\n name=\" value=\" <html> <script script> function( "
      "windows nt 10.0; id= .net microsoft";
  if (common.find(gram) != std::string_view::npos) return true;
  return std::all_of(gram.begin(), gram.end(), [&](char c) { return c == gram[0]; });
}

class Chooser {
 public:
  // The piece of `bytes` that is to stand for it: as long as it may be, ending where the last four bytes surprise most
  // and few other keys end alike. Patterns that fold alike have one.
  const std::string& choose(const std::string& bytes) {
    const auto [known, is_new] = chosen_.try_emplace(bytes);
    if (is_new) known->second = piece(bytes);
    return known->second;
  }

 private:
  std::string piece(const std::string& bytes) {
    if (bytes.size() <= Key::gram) return bytes;
    std::size_t best = Key::gram;
    int best_score = -1;
    for (std::size_t end = Key::gram; end <= bytes.size(); ++end) {
      const std::string_view gram = std::string_view(bytes).substr(end - Key::gram, Key::gram);
      const std::size_t begin = end < Key::max_length ? 0 : end - Key::max_length;
      int score = static_cast<int>(end - begin);
      for (const char c : gram) score += 4 * surprise(static_cast<std::uint8_t>(c));
      if (commonplace(gram)) score /= 4;
      if (const auto used = uses_.find(std::string(gram)); used != uses_.end()) score -= std::min(used->second, 30);
      if (score > best_score) {
        best_score = score;
        best = end;
      }
    }
    ++uses_[bytes.substr(best - Key::gram, Key::gram)];
    const std::size_t begin = best < Key::max_length ? 0 : best - Key::max_length;
    return bytes.substr(begin, best - begin);
  }

  std::unordered_map<std::string, std::string> chosen_;
  std::unordered_map<std::string, int> uses_;  // of a key's last four bytes
};

}  // namespace

KeySet::KeySet(std::span<const Pattern> patterns) {
  Chooser chooser;
  std::map<std::string, std::vector<std::uint32_t>> by_key;
  for (std::uint32_t p = 0; p < patterns.size(); ++p) {
    if (patterns[p].bytes.size() < 2) {
      without_key_.push_back(p);
      continue;
    }
    by_key[chooser.choose(folded(patterns[p].bytes))].push_back(p);
  }
  for (const auto& [bytes, users] : by_key) {
    Key key;
    std::memcpy(key.bytes.data(), bytes.data(), bytes.size());
    key.length = static_cast<std::uint8_t>(bytes.size());
    for (const std::uint32_t p : users) key.classes |= patterns[p].classes;
    keys_.push_back(key);
    first_.push_back(static_cast<std::uint32_t>(pattern_.size()));
    pattern_.insert(pattern_.end(), users.begin(), users.end());
  }
  first_.push_back(static_cast<std::uint32_t>(pattern_.size()));
}

}  // namespace sluice::match
