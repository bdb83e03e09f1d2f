// What the checks behind a content or a regular expression leave of its places: which of them have to be tried.
//
// A check that is found in several places is tried in the next one when the checks behind it fail, for these may hold
// from there. Often they cannot, and then a payload that has the first check in every second byte must not cost a
// search for each of them: `content:"a"; content:"rare"; distance:0;` fails from all places when it fails from the
// first, since behind later ones there is only less.
//
// Thread-safety: any thread. Cost: some ns a check, when rules are compiled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "match/rules/rule.h"

namespace sluice::match {

enum class Places : std::uint8_t {
  first,          // nothing behind it depends on where it is
  first_decides,  // of a content: what fails behind its first place fails behind all others
  each
};

// Of checks[i] in the order in which they are tried. What is no content nor regular expression has one place.
//
// The place matters to relative checks of the same buffer, up to the first one that moves "the previous match" by
// itself. These fail behind each later place as well: a content that may lie anywhere behind, an isdataat, and a
// regular expression that sees nothing in front of it (looks_ahead_only()). Not so a content `within` some bytes,
// anything negated, and what reads a number. Of a content the first place is the one with the most bytes behind it. Of
// a regular expression it need not be: /a.*b|b/ ends at the last b, and from the second place on at the first one.
Places places_of(std::span<const Check* const> checks, std::size_t i);

// Whether a match that the expression finds in a subject is one in each subject that ends likewise and begins before
// it: it has no anchor to the begin, word boundary, lookbehind, \G or verb. In doubt: no.
bool looks_ahead_only(const Pcre& pcre);

}  // namespace sluice::match
