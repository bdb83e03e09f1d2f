// Multi-pattern matching on the CPU, by Hyperscan: which patterns a payload holds.
//
// Exact on patterns (case included). Patterns of one byte are allowed; an empty one is an Error; one of no class is not
// searched for.
//
// Classes are searched for their own patterns: of 1,400 patterns UDP may need 40, and few patterns are found several
// times as fast. Classes that have nearly the same patterns share a database, so that compiling takes a few times as
// long as for all patterns at once, and not 32 times.
//
// Thread-safety: immutable once made; each thread has a Scratch of its own. Memory of the databases:
// database_bytes(). No allocation in match(). Cost: docs/inspect.md; compiling 20,000 patterns takes
// seconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "match/automaton/pattern.h"
#include "match/confirm/needle.h"

struct hs_database;
struct hs_scratch;

namespace sluice::match {

class CpuMatcher {
 public:
  enum class Mode : std::uint8_t {
    once,      // Hyperscan reports each pattern once
    slices,    // likewise; match() may be given a `from`, and that a search goes on
    every_end  // likewise, and Hyperscan reports each end: slower where a pattern is there many times
  };
  static Expected<std::unique_ptr<CpuMatcher>> create(std::span<const Pattern> patterns, Mode mode = Mode::once);
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
    // By pattern: the search that found it last, so that each is reported once.
    std::vector<std::uint32_t> found_in_;
    std::uint32_t search_ = 0;
    std::vector<std::uint32_t> before_;  // those that end before `from`, and may be there once more
    std::uint64_t failed_ = 0;
  };

  // Writes the patterns (by index) of class `klass` that the payload holds, each once, in no particular order, to
  // found[0 .. capacity); returns how many there are, which may be more than `capacity`. `from`: only those that end
  // behind that many bytes of the payload; not in Mode::once, and `capacity` is that of all patterns. `goes_on`: of a
  // search in slices, of which this is not the first one: what an earlier one found is not reported again; likewise.
  std::size_t match(Scratch& scratch, std::string_view payload, unsigned klass, std::uint32_t* found,
                    std::size_t capacity, std::size_t from = 0, bool goes_on = false) const;

  std::size_t database_bytes() const;
  // Bytes of the longest pattern of a class.
  std::size_t longest(unsigned klass) const { return longest_[klass]; }

 private:
  struct Database {
    hs_database* compiled = nullptr;
    ClassMask classes = 0;
  };
  CpuMatcher() = default;
  Expected<void> compile(std::span<const Pattern> patterns, Database& database) const;
  std::size_t look_again(Scratch& scratch, std::string_view payload, std::uint32_t* found, std::size_t capacity,
                         std::size_t from, std::size_t count) const;

  std::vector<Database> databases_;
  std::array<const hs_database*, max_classes> of_class_{};  // null: nothing is searched for
  std::array<std::size_t, max_classes> longest_{};          // patterns, by class
  std::vector<ClassMask> classes_;                          // by pattern
  std::vector<Needle> needles_;                             // by pattern, of Mode::slices
  Mode mode_ = Mode::once;
};

// Classes that are searched together: disjoint masks, of all that have patterns. No class of a group has much fewer
// patterns than its group.
std::vector<ClassMask> class_groups(std::span<const Pattern> patterns);

}  // namespace sluice::match
