// Bytes that a buffer never has, as the parser of HTTP fills it (flow/http/: what is taken off lines and values).
//
// Thread-safety: any thread, constant data. Cost: a look into a small table.
#pragma once

#include <string_view>

#include "match/rules/buffer.h"

namespace sluice::match {

// Empty: nothing is known of it. What is nowhere is neither first nor last, whether these name it or not.
struct BytesNever {
  std::string_view anywhere;
  std::string_view first;
  std::string_view last;
};

BytesNever bytes_never_in(Buffer buffer);

}  // namespace sluice::match
