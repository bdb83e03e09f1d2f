// The GPU's classifier as an array of words, built on the host from a list of rules. Address classes are
// cross-producted as in recursive flow classification (P. Gupta, N. McKeown, Packet Classification on Multiple Fields,
// SIGCOMM 1999), but within four groups of rules (B. Vamanan, G. Voskuilen, T. N. Vijaykumar, EffiCuts, SIGCOMM 2010),
// and end in short lists.
//
// A lookup, and what lies where (FamilyTables):
//   1. Each address goes through a trie (2^16 slots, then blocks of 256 for 8 bits each) to its address class.
//   2. For each of the four groups (source wide or not, destination wide or not) the two classes give a cell. Cells are
//      an array of two dimensions; where that had more than `most_flat_cells`, only its pages of 32 cells that have
//      rules are kept, and a directory says where.
//   3. A cell says: nothing; or a list of records, the rules of the group that these addresses match, in order, each
//      with what it wants of ports, protocol and flags; or, where that list were long, a row of a table. A list with a
//      rule that asks for tags stays one, however long; what it asks for is in a table by rule, read for it alone.
//   4. A row is indexed by the class of (source port, destination port, protocol and flags), for which three tables of
//      2^16 entries and two cross-product tables are read once for all groups.
//   The lowest index that any group found wins.
//
// Behind these, for kernels that drop what is denied: a bit for each rule, whether its action is to deny.
//
// What no packet can reach is left out: a rule behind one of its list that matches all that it does.
//
// Limits: max_rules; the words of both families, `max_bytes` at most (an Error says how much there would be). Address
// classes, or a 32nd of their product, multiply within a group, which is why the bound of wide and narrow is tried at
// several lengths and the one with the smallest tables is taken. Cost: docs/acl.md. Thread-safety: build() has no
// state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/acl/tables_view.h"

namespace sluice::lookup::acl {

struct Tables {
  struct Options {
    std::size_t max_bytes = 512U << 20;
    std::size_t most_flat_cells = 4U << 20;  // of a group
  };

  std::vector<std::uint32_t> words;
  FamilyTables v4;
  FamilyTables v6;
  std::uint32_t denied = 0;  // as in ClassifierView

  // What a family came to: for docs, logs and benches.
  struct Shape {
    std::size_t rules = 0;
    unsigned wide_bits = 0;  // a prefix of up to so many bits is wide
    std::size_t source_classes = 0, destination_classes = 0;
    std::size_t trie_words = 0;
    std::size_t cells = 0;       // of all groups
    std::size_t cell_words = 0;  // what they take, pages and their directories included
    std::size_t paged_groups = 0;
    std::size_t records = 0;
    std::size_t longest_list = 0;
    std::size_t rows = 0, port_classes = 0;
  };
  Shape shape4;
  Shape shape6;

  std::size_t bytes() const { return words.size() * sizeof(std::uint32_t); }

  // `rules` in match order; they are not kept.
  static Expected<Tables> build(std::span<const AclRule> rules, const Options& options);
  static Expected<Tables> build(std::span<const AclRule> rules) { return build(rules, Options()); }
};

}  // namespace sluice::lookup::acl
