#include "cli/completion.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

namespace sluice::cli {
namespace {

struct Values {
  std::vector<std::string> words = {};
  bool files = false;
  std::string ending = {};
};

// By option, which holds its own: another one that has its address later has none of them.
std::map<const CLI::Option*, std::weak_ptr<Values>>& known_values() {
  static std::map<const CLI::Option*, std::weak_ptr<Values>> instance;
  return instance;
}

Values& values_for(CLI::Option* option) {
  std::weak_ptr<Values>& known = known_values()[option];
  std::shared_ptr<Values> values = known.lock();
  if (values == nullptr) {
    known = values = std::make_shared<Values>();
    option->check([values](const std::string&) { return std::string(); });  // takes all
  }
  return *values;
}

// Of CLI::IsMember(), whose description is "{in,out}".
std::vector<std::string> members(const CLI::Option& option) {
  const std::string type = option.get_type_name();  // with what its checks say
  const std::size_t open = type.find('{'), close = type.find('}', open);
  std::vector<std::string> words;
  if (close == std::string::npos) return words;
  for (std::size_t at = open + 1; at <= close;) {
    const std::size_t end = std::min(type.find(',', at), close);
    words.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

Values values_of(const CLI::Option& option) {
  const auto known = known_values().find(&option);
  const auto values = known == known_values().end() ? nullptr : known->second.lock();
  return values == nullptr ? Values{members(option)} : *values;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// How it is given; empty: it is no word with dashes.
std::string long_name(const CLI::Option& option) {
  if (!option.get_lnames().empty()) return "--" + option.get_lnames().front();
  return option.get_snames().empty() ? std::string() : "-" + option.get_snames().front();
}

// What is known of a line up to the word that is being typed.
struct Line {
  const CLI::App* command;
  std::vector<const CLI::App*> above = {};  // commands whose options may be given here, too
  std::vector<const CLI::Option*> given = {};
  std::size_t places = 0;  // words that are no option's and no command
};

// The options that a word may be: the command's, and of those above it that it falls through to.
std::vector<const CLI::Option*> options_at(const Line& line) {
  std::vector<const CLI::Option*> all;
  for (const CLI::App* app : line.above) std::ranges::copy(app->get_options(), std::back_inserter(all));
  std::ranges::copy(line.command->get_options(), std::back_inserter(all));
  return all;
}

const CLI::Option* option_named(const Line& line, std::string_view word) {
  for (const CLI::Option* option : options_at(line)) {
    if (word.starts_with('-') && word.size() > 1 && option->check_name(std::string(word))) return option;
  }
  return nullptr;
}

const CLI::App* command_named(const CLI::App& app, const std::string& word) {
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (one->get_name() == word) return one;
  }
  return nullptr;
}

// The option whose value comes next; null: none is open.
const CLI::Option* walk(std::span<const std::string> words, Line& line) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (const CLI::Option* const option = option_named(line, word)) {
      line.given.push_back(option);
      if (!takes_value(*option)) continue;
      if (++at == words.size()) return option;
    } else if (const CLI::App* const next = command_named(*line.command, word); next != nullptr && line.places == 0) {
      // Those of the program itself, --version and --help, are for its own place.
      if (!next->get_fallthrough()) line.above.clear();
      if (next->get_fallthrough() && line.command->get_parent() != nullptr) line.above.push_back(line.command);
      line.command = next;
    } else {
      ++line.places;
    }
  }
  return nullptr;
}

// The word that stands at this place; the last one that can be there many times stays.
const CLI::Option* place_at(const CLI::App& command, std::size_t place) {
  for (const CLI::Option* option : command.get_options([](const CLI::Option* one) { return one->get_positional(); })) {
    const auto many = static_cast<std::size_t>(option->get_items_expected_max());
    if (place < many) return option;
    place -= many;
  }
  return nullptr;
}

void add(const Values& values, Completion& to) {
  to.words.insert(to.words.end(), values.words.begin(), values.words.end());
  to.files |= values.files;
  to.ending = values.ending;
}

void add_options(const Line& line, Completion& to) {
  for (const CLI::Option* option : options_at(line)) {
    const bool again = takes_value(*option) && option->get_items_expected_max() > 1;
    const bool is_there = std::ranges::find(line.given, option) != line.given.end();
    const std::string name = long_name(*option);
    const bool is_new = std::ranges::find(to.words, name) == to.words.end();  // each command has a --help
    if (!name.empty() && is_new && (again || !is_there)) to.words.push_back(name);
  }
}

}  // namespace

CLI::Option* complete_with(CLI::Option* option, std::vector<std::string> words) {
  values_for(option).words = std::move(words);
  return option;
}

CLI::Option* complete_with_files(CLI::Option* option, std::string ending) {
  Values& values = values_for(option);
  values.files = true;
  values.ending = std::move(ending);
  return option;
}

Completion complete(const CLI::App& app, std::span<const std::string> words) {
  Completion found;
  if (words.empty()) return found;
  const std::string& typed = words.back();
  Line line{&app};
  if (const CLI::Option* const open = walk(words.first(words.size() - 1), line)) {
    add(values_of(*open), found);
  } else {
    if (!typed.starts_with('-')) {
      if (line.places == 0) {
        for (const CLI::App* one : line.command->get_subcommands([](const CLI::App*) { return true; })) {
          found.words.push_back(one->get_name());
        }
      }
      if (const CLI::Option* const place = place_at(*line.command, line.places)) add(values_of(*place), found);
    }
    if (typed.starts_with('-') || (found.words.empty() && !found.files)) add_options(line, found);
  }
  std::erase_if(found.words, [&](const std::string& word) { return !word.starts_with(typed); });
  return found;
}

int print_completion(const CLI::App& app, std::span<const std::string> words) {
  const Completion found = complete(app, words);
  for (const std::string& word : found.words) std::printf("%s\n", word.c_str());
  if (found.files) std::printf(":files %s\n", found.ending.c_str());
  return 0;
}

}  // namespace sluice::cli
