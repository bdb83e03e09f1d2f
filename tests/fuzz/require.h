// REQUIRE(condition): an invariant of a fuzz target; when it does not hold, the run ends with a finding.
// Unlike assert() it is there in every build type.
#pragma once

#include <cstdio>
#include <cstdlib>

#define REQUIRE(condition)                                                                   \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::fprintf(stderr, "%s:%d: invariant broken: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
