#include "match/automaton/key_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "match/automaton/byte_pairs.h"

namespace sluice::match {
namespace {

std::string folded(std::string_view bytes) {
  std::string out(bytes);
  for (char& c : out) c = static_cast<char>(fold(static_cast<std::uint8_t>(c)));
  return out;
}

// Words that ordinary traffic has for reasons of its own: pairs of bytes make them look rare.
bool is_commonplace(std::string_view piece) {
  static constexpr std::string_view common =
      "http/1.1\r\n http/1.0\r\n http://www. https:// .com .html .php .asp .cgi .exe \r\nhost: \r\nuser-agent: "
      "mozilla/5.0 ("
      "compatible; msie windows nt 10.0; win64; x64) x11; linux x86_64; applewebkit/537.36 (khtml, like gecko) chrome/ "
      "safari/537.36\r\n gecko/20100101 firefox/ \r\ncontent-type: \r\ncontent-length: \r\ncontent-disposition: "
      "attachment; filename= form-data application/x-www-form-urlencoded\r\n text/html\r\n charset=utf-8\r\n "
      "\r\naccept-encoding: gzip, deflate\r\n \r\naccept-language: en-us,en;q=0. \r\naccept: */*\r\n \r\ncookie: "
      "\r\nreferer: http://www. \r\ncache-control: no-cache\r\n max-age=0\r\n \r\npragma: no-cache\r\n "
      "\r\nconnection: keep-alive\r\n\r\n \r\nconnection: close\r\n\r\n \r\nupgrade-insecure-requests: 1\r\n post / "
      "get / "
      "\r\n\r\n name=\" value=\" <html> <script script> function( document. window.location document.write id= .net "
      "microsoft password username version";
  if (common.find(piece) != std::string_view::npos) return true;
  return std::all_of(piece.begin(), piece.end(), [&](char c) { return c == piece[0]; });
}

// -log2 of its share of the places in ordinary traffic. Of what is commonplace a longer piece is still the rarer one.
float rarity_of(std::string_view piece) {
  const float rarity = bits_of(piece);
  return is_commonplace(piece) ? std::min(rarity, 8 + rarity / 16) : rarity;
}

double share(std::string_view piece) {
  return std::exp2(-rarity_of(piece));
}

// Calls `use` with each piece that may be the key.
template <typename Use>
void for_each_piece(std::string_view bytes, Use use) {
  if (bytes.size() <= Key::gram) return use(bytes);
  for (std::size_t end = Key::gram; end <= bytes.size(); ++end) {
    const std::size_t begin = end < Key::max_length ? 0 : end - Key::max_length;
    use(bytes.substr(begin, end - begin));
  }
}

class Chooser {
 public:
  // The piece of `bytes` that is to stand for it. Patterns that fold alike have one.
  const std::string& choose(const std::string& bytes) {
    const auto [known, is_new] = chosen_.try_emplace(bytes);
    if (is_new) known->second = piece(bytes);
    return known->second;
  }

 private:
  // What is found of a key costs a core a prefilter match for each pattern that it stands for; what is found of its
  // last four bytes only costs the GPU a comparison, some 256 times less. Traffic that resembles a pattern has its
  // pieces more often than the table says, hence `least_share`: pieces that are all rare are distinguished by how many
  // patterns they bring.
  std::string piece(const std::string& bytes) {
    if (bytes.size() <= Key::gram) return bytes;
    std::string best;
    double least = 0;
    for_each_piece(bytes, [&](std::string_view piece) {
      const auto used = uses_.find(std::string(piece));
      const double others = used == uses_.end() ? 0 : used->second;
      const double cost =
          (1 + others) * (least_share + share(piece)) + share(piece.substr(piece.size() - Key::gram)) / 256;
      if (!best.empty() && cost >= least) return;
      best = piece;
      least = cost;
    });
    ++uses_[best];
    return best;
  }

  static constexpr double least_share = 0x1p-22;
  std::unordered_map<std::string, std::string> chosen_;
  std::unordered_map<std::string, int> uses_;
};

}  // namespace

float key_rarity(std::string_view pattern) {
  float rarest = 0;
  if (pattern.size() < KeySet::least_pattern) return rarest;
  for_each_piece(folded(pattern), [&](std::string_view piece) { rarest = std::max(rarest, rarity_of(piece)); });
  return rarest;
}

KeySet::KeySet(std::span<const Pattern> patterns) {
  Chooser chooser;
  std::map<std::string, std::vector<std::uint32_t>> by_key;
  for (std::uint32_t p = 0; p < patterns.size(); ++p) {
    if (patterns[p].bytes.size() < least_pattern || patterns[p].classes == 0) {
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
