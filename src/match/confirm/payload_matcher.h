// Whether all payload checks of a rule hold: contents with their places, regular expressions, numbers in the payload.
//
// Checks of a buffer follow one another: "the previous match" is the end of what the check before it in the same buffer
// found. A content or regular expression that is found in several places is tried in each of them for as long as the
// relative checks behind it fail, as Suricata does (detect-engine-content-inspection.c). The exception is where its
// first place decides for all of them (later_checks.h). Places and numbers beyond the buffer make a check fail.
//
// A regular expression's subject is the buffer, or what follows the previous match (/R). Tried again, it is searched
// for in the same subject, from behind the begin of what was found. ^, \A and /A hold at the subject's beginning alone.
// \b and lookbehind see what is before, but nothing in front of the subject; \G is where the search goes on.
//
// Bounded: at most `most_steps` places are tried for a packet; what needs more is `given_up`. Regular expressions have
// PCRE2's match limit at 3,500, as Suricata's default, and with the flag O at ten times that. Suricata lifts it to
// PCRE2's own, 10,000,000, for those: an attacker's payload would hold a lane for 100 ms with one prefilter match,
// where 35,000 take some 0.3 ms. A check whose expression exceeds its limit, or ends in another error, fails, negated
// or not, and the rule is `given_up` unless it holds otherwise. Within a `deadline` the clock is read every 16 KiB of
// search, 64 places or regular expression: one of these is the most that it is passed by. base64_decode looks at 65,535
// bytes at most, as Suricata's.
//
// Thread-safety: a PayloadMatcher is immutable; each thread has a Scratch. No allocation in matches() but by PCRE2 for
// patterns it has no JIT code for. Cost: that of needle.h and PCRE2 (JIT).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "match/confirm/buffers.h"
#include "match/confirm/later_checks.h"
#include "match/confirm/needle.h"
#include "match/rules/pcre.h"
#include "match/rules/rule.h"

struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace sluice::match {

enum class PayloadVerdict : std::uint8_t { no, yes, given_up };

class PayloadMatcher {
 public:
  static constexpr unsigned most_steps = 20'000;
  static constexpr std::uint32_t pcre_match_limit = 3'500, larger_pcre_match_limit = 10 * pcre_match_limit;
  static constexpr std::size_t most_base64 = 65'535;   // coded
  static constexpr std::size_t most_variables = 1000;  // no rule that is read has more (rules/draft.cc)
  static constexpr std::uint64_t unlimited = ~std::uint64_t{0};

  class Scratch {
   public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

   private:
    friend class PayloadMatcher;
    friend struct PayloadSearch;
    pcre2_real_match_data_8* found_ = nullptr;
    pcre2_real_match_context_8* limited_ = nullptr;
    pcre2_real_match_context_8* larger_limit_ = nullptr;
    std::vector<std::uint64_t> variables_;
    std::string decoded_;  // Buffer::base64_data
  };

  // The rule need not live longer than the call. An Error names the check that cannot be compiled.
  static Expected<PayloadMatcher> make(const Rule& rule);

  // `buffers`: base64_data is set here, where the rule makes it. `deadline`: of the time-stamp counter; what has not
  // come to its end by then is given up.
  PayloadVerdict matches(const Buffers& buffers, Scratch& scratch, std::uint64_t deadline = unlimited) const;
  bool empty() const { return steps_.empty(); }

  // Of HTTP bodies the rule asks for contents alone, which are to be there: what does not hold for a body's beginning
  // holds for more of it only if one of these ends in what has come behind it.
  bool asks_bodies_for_contents() const;
  // One of the contents that bodies are asked for ends in `body` behind its first `before` bytes.
  bool ends_behind(std::string_view body, std::size_t before) const;

 private:
  friend struct PayloadSearch;
  struct Step {
    Check check;
    Buffer buffer;
    Places places = Places::first;  // of a content or regular expression, those that are tried
    Needle needle;                  // of a content
    PcreCode code;                  // of a regular expression
  };
  std::vector<Step> steps_;
  std::size_t variables_ = 0;
};

}  // namespace sluice::match
