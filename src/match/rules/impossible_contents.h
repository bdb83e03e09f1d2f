// Contents that a rule's buffers can never hold: longer, with what stands before them, than the rule lets the buffer
// be, or with bytes that the buffer never has (buffer_bytes.h).
//
// Thread-safety: any thread. Cost: below a microsecond for a rule.
#pragma once

#include <string>

#include "match/rules/rule.h"

namespace sluice::match {

struct Impossible {
  std::string
      message;  // "urilen: 4 bytes at most, and what the rule looks for in http_uri needs 7"; empty: none is known
  std::string reason;  // the same text for the same cause
};

Impossible impossible_content(const Rule& rule);

}  // namespace sluice::match
