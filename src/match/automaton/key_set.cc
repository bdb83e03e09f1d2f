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
      "http/1.1\r\n http/1.0\r\n http://www. https:// .com .html .php .asp .cgi .exe \r\nhost: user-agent: mozilla/5.0 "
      "content-type: content-length: content-disposition: attachment; filename= form-data "
      "application/x-www-form-urlencoded text/html accept-encoding: accept-language: accept: cookie: referer: "
      "connection: keep-alive post / get / \r\n\r\n name=\" value=\" <html> <script script> function( document. "
      "window.location document.write windows nt 10.0; id= .net microsoft password username version";
  if (common.find(piece) != std::string_view::npos) return true;
  return std::all_of(piece.begin(), piece.end(), [&](char c) { return c == piece[0]; });
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
  // What is found of a key costs a core a candidate for each pattern that it stands for; what is found of its last four
  // bytes only costs the GPU a comparison, some 256 times less. Traffic that resembles a pattern has its pieces more
  // often than the table says, hence `least_share`: pieces that are all rare are told apart by how many patterns they
  // bring.
  std::string piece(const std::string& bytes) {
    if (bytes.size() <= Key::gram) return bytes;
    std::string best;
    double least = 0;
    for (std::size_t end = Key::gram; end <= bytes.size(); ++end) {
      const std::size_t begin = end < Key::max_length ? 0 : end - Key::max_length;
      std::string piece = bytes.substr(begin, end - begin);
      const auto used = uses_.find(piece);
      const double others = used == uses_.end() ? 0 : used->second;
      const double cost = (1 + others) * (least_share + share(piece)) +
                          share(std::string_view(piece).substr(piece.size() - Key::gram)) / 256;
      if (!best.empty() && cost >= least) continue;
      best = std::move(piece);
      least = cost;
    }
    ++uses_[best];
    return best;
  }

  static constexpr double least_share = 0x1p-22;
  // Of the places in ordinary traffic. Of what is commonplace a longer piece is still the rarer one.
  static double share(std::string_view piece) {
    const float rarity = bits_of(piece);
    return std::exp2(-(is_commonplace(piece) ? std::min(rarity, 8 + rarity / 16) : rarity));
  }

  std::unordered_map<std::string, std::string> chosen_;
  std::unordered_map<std::string, int> uses_;
};

}  // namespace

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
