// Parts of a rule that exclude each other, so that it could never hold. Such are a buffer of responses in a rule of
// what goes to the server, TCP flags in a rule of UDP, a content that is longer than its buffer may be, and the like.
// Each part may be right by itself. Not all that there are: a rule of which nothing is known loads. What variables say
// of addresses is who runs the rules', and no part of a rule: with a HOME_NET of IPv4, a rule of ICMPv6 to it loads.
//
// Thread-safety: any thread. Cost: some 10 ns for each part of the rule.
#pragma once

#include <string>

#include "match/rules/rule.h"

namespace sluice::match {

struct Contradiction {
  // "http_stat_code: it is of responses, and the flow to_server: it could never hold"; empty: none is known.
  std::string message;
  std::string reason;  // the same text for the same cause
};

Contradiction contradiction(const Rule& rule);

}  // namespace sluice::match
