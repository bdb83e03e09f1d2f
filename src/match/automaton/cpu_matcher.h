// Multi-pattern matching on the CPU, by Hyperscan: which patterns a payload holds.
//
// Exact on patterns (case included). Patterns of one byte are allowed; an empty one is an Error.
//
// Thread-safety: immutable once made; each thread has a Scratch of its own. Memory of the database:
// database_bytes(). No allocation in match(). Cost: docs/inspect.md; compiling 20,000 patterns takes
// seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "match/automaton/pattern.h"

struct hs_database;
struct hs_scratch;

namespace sluice::match {

class CpuMatcher {
 public:
  // `every_end`: for match() with a `from`; slower where a pattern is there many times.
  static Expected<std::unique_ptr<CpuMatcher>> create(std::span<const Pattern> patterns, bool every_end = false);
  ~CpuMatcher();
  CpuMatcher(const CpuMatcher&) = delete;
  CpuMatcher& operator=(const CpuMatcher&) = delete;

  class Scratch {
   public:
    explicit Scratch(const CpuMatcher& matcher);
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    // Searches by it that Hyperscan refused, as of a matcher that it was not made for: they have found nothing.
    std::uint64_t failed() const { return failed_; }

   private:
    friend class CpuMatcher;
    hs_scratch* scratch_ = nullptr;
    // By pattern: the search that found it last, so that each is told once.
    std::vector<std::uint32_t> found_in_;
    std::uint32_t search_ = 0;
    std::uint64_t failed_ = 0;
  };

  // Writes the patterns (by index) of class `klass` that the payload holds, each once, in no particular order, to
  // found[0 .. room); returns how many there are, which may be more than `room`. `from`: only those that end behind
  // that many bytes of the payload; the matcher was made for every_end, and `room` is that of all patterns. `goes_on`:
  // of a search in slices, of which this is not the first one: what an earlier one found is not told again; likewise.
  std::size_t match(Scratch& scratch, std::string_view payload, unsigned klass, std::uint32_t* found, std::size_t room,
                    std::size_t from = 0, bool goes_on = false) const;

  std::size_t database_bytes() const;

 private:
  CpuMatcher() = default;
  hs_database* database_ = nullptr;
  std::vector<ClassMask> classes_;
  bool every_end_ = false;
};

}  // namespace sluice::match
