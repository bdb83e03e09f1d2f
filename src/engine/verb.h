// The trait of an element's type that has verbs of its own in `sluice ctl`: what each takes on the command line, what
// it then asks of the gateway (api.h), and how the answer is printed.
//
// Thread-safety: the program's only thread, which is no gateway's. Texts are phrases for people, without a full stop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::engine {

struct VerbArgument {
  std::string name;  // "ADDRESS": by its place; "--limit", "-f,--file": with a value
  std::string text;
  bool required = false;
  bool many = false;      // one or more
  std::string type = {};  // of the value, in --help: "FILE"
  bool is_file = false;   // a path, which the shell completes
  struct Number {
    unsigned least, most, usual;
  };
  std::optional<Number> number = std::nullopt;  // else any text
};
// `--limit N`, of a list.
inline VerbArgument limit_argument() {
  return {.name = "--limit", .text = "print at most so many", .number = VerbArgument::Number{1, 1'000'000, 100}};
}

// What stands on the command line, by the arguments' names: "ADDRESS", "--limit", "--file". A number is always there.
class VerbWords {
 public:
  std::map<std::string, std::vector<std::string>> given;

  bool has(const std::string& name) const { return given.contains(name); }
  const std::vector<std::string>& all(const std::string& name) const {
    static const std::vector<std::string> none;
    const auto found = given.find(name);
    return found == given.end() ? none : found->second;
  }
  // Empty: it is not there.
  std::string one(const std::string& name) const { return all(name).empty() ? std::string() : all(name).front(); }
};

struct VerbText {
  std::string text;
  std::vector<std::string> warnings = {};  // sentences, on standard error
};

struct VerbRequest {
  std::string path;     // "/api/v1/NAME/add", or "/api/v1/NAME?limit=5" with what needs no escape
  bool change = false;  // POST
  std::string body = {};
  // The answer's JSON to text for people.
  std::function<Expected<VerbText>(const std::string& answer)> print = {};
};

struct VerbRefusal {
  enum class Kind : std::uint8_t {
    usage,    // of the words: --help says more
    input,    // of a value or a file
    gateway,  // what it has answered
  };
  Kind kind = Kind::input;
  std::string message;  // a line for each mistake
};
inline tl::unexpected<VerbRefusal> refuse_verb(VerbRefusal::Kind kind, std::string message) {
  return tl::unexpected(VerbRefusal{kind, std::move(message)});
}

// Reads of the gateway that come before the request itself.
using VerbReader = std::function<Expected<std::string>(const std::string& path)>;

struct Verb {
  std::string name, text;
  std::vector<VerbArgument> arguments = {};
  std::string footer = {};  // of --help
  // Empty: one of `verbs` must follow.
  std::function<tl::expected<VerbRequest, VerbRefusal>(const VerbWords& words, const VerbReader& read)> request = {};
  std::vector<Verb> verbs = {};
};

class Verbs {
 public:
  static constexpr std::string_view trait_name = "verbs";
  // The first one has the element's name.
  virtual std::vector<Verb> verbs() const = 0;

 protected:
  ~Verbs() = default;
};

}  // namespace sluice::engine
