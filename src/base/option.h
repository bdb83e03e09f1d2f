// A setting of a section, declared once. The declaration gives its reader and its check, its value in force
// (/api/v1/config), what a reload refuses to change, and its row in docs/configuration.md.
//
//   const std::vector<Option<Limits>> limits = {
//       option::number("batch", &Limits::batch, {64, 65536, "frames"}, "how many a batch has"),
//       option::flag("strict", &Limits::strict, "whether ...").reloadable()};
//   option::read(limits, section, to);              // mistakes go to the section
//   option::fixed("[limits]", limits, running, wanted)
//   option::section("[limits]", limits)             // for people
//
// The member that a setting is read into is given as a pointer to member, or as a function that finds it in T:
//   option::flag<All>("strict", [](auto& all) -> auto& { return all.limits.strict; }, "whether ...")
//
// `show` writes a value as a file has it, in a form that is both TOML and JSON: a text in quotes, a number, true or
// false, or a list.
//
// Thread-safety: as const objects. Cost: none on the packet path.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/option_facts.h"
#include "base/settings.h"
#include "base/units.h"

namespace sluice {

template <class T>
struct Option {
  std::string key;
  std::string text;                                 // its meaning, for people
  std::function<void(Settings& section, T&)> read;  // changes nothing if the section has no value, or a wrong one
  std::function<std::string(const T&)> show;        // empty: there is no value to show
  bool reloads = false;                             // a reload brings another value into force
  std::string values = {};                          // the allowed values, with bounds and unit, for people
  std::string usual = {};                           // the default, for people; empty: the value in T()

  Option reloadable() && {
    reloads = true;
    return std::move(*this);
  }
  Option takes(std::string allowed) && {
    values = std::move(allowed);
    return std::move(*this);
  }
  Option by_default(std::string meaning) && {
    usual = std::move(meaning);
    return std::move(*this);
  }
};

namespace option {

// A text, and a list of texts, as a file has them: in quotes, and escaped.
std::string literal(std::string_view text);
std::string list_literal(const std::vector<std::string>& texts);
// A number of bytes as a file has it: "64K" in quotes, or 1000.
std::string size_literal(std::uint64_t bytes);
inline constexpr const char* required = "(required)";

// Reads all options. The section keeps each value (Settings::took), unless it hides values.
template <class T>
void read(const std::vector<Option<T>>& options, Settings& section, T& to) {
  for (const Option<T>& option : options) option.read(section, to);
  if (section.hides_values()) return;
  for (const Option<T>& option : options) {
    if (option.show) section.took(option.key, option.show(to));
  }
}

// The keys whose values differ and that a reload does not bring into force.
template <class T>
std::vector<std::string> differing(const std::vector<Option<T>>& options, const T& one, const T& other) {
  std::vector<std::string> keys;
  for (const Option<T>& option : options) {
    if (!option.reloads && option.show && option.show(one) != option.show(other)) keys.push_back(option.key);
  }
  return keys;
}

// The message with which a reload refuses these, a line for each; empty: there are none.
template <class T>
std::string fixed(const std::string& title, const std::vector<Option<T>>& options, const T& running, const T& wanted,
                  const char* while_what = "the gateway runs: restart it") {
  std::string lines;
  for (const std::string& key : differing(options, running, wanted)) {
    lines += (lines.empty() ? "" : "\n") + title + " " + key + " cannot change while " + while_what;
  }
  return lines;
}

template <class T>
std::vector<Option<T>> all_reloadable(std::vector<Option<T>> options) {
  for (Option<T>& option : options) option.reloads = true;
  return options;
}

// The options as people read them. `usual`: has the defaults; null: only Option::usual has them.
template <class T>
OptionSection section(std::string title, const std::vector<Option<T>>& options, std::string text, const T* usual) {
  OptionSection all{std::move(title), std::move(text), {}};
  for (const Option<T>& option : options) {
    std::string shown = option.usual;
    if (shown.empty() && option.show && usual != nullptr) shown = "`" + option.show(*usual) + "`";
    all.options.push_back({option.key, option.values, std::move(shown), option.reloads, option.text});
  }
  return all;
}
template <class T>
OptionSection section(std::string title, const std::vector<Option<T>>& options, std::string text = {}) {
  if constexpr (std::is_default_constructible_v<T>) {
    const T usual;
    return section(std::move(title), options, std::move(text), &usual);
  } else {
    return section<T>(std::move(title), options, std::move(text), nullptr);
  }
}

template <class Field>
struct OwnerOf;
template <class T, class Member>
struct OwnerOf<Member T::*> {
  using type = T;
};
// T if it is given, else the class of the pointer to member.
template <class T, class Field>
using Owner = typename std::conditional_t<std::is_void_v<T>, OwnerOf<Field>, std::type_identity<T>>::type;
template <class T, class Field>
using ValueOf = std::remove_cvref_t<std::invoke_result_t<Field, Owner<T, Field>&>>;

struct Range {
  std::int64_t least, most;
  const char* unit = "";
  std::string text() const {
    return std::to_string(least) + " to " + std::to_string(most) + (*unit == '\0' ? "" : " ") + unit;
  }
};

template <class T = void, class Field>
Option<Owner<T, Field>> number(std::string key, Field field, Range range, std::string text) {
  using Of = Owner<T, Field>;
  return {key,
          std::move(text),
          [=](Settings& section, Of& to) {
            auto& value = std::invoke(field, to);
            const auto usual = static_cast<std::int64_t>(value);
            value = static_cast<ValueOf<T, Field>>(section.integer(key, usual, range.least, range.most));
          },
          [=](const Of& of) { return std::to_string(std::invoke(field, of)); },
          false,
          range.text()};
}

// A number, or a word that stands for one special number. A file cannot give that number itself.
template <class T = void, class Field>
Option<Owner<T, Field>> number_or(std::string key, Field field, Range range, const std::string& word,
                                  ValueOf<T, Field> value, std::string text) {
  using Of = Owner<T, Field>;
  return {key,
          std::move(text),
          [=](Settings& section, Of& to) {
            auto& member = std::invoke(field, to);
            const bool is_word = section.is(key, word);
            if (is_word) member = value;
            if (is_word || !section.has(key)) return;
            member = static_cast<ValueOf<T, Field>>(section.integer(key, 0, range.least, range.most));
          },
          [=](const Of& of) {
            const auto now = std::invoke(field, of);
            return now == value ? literal(word) : std::to_string(now);
          },
          false,
          "`" + literal(word) + "`, or " + range.text()};
}

// A whole number of seconds, for a member of a std::chrono type.
template <class T = void, class Field>
Option<Owner<T, Field>> seconds(std::string key, Field field, Range range, std::string text) {
  using Of = Owner<T, Field>;
  return {key,
          std::move(text),
          [=](Settings& section, Of& to) {
            auto& value = std::invoke(field, to);
            const auto usual = std::chrono::duration_cast<std::chrono::seconds>(value).count();
            value = std::chrono::seconds(section.integer(key, usual, range.least, range.most));
          },
          [=](const Of& of) {
            return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(std::invoke(field, of)).count());
          },
          false,
          range.text()};
}

template <class T = void, class Field>
Option<Owner<T, Field>> flag(std::string key, Field field, std::string text) {
  using Of = Owner<T, Field>;
  return {key,
          std::move(text),
          [=](Settings& section, Of& to) {
            auto& value = std::invoke(field, to);
            value = section.boolean(key, value);
          },
          [=](const Of& of) { return std::string(std::invoke(field, of) ? "true" : "false"); },
          false,
          "`true`, `false`"};
}

template <class T = void, class Field>
Option<Owner<T, Field>> text(std::string key, Field field, std::string meaning) {
  using Of = Owner<T, Field>;
  return {key,
          std::move(meaning),
          [=](Settings& section, Of& to) {
            auto& value = std::invoke(field, to);
            value = section.text(key, value);
          },
          [=](const Of& of) { return literal(std::invoke(field, of)); },
          false,
          "text"};
}

template <class T = void, class Field>
Option<Owner<T, Field>> texts(std::string key, Field field, std::string meaning) {
  using Of = Owner<T, Field>;
  return {key,
          std::move(meaning),
          [=](Settings& section, Of& to) {
            auto& value = std::invoke(field, to);
            value = section.texts(key, value);
          },
          [=](const Of& of) { return list_literal(std::invoke(field, of)); },
          false,
          "list of texts"};
}

struct Sizes {
  std::uint64_t least, most;
  std::string rest = {};  // text after the bounds, in the message
  bool or_none = false;   // 0 is allowed, too: no limit
  bool holds(std::uint64_t bytes) const { return (bytes == 0 && or_none) || (bytes >= least && bytes <= most); }
  std::string allowed() const { return size_literal(least) + " to " + size_literal(most) + rest; }
  std::string text() const;  // for people
};

template <class T = void, class Field>
Option<Owner<T, Field>> bytes(std::string key, Field field, const Sizes& sizes, std::string text) {
  using Of = Owner<T, Field>;
  return {key,
          std::move(text),
          [=](Settings& section, Of& to) {
            auto& value = std::invoke(field, to);
            const std::uint64_t given = section.bytes(key, value);
            if (sizes.holds(given)) {
              value = static_cast<ValueOf<T, Field>>(given);
            } else {
              section.error(key, "allowed is " + sizes.allowed());
            }
          },
          [=](const Of& of) { return size_literal(std::invoke(field, of)); },
          false,
          sizes.text()};
}

// Any number of bytes. If the reader of the section has bounds of its own, describe them by takes().
template <class T = void, class Field>
Option<Owner<T, Field>> bytes(std::string key, Field field, std::string text) {
  using Of = Owner<T, Field>;
  return {key,
          std::move(text),
          [=](Settings& section, Of& to) {
            auto& value = std::invoke(field, to);
            value = section.bytes(key, value);
          },
          [=](const Of& of) { return size_literal(std::invoke(field, of)); },
          false,
          "size"};
}

// `word`: the word that a file has for 0; empty: there is none.
template <class T = void, class Field>
Option<Owner<T, Field>> duration(std::string key, Field field, const std::string& word, std::string text) {
  using Of = Owner<T, Field>;
  return {key,
          std::move(text),
          [=](Settings& section, Of& to) {
            auto& value = std::invoke(field, to);
            const bool is_word = !word.empty() && section.is(key, word);
            value = is_word ? std::chrono::nanoseconds(0) : section.duration(key, value);
          },
          [=](const Of& of) {
            const std::chrono::nanoseconds value = std::invoke(field, of);
            return literal(!word.empty() && value.count() == 0 ? word : duration_text(value));
          },
          false,
          (word.empty() ? "" : "`" + literal(word) + "`, or a ") + std::string("time above 0")};
}

// One of several words, each with its value.
template <class T = void, class Field>
Option<Owner<T, Field>> word(std::string key, Field field,
                             std::vector<std::pair<std::string, std::type_identity_t<ValueOf<T, Field>>>> words,
                             std::string text) {
  using Of = Owner<T, Field>;
  std::string values;
  for (const auto& one : words) values += (values.empty() ? "`" : ", `") + literal(one.first) + "`";
  return {key,
          std::move(text),
          [=](Settings& section, Of& to) {
            std::vector<std::string_view> allowed;
            for (const auto& one : words) allowed.emplace_back(one.first);
            const std::string given = section.choice(key, {}, allowed);
            for (const auto& one : words) {
              if (one.first == given) std::invoke(field, to) = one.second;
            }
          },
          [=](const Of& of) {
            for (const auto& one : words) {
              if (one.second == std::invoke(field, of)) return literal(one.first);
            }
            return literal("");
          },
          false,
          std::move(values)};
}

}  // namespace option
}  // namespace sluice
