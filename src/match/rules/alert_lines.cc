#include "match/rules/alert_lines.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "match/rules/draft.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

using Of = Suppression::Of;
constexpr auto sides = std::to_array<std::pair<std::string_view, Of>>(
    {{"by_src", Of::source}, {"by_dst", Of::destination}, {"by_either", Of::either}});

struct Word {
  std::string_view name, value;
};

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  for (std::string_view piece : split_group(text)) {
    const std::string_view name = take_word(piece);
    words.push_back({name, trimmed(piece)});
  }
  return words;
}

// Takes a word of that name out; an Error: it is there twice. Without a value: it is not there.
Expected<std::optional<std::string_view>> take(std::vector<Word>& words, std::string_view name) {
  const auto is_it = [&](const Word& word) { return word.name == name; };
  const auto at = std::ranges::find_if(words, is_it);
  if (at == words.end()) return std::nullopt;
  const std::string_view value = at->value;
  words.erase(at);
  if (std::ranges::any_of(words, is_it)) return make_error(std::string(name) + " is there twice");
  return value;
}

Expected<std::uint32_t> take_id(std::vector<Word>& words, std::string_view name) {
  const auto text = take(words, name);
  if (!text) return tl::unexpected(text.error());
  if (!*text) return make_error("it needs gen_id and sig_id");
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  const auto number = number_of(**text);
  if (!number || *number < 0 || *number > most) {
    return make_error(std::string(name) + ": " + no_number(**text, 0, most));
  }
  return static_cast<std::uint32_t>(*number);
}

Expected<void> take_rules(std::vector<Word>& words, AlertLine& line) {
  const auto gid = take_id(words, "gen_id");
  if (!gid) return tl::unexpected(gid.error());
  const auto sid = take_id(words, "sig_id");
  if (!sid) return tl::unexpected(sid.error());
  if (*gid == 0 && *sid != 0) return make_error("gen_id 0 is all rules, and goes with sig_id 0");
  line.gid = *gid;
  line.sid = *sid;
  return {};
}

std::string text_of(const std::vector<Word>& words) {
  std::string text;
  for (const Word& word : words) {
    text += (text.empty() ? "" : ", ") + std::string(word.name) + " " + std::string(word.value);
  }
  return text;
}

Error no_word_of_it(const Word& word) {
  return Error{in_quotes(trimmed(text_of({word}))) + " is no word of it"};
}

// A misspelt word, before those that it leaves missing.
Expected<void> know_all(const std::vector<Word>& words, std::span<const std::string_view> names) {
  for (const Word& word : words) {
    if (!word.name.empty() && std::ranges::find(names, word.name) == names.end()) {
      return tl::unexpected(no_word_of_it(word));
    }
  }
  return {};
}

}  // namespace

Expected<Suppression> read_suppression(std::string_view text, const Variables& variables) {
  Suppression one;
  std::vector<Word> words = words_of(text);
  constexpr auto names = std::to_array<std::string_view>({"gen_id", "sig_id", "track", "ip"});
  if (auto ok = know_all(words, names); !ok) return tl::unexpected(ok.error());
  if (auto ok = take_rules(words, one); !ok) return tl::unexpected(ok.error());
  const auto track = take(words, "track"), ip = take(words, "ip");
  if (!track || !ip) return tl::unexpected(track ? ip.error() : track.error());
  if (!words.empty()) return tl::unexpected(no_word_of_it(words.front()));
  if (track->has_value() != ip->has_value()) return make_error("track and ip go together");
  if (!*track) return one;
  const auto side = std::ranges::find_if(sides, [&](const auto& known) { return known.first == **track; });
  if (side == sides.end()) return make_error("track: " + in_quotes(**track) + " is none of by_src, by_dst, by_either");
  one.of = side->second;
  auto addresses = variables.addresses(**ip);
  if (!addresses) return make_error("ip: " + addresses.error().message);
  one.addresses = std::move(*addresses);
  return one;
}

Expected<EventFilter> read_event_filter(std::string_view text) {
  EventFilter one;
  std::vector<Word> words = words_of(text);
  constexpr auto names = std::to_array<std::string_view>({"gen_id", "sig_id", "type", "track", "count", "seconds"});
  if (auto ok = know_all(words, names); !ok) return tl::unexpected(ok.error());
  if (auto ok = take_rules(words, one); !ok) return tl::unexpected(ok.error());
  const auto count = std::ranges::find_if(words, [](const Word& word) { return word.name == "count"; });
  const bool off = count != words.end() && count->value == "-1";
  if (off) count->value = "1";  // the other words are to be right all the same
  if (words.empty()) return make_error("it needs type, track, count and seconds");
  const Classification no_classes;
  Draft draft(no_classes);
  if (const std::string wrong = read_threshold(draft, text_of(words)); !wrong.empty()) return make_error(wrong);
  if (!off) one.threshold = draft.rule.thresholds.front();
  return one;
}

}  // namespace sluice::match
