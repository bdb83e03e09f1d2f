// One TOML table of the configuration, read key by key, with the place of every mistake.
//
// A reader asks for each key it knows, giving the default and the limits. A wrong type, a value outside the limits and,
// at finish(), a key that nobody asked for become entries of the shared Diagnostics ("router.toml:12: [engine] cycle =
// \"5\": a duration such as ..."). Getters return the default after an error, so that one pass finds all mistakes of a
// file, and one message for each value: what a getter has refused, a reader who goes on with the default cannot refuse
// again.
//
// Copies share the same table. The Diagnostics must outlive every Settings made with it.
// Thread-safety: none (the control thread reads configuration). Cost: start-up only.
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
  // Parses a regular file (no pipe is waited for) or a text. A syntax error is an Error with file, line and column, and
  // what to write instead where that is known.
  static Expected<Settings> from_file(const std::string& path, Diagnostics& diagnostics);
  static Expected<Settings> from_text(std::string_view text, std::string name, Diagnostics& diagnostics);
  // A table with no keys: what a function gets whose section is absent.
  static Settings empty(std::string name, Diagnostics& diagnostics);

  bool has(std::string_view key) const;
  // True when the value is the text `word`. For a key that takes a word or something else: ask this first, then the
  // getter of the other type; its message then mentions the word too.
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
  // "250us", "1ms", "2s"; a bare number is refused, and so is one that is not above 0.
  std::chrono::nanoseconds duration(std::string_view key, std::chrono::nanoseconds fallback);
  // "512M", "4K", "2G" (powers of 1024) or a bare number of bytes.
  std::uint64_t bytes(std::string_view key, std::uint64_t fallback);
  std::vector<std::string> texts(std::string_view key, std::vector<std::string> fallback = {});
  // A text, a whole number, or a list of these, one at least; all as texts. Absent: none.
  std::vector<std::string> values(std::string_view key);
  // One number at least.
  std::vector<std::int64_t> integers(std::string_view key, std::vector<std::int64_t> fallback = {});
  // [key] as its own Settings; an empty one when absent.
  Settings section(std::string_view key);
  // [[key]] as a list.
  std::vector<Settings> sections(std::string_view key);

  // Records "FILE:LINE: [section] key = VALUE: message" (key absent: without the value, at the section's line; key
  // empty: the section itself). Nothing of a key whose value a getter has refused.
  void error(std::string_view key, const std::string& message);
  // From now on no message about this section and those in it shows a value, or a long name: it has keys in it.
  void hide_values();
  // Records every key that was never asked for, with the closest known key as a hint; a second call records nothing
  // again.
  void finish();
  // Keys that were asked for so far, those of sections in it as "connected.NAME", in the order of asking.
  std::vector<std::string> asked() const;
  bool hides_values() const;
  // What a reader has made of a key, as JSON: what in_force() says of it. The last one holds.
  void took(std::string_view key, std::string json);
  // One object of what was taken here and in the sections in it, lists of sections as arrays; empty where values are
  // hidden, and where nothing was taken.
  std::string in_force() const;
  // The line of a key, for messages; 0 when unknown. An empty key is the section's own line.
  unsigned line(std::string_view key) const;
  // "FILE:LINE" of that line, for messages that come up later; without it the file's name.
  std::string place(std::string_view key) const;
  // The section's name with its parents' ("route.connected"); for the whole file, the file's.
  const std::string& name() const;

 private:
  struct Node;
  explicit Settings(std::shared_ptr<Node> node);
  std::shared_ptr<Node> node_;
};

}  // namespace sluice
