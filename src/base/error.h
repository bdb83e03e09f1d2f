// Errors of the control path: values with one sentence a user can act on. The packet path uses packet/reason.h instead.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace sluice {

// One clear line: what is wrong, where, and what to do. `message` has no trailing newline or full stop.
struct Error {
  std::string message;
};

template <typename T>
using Expected = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> make_error(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}

}  // namespace sluice
