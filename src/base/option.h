// A setting of a section, declared once. From its declaration come its reader and its check, what it is at present as a
// file would say it, and its row of docs/configuration.md.
//
//   const std::vector<Option<Limits>> limits = {
//       option::number("batch", &Limits::batch, {64, 65536}, "frames of a batch, 64 to 65536"),
//       option::flag("strict", &Limits::strict, "whether ...")};
//   option::read(limits, section, to);          // mistakes go to the section
//   option::differing(limits, running, wanted)  // keys
//
// What a value is as a file says it (show) is TOML and JSON: a text in quotes, a number, true or false, or a list.
//
// Thread-safety: as a const object's. Cost: none on a packet's path.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "base/units.h"

namespace sluice {

template <class T>
struct Option {
  std::string key;
  std::string text;                                 // what it means, for people
  std::function<void(Settings& section, T&)> read;  // leaves what the section does not have, or has wrong
  std::function<std::string(const T&)> show;
  bool reloads = false;  // a reload brings another value into force
};

namespace option {

// A text, and a list of texts, as a file has them: in quotes, with what has to be escaped.
std::string literal(std::string_view text);
std::string list_literal(const std::vector<std::string>& texts);

template <class T>
void read(const std::vector<Option<T>>& options, Settings& section, T& to) {
  for (const Option<T>& option : options) option.read(section, to);
}

// Keys whose values differ, of those that no reload brings into force.
template <class T>
std::vector<std::string> differing(const std::vector<Option<T>>& options, const T& one, const T& other) {
  std::vector<std::string> keys;
  for (const Option<T>& option : options) {
    if (!option.reloads && option.show(one) != option.show(other)) keys.push_back(option.key);
  }
  return keys;
}

struct Range {
  std::int64_t least, most;
};

template <class T, class Number>
Option<T> number(std::string key, Number T::*member, Range range, std::string text) {
  return {key, std::move(text),
          [=](Settings& section, T& to) {
            to.*member = static_cast<Number>(section.integer(key, to.*member, range.least, range.most));
          },
          [=](const T& of) { return std::to_string(of.*member); }};
}

// With a word in the place of one number, which a file does not say.
template <class T, class Number>
Option<T> number_or(std::string key, Number T::*member, Range range, const std::string& word, Number value,
                    std::string text) {
  return {key, std::move(text),
          [=](Settings& section, T& to) {
            if (section.is(key, word)) return;
            to.*member = static_cast<Number>(section.integer(key, to.*member, range.least, range.most));
          },
          [=](const T& of) { return of.*member == value ? literal(word) : std::to_string(of.*member); }};
}

template <class T>
Option<T> flag(std::string key, bool T::*member, std::string text) {
  return {key, std::move(text), [=](Settings& section, T& to) { to.*member = section.boolean(key, to.*member); },
          [=](const T& of) { return std::string(of.*member ? "true" : "false"); }};
}

template <class T>
Option<T> text(std::string key, std::string T::*member, std::string meaning) {
  return {key, std::move(meaning), [=](Settings& section, T& to) { to.*member = section.text(key, to.*member); },
          [=](const T& of) { return literal(of.*member); }};
}

template <class T>
Option<T> bytes(std::string key, std::uint64_t T::*member, std::string text) {
  return {key, std::move(text), [=](Settings& section, T& to) { to.*member = section.bytes(key, to.*member); },
          [=](const T& of) { return literal(bytes_text(of.*member)); }};
}

// `word`: what a file says for 0; empty: nothing.
template <class T>
Option<T> duration(std::string key, std::chrono::nanoseconds T::*member, std::string word, std::string text) {
  return {key, std::move(text),
          [=](Settings& section, T& to) {
            if (word.empty() || !section.is(key, word)) to.*member = section.duration(key, to.*member);
          },
          [=](const T& of) {
            const auto value = of.*member;
            return literal(!word.empty() && value.count() == 0 ? word : duration_text(value));
          }};
}

// One of some words, each with its value.
template <class T, class Value>
Option<T> word(std::string key, Value T::*member, std::vector<std::pair<std::string, Value>> words, std::string text) {
  return {key, std::move(text),
          [=](Settings& section, T& to) {
            std::vector<std::string_view> allowed;
            for (const auto& one : words) allowed.emplace_back(one.first);
            const std::string given = section.choice(key, {}, allowed);
            for (const auto& one : words) {
              if (one.first == given) to.*member = one.second;
            }
          },
          [=](const T& of) {
            for (const auto& one : words) {
              if (one.second == of.*member) return literal(one.first);
            }
            return literal("");
          }};
}

}  // namespace option
}  // namespace sluice
