// The trait of an element's type that has routes of its own in the gateway's API (docs/api.md), at /api/v1/NAME and
// below. NAME is the name of the element.
//
// The API has these routes whether the element is in the chain or not. If it is not, the answer is 409 and a sentence.
//
// Thread-safety: answers are made by the API's threads, while lanes run. Reads (GET) come one at a time; changes (POST)
// at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/element.h"

namespace sluice::engine {

struct ApiRequest {
  std::multimap<std::string, std::string> parameters = {};  // of a read
  std::string_view body = {};                               // of a change; it may contain a secret key
};

// 200 with JSON, or another status with a sentence.
struct ApiAnswer {
  int status = 200;
  std::string text;
};
inline ApiAnswer refused(int status, std::string why) {
  return {status, std::move(why)};
}
// Status for a wrong parameter or body; and for what the gateway cannot do.
inline constexpr int bad_request = 400, conflict = 409;

inline constexpr std::size_t usual_largest_body = 4096;

struct ApiRoute {
  std::string path;     // after /api/v1/NAME: "", "/sets/add"
  bool change = false;  // POST, else GET
  // Completes the sentence "the chain of this gateway has no ...: "NAME" is not in it".
  std::string what;
  std::function<ApiAnswer(Element& element, const ApiRequest& request)> answer;
  // Bytes of the body of a change over the unix socket. Over TCP it is usual_largest_body.
  std::size_t largest_body = usual_largest_body;
  bool often = false;             // changes come by the thousand, so they are logged at level debug
  bool waits_for_reload = false;  // a change waits while a reload runs, which replaces what it changes
};

class Api {
 public:
  static constexpr std::string_view trait_name = "api";
  virtual const std::vector<ApiRoute>& routes() const = 0;

 protected:
  ~Api() = default;
};

// The parameter `limit`: how many rows a list has at most.
inline constexpr std::uint32_t usual_rows = 100, most_rows = 1'000'000;
Expected<std::uint32_t> read_limit(const std::string& value);
// The Error for a parameter that is not one of `known`.
tl::unexpected<Error> unknown_parameter(const std::string& key, const std::vector<std::string>& known);

}  // namespace sluice::engine
