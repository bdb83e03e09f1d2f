// What every kind of payload check has: the buffer that it looks at, and whether it begins at the previous match.
#pragma once

#include <variant>

#include "match/rules/rule.h"

namespace sluice::match {

inline Buffer buffer_of(const Check& check) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.number; }) {
          return one.number.buffer;
        } else {
          return one.buffer;
        }
      },
      check);
}

inline bool is_relative(const Check& check) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.number; }) {
          return one.number.relative;
        } else if constexpr (requires { one.place; }) {
          return one.place.relative;
        } else if constexpr (requires { one.relative; }) {
          return one.relative;
        } else {
          return false;
        }
      },
      check);
}

}  // namespace sluice::match
