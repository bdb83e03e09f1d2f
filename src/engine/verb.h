// The trait of an element's type that has verbs of its own in `sluice ctl`: their arguments, the request to the gateway
// (api.h) that each makes, and how the answer is printed.
//
// Thread-safety: `sluice ctl` has one thread, in a process of its own. Texts are phrases for people, without a full
// stop.
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
  std::string name;  // "ADDRESS": positional; "--limit", "-f,--file": an option with a value
  std::string text;
  bool required = false;
  bool many = false;      // one or more
  std::string type = {};  // of the value, as --help shows it: "FILE"
  bool is_file = false;   // a path, which bash completion completes
  struct Number {
    unsigned least, most, usual;
  };
  std::optional<Number> number = std::nullopt;  // the value is a number; without it any text
};
// `--limit N`, of a list.
inline VerbArgument limit_argument() {
  return {.name = "--limit", .text = "print at most so many", .number = VerbArgument::Number{1, 1'000'000, 100}};
}

// The words of the command line, by the name of the argument: "ADDRESS", "--limit", "--file". A number is always there:
// its default if the command line does not have it.
class VerbWords {
 public:
  std::map<std::string, std::vector<std::string>> given;

  bool has(const std::string& name) const { return given.contains(name); }
  const std::vector<std::string>& all(const std::string& name) const {
    static const std::vector<std::string> none;
    const auto found = given.find(name);
    return found == given.end() ? none : found->second;
  }
  // The first word of that argument; empty: there is none.
  std::string one(const std::string& name) const { return all(name).empty() ? std::string() : all(name).front(); }
};

struct VerbText {
  std::string text;
  std::vector<std::string> warnings = {};  // sentences, on standard error
};

struct VerbRequest {
  std::string path;     // "/api/v1/NAME/add", or "/api/v1/NAME?limit=5" with characters that need no escape
  bool change = false;  // POST
  std::string body = {};
  // Makes text for people of the answer's JSON.
  std::function<Expected<VerbText>(const std::string& answer)> print = {};
};

struct VerbRefusal {
  enum class Kind : std::uint8_t {
    usage,    // wrong arguments; the message points to --help
    input,    // a wrong value or file
    gateway,  // the gateway has refused it
  };
  Kind kind = Kind::input;
  std::string message;  // a line for each mistake
};
inline tl::unexpected<VerbRefusal> refuse_verb(VerbRefusal::Kind kind, std::string message) {
  return tl::unexpected(VerbRefusal{kind, std::move(message)});
}

// Makes a GET request to the gateway, for a verb that has to know something before its own request.
using VerbReader = std::function<Expected<std::string>(const std::string& path)>;

struct Verb {
  std::string name, text;
  std::vector<VerbArgument> arguments = {};
  std::string footer = {};  // the end of --help
  // Makes the request. Empty: one of `verbs` must follow on the command line.
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
