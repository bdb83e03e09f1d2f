#include "bench/match_patterns.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <random>
#include <set>
#include <string_view>

#include "base/file.h"
#include "match/rules/fast_pattern.h"
#include "match/rules/rule_set.h"

namespace sluice::cli::bench {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Empty: not pairs of hexadecimal digits.
std::string bytes_of(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    const int high = digit_of(digits[i]), low = digit_of(digits[i + 1]);
    if (high < 0 || low < 0) {
      return {};
    }
    bytes += static_cast<char>(high * 16 + low);
  }
  return digits.size() % 2 == 0 ? bytes : std::string();
}

}  // namespace

Expected<std::vector<match::Pattern>> read_patterns(const std::string& path) {
  if (auto good = check_regular_file(path); !good) {
    return tl::unexpected(good.error());
  }
  std::ifstream in(path);
  std::vector<match::Pattern> patterns;
  std::string line;
  for (unsigned number = 1; std::getline(in, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
      line.pop_back();
    }
    if (line.empty()) {
      continue;
    }
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string flag = line.substr(std::min(line.size(), space + 1));
    match::Pattern pattern{bytes_of(std::string_view(line).substr(0, space)), flag == "nocase"};
    if (pattern.bytes.empty() || (!flag.empty() && !pattern.nocase)) {
      return make_error(path + ":" + std::to_string(number) +
                        ": a pattern is pairs of hexadecimal digits, and ` nocase` if case is to be folded");
    }
    patterns.push_back(std::move(pattern));
  }
  if (patterns.empty()) {
    return make_error(path + ": holds no pattern");
  }
  return patterns;
}

Expected<std::vector<match::Pattern>> patterns_of_rules(const std::string& path) {
  match::ReadOptions options;
  options.commented_out = true;
  const auto set = match::read_rules(std::vector<std::string>{path}, options);
  if (!set) {
    return tl::unexpected(set.error());
  }
  std::set<std::pair<std::string, bool>> seen;
  std::vector<match::Pattern> patterns;
  for (const match::Rule& rule : set->rules) {
    const auto best = match::best_pattern(rule);
    if (best && seen.emplace(best->bytes, best->nocase).second) {
      patterns.push_back({std::string(best->bytes), best->nocase});
    }
  }
  if (patterns.empty()) {
    return make_error(path + ": holds no rule with a pattern that loads: sluice rules says why");
  }
  return patterns;
}

std::vector<match::Pattern> make_patterns(unsigned count) {
  static constexpr std::string_view syllables[] = {
      "ad",  "min", "cmd", "sh",  "ell", "scr", "ipt",  "log", "in",   "pass", "wd",  "etc", "sel", "ect", "un",
      "ion", "ex",  "ec",  "bot", "net", "up",  "date", "get", "post", "id",   "ver", "sys", "win", "dll", "xp"};
  static constexpr std::string_view joints = "/.-_=?&%: ";
  std::mt19937 random(20'260);
  std::set<std::string> seen;
  std::vector<match::Pattern> patterns;
  while (patterns.size() < count) {
    const std::size_t length = random() % 8 == 0 ? 3 + random() % 3 : 6 + random() % 15 + (random() % 10 == 0 ? 20 : 0);
    const bool text = random() % 5 != 0;
    std::string bytes;
    while (bytes.size() < length) {
      if (!text) {
        bytes += static_cast<char>(random() % 256);
      } else if (random() % 4 == 0) {
        bytes += joints[random() % joints.size()];
      } else if (random() % 6 == 0) {
        bytes += static_cast<char>('0' + random() % 10);
      } else {
        bytes += syllables[random() % std::size(syllables)];
      }
    }
    bytes.resize(length);
    if (seen.insert(bytes).second) {
      patterns.push_back({bytes, random() % 3 == 0});
    }
  }
  return patterns;
}

std::size_t PatternChoice::shortest() const {
  const auto length = [](const match::Pattern& pattern) { return pattern.bytes.size(); };
  return patterns.empty() ? 0 : length(std::ranges::min(patterns, {}, length));
}

Expected<PatternChoice> choose_patterns(const std::string& option) {
  constexpr unsigned default_patterns = 2775;
  PatternChoice choice{option.empty() ? "made up" : option.substr(option.rfind('/') + 1), {}};
  if (option.find_first_not_of("0123456789") == std::string::npos) {
    choice.name += option.empty() ? "" : " made up";
    choice.patterns = make_patterns(option.empty() ? default_patterns : static_cast<unsigned>(std::stoul(option)));
  } else {
    auto read = option.ends_with(".rules") ? patterns_of_rules(option) : read_patterns(option);
    if (!read) {
      return tl::unexpected(read.error());
    }
    choice.patterns = std::move(*read);
  }
  std::erase_if(choice.patterns, [](const match::Pattern& p) { return p.bytes.size() < 2; });
  return choice;
}

}  // namespace sluice::cli::bench
