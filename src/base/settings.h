// One TOML table of the configuration, read key by key, with the place of every mistake.
//
// A reader asks for each key that it knows, with the default and the limits. A mistake becomes a line of the shared
// Diagnostics ("router.toml:12: [engine] cycle = \"5\": a duration such as ..."): a wrong type, a value outside the
// limits, and at finish() a key that nobody asked for. After a mistake a getter returns the default, so that one pass
// finds all mistakes of a file. There is one message for each value: error() adds none for a key that a getter has
// refused.
//
// Copies share the same table. The Diagnostics must outlive every Settings made with it.
// Thread-safety: none; the control thread reads the configuration. Cost: at start and at a reload only.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice {

// All that is wrong with a configuration, in the order it was found.
struct Diagnostics {
  std::vector<std::string> lines;
  bool ok() const { return lines.empty(); }
};

class Settings {
 public:
  // Parses a regular file, or a text; other kinds of files are refused. A syntax error is an Error with file, line and
  // column, and what to write instead if that is known.
  static Expected<Settings> from_file(const std::string& path, Diagnostics& diagnostics);
  static Expected<Settings> from_text(std::string_view text, std::string name, Diagnostics& diagnostics);
  // A table without keys: what an element gets if its section is absent.
  static Settings empty(std::string name, Diagnostics& diagnostics);

  bool has(std::string_view key) const;
  // Whether the value is the text `word`. For a key that takes a word or another type: call this first, then the getter
  // of the other type. The message of that getter then mentions the word, too.
  bool is(std::string_view key, std::string_view word);
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max);
  bool boolean(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string fallback);
  // Like text(), but the key must be there.
  std::string required_text(std::string_view key);
  std::string choice(std::string_view key, std::string fallback, std::span<const std::string_view> allowed);
  std::string choice(std::string_view key, std::string fallback, std::initializer_list<std::string_view> allowed) {
    return choice(key, std::move(fallback), std::span(allowed.begin(), allowed.size()));
  }
  // "250us", "1ms", "2s". A number without a unit is refused, and so is a duration that is not above 0.
  std::chrono::nanoseconds duration(std::string_view key, std::chrono::nanoseconds fallback);
  // "512M", "4K", "2G" (powers of 1024) or a bare number of bytes.
  std::uint64_t bytes(std::string_view key, std::uint64_t fallback);
  std::vector<std::string> texts(std::string_view key, std::vector<std::string> fallback = {});
  // A text, a whole number, or a list of these with at least one, all as texts. Absent: an empty list. `allowed`: what
  // the message about anything else says in place of that.
  std::vector<std::string> values(std::string_view key, std::string_view allowed = {});
  // A list of whole numbers, with at least one.
  std::vector<std::int64_t> integers(std::string_view key, std::vector<std::int64_t> fallback = {});
  // [key] as its own Settings; an empty one when absent.
  Settings section(std::string_view key);
  // [[key]] as a list.
  std::vector<Settings> sections(std::string_view key);

  // Adds the line "FILE:LINE: [section] key = VALUE: message". If the key is absent, the line is the section's and has
  // no value. If `key` is empty, it is about the section itself. Adds nothing if a getter has refused the key's value.
  void error(std::string_view key, const std::string& message);
  // The section holds secret keys: from now on no message about it and its subsections shows a value or a long name.
  void hide_values();
  // Adds a line for each key that was never asked for, with the closest known key as a hint. A second call adds no line
  // again.
  void finish();
  // The keys that were asked for so far, in the order of asking. Those of subsections are "connected.NAME".
  std::vector<std::string> asked() const;
  bool hides_values() const;
  // Reports the value that a reader has taken for a key, as JSON, for in_force(). The last report counts.
  void took(std::string_view key, std::string json);
  // A JSON object of all values that were taken here and in subsections; lists of sections are arrays. Empty if values
  // are hidden, or if nothing was taken.
  std::string in_force() const;
  // The line of a key, for messages; 0 when unknown. An empty key is the section's own line.
  unsigned line(std::string_view key) const;
  // "FILE:LINE" of that line, for later messages; the file's name if the line is unknown.
  std::string place(std::string_view key) const;
  // The section's name with those of its parents ("route.connected"). For the whole file: the file's name.
  const std::string& name() const;

 private:
  struct Node;
  explicit Settings(std::shared_ptr<Node> node);
  std::shared_ptr<Node> node_;
};

}  // namespace sluice
