#include "lookup/acl/tables.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "lookup/acl/partition.h"
#include "lookup/acl/port_classes.h"
#include "lookup/acl/rule_groups.h"
#include "lookup/acl/rule_lists.h"

namespace sluice::lookup::acl {

namespace {

constexpr std::size_t word = sizeof(std::uint32_t);
constexpr unsigned trie_root_bits = 16;
constexpr unsigned trie_block_bits = 8;
// Records follow one another: up to eight are two 64-byte halves of a line.
constexpr std::size_t longest_list = 8;
constexpr std::size_t most_steps = 1'000'000'000;  // about ten seconds
constexpr std::size_t most_port_entries = 4U << 20;
// Where wide ends is tried here. IPv6: all of the Internet begins with the same three bits.
constexpr std::array<unsigned, 4> wide4 = {2, 8, 12, 16};
constexpr std::array<unsigned, 4> wide6 = {3, 16, 32, 48};

// The classes of all groups together: of each segment, a number for the classes that it has in the four groups.
struct Joint {
  Joint(const RuleGroups& groups, std::optional<Partition> RuleGroup::*dimension) {
    std::array<const Partition*, group_count> part;
    for (unsigned g = 0; g < group_count; ++g) {
      part[g] = &*(groups.group[g].*dimension);
      starts.insert(starts.end(), part[g]->starts.begin(), part[g]->starts.end());
    }
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    std::array<std::size_t, group_count> at{};
    std::map<std::array<std::uint32_t, group_count>, std::uint32_t> known;
    for (const Number start : starts) {
      std::array<std::uint32_t, group_count> in{};
      for (unsigned g = 0; g < group_count; ++g) {
        while (at[g] + 1 < part[g]->starts.size() && part[g]->starts[at[g] + 1] <= start) {
          ++at[g];
        }
        in[g] = part[g]->class_of[at[g]];
      }
      const auto [entry, is_new] = known.try_emplace(in, static_cast<std::uint32_t>(classes.size()));
      if (is_new) {
        classes.push_back(in);
      }
      class_of.push_back(entry->second);
    }
  }

  std::vector<Number> starts;
  std::vector<std::uint32_t> class_of;                          // by segment
  std::vector<std::array<std::uint32_t, group_count>> classes;  // in each group
};

// Slots by the first 16 bits, then blocks of 256 for 8 bits each, only where a segment begins inside a slot.
class TrieWriter {
 public:
  TrieWriter(const Joint& joint, unsigned bits) : joint_(joint), slots_(std::size_t{1} << trie_root_bits) {
    fill(0, slots_.size(), 0, bits - trie_root_bits);
  }
  std::vector<std::uint32_t> take() { return std::move(slots_); }

 private:
  // Segments are met in ascending order, so one place in them is enough.
  void fill(std::size_t base, std::size_t count, Number address, unsigned bits_below) {
    for (std::size_t i = 0; i < count; ++i, address += Number{1} << bits_below) {
      while (at_ + 1 < joint_.starts.size() && joint_.starts[at_ + 1] <= address) {
        ++at_;
      }
      const Number last = address + ((Number{1} << bits_below) - 1);
      if (at_ + 1 == joint_.starts.size() || joint_.starts[at_ + 1] > last) {
        slots_[base + i] = joint_.class_of[at_];
        continue;
      }
      const std::size_t block = slots_.size();
      slots_.resize(block + (std::size_t{1} << trie_block_bits));
      slots_[base + i] = FamilyTables::child_flag | static_cast<std::uint32_t>(block >> trie_block_bits);
      fill(block, std::size_t{1} << trie_block_bits, address, bits_below - trie_block_bits);
    }
  }

  const Joint& joint_;
  std::vector<std::uint32_t> slots_;
  std::size_t at_ = 0;
};

Record record_of(const AclRule& rule, RuleIndex index) {
  const auto range = [](PortRange r) {
    return static_cast<std::uint32_t>(r.first) | static_cast<std::uint32_t>(r.last) << 16;
  };
  return {range(rule.source_port), range(rule.destination_port),
          rule.protocol.value | static_cast<std::uint32_t>(rule.protocol.mask) << 8 |
              static_cast<std::uint32_t>(rule.flags.value) << 16 | static_cast<std::uint32_t>(rule.flags.mask) << 24,
          index | (rule.tags.mask != 0 ? FamilyTables::tags_flag : 0)};
}
static_assert(max_rules <= FamilyTables::tags_flag);

bool asks_for_tags(const AclRule& rule) {
  return rule.tags.mask != 0;
}

// What cells lead to: lists of records, and rows for the lists that are too long.
struct Leaves {
  std::vector<Record> records{1};  // a cell of 0 is empty, so none is at 0
  std::vector<RuleLists::Id> long_lists;
  std::vector<std::uint32_t> cell;  // by list: what leads to it; 0: nothing does
  std::size_t longest = 0;

  std::uint32_t add_records(std::span<const AclRule> rules, const std::vector<RuleIndex>& list) {
    const auto at = static_cast<std::uint32_t>(records.size());
    for (const RuleIndex rule : list) {
      records.push_back(record_of(rules[rule], rule));
    }
    records.back().rule |= FamilyTables::last_flag;
    longest = std::max(longest, list.size());
    return at;
  }
};

struct Rows {
  PortClasses ports;
  std::vector<std::uint32_t> words;
};

// The rows of the long lists; nothing where port classes would be too many: then they are lists of records, too.
std::optional<Rows> make_rows(std::span<const AclRule> rules, const RuleLists& lists, const Leaves& leaves,
                              std::size_t max_words) {
  std::vector<RuleIndex> of;
  for (const RuleLists::Id id : leaves.long_lists) {
    const std::vector<RuleIndex> list = lists.rules(id);
    of.insert(of.end(), list.begin(), list.end());
  }
  std::sort(of.begin(), of.end());
  of.erase(std::unique(of.begin(), of.end()), of.end());
  auto ports = PortClasses::make(rules, of, most_port_entries);
  if (!ports || ports->count * leaves.long_lists.size() > max_words) {
    return std::nullopt;
  }
  Rows rows{std::move(*ports), {}};
  rows.words.assign(rows.ports.count * leaves.long_lists.size(), no_match);
  for (std::size_t row = 0; row < leaves.long_lists.size(); ++row) {
    const std::vector<RuleIndex> list = lists.rules(leaves.long_lists[row]);
    for (auto rule = list.rbegin(); rule != list.rend(); ++rule) {  // the first one is written last
      const auto at = std::lower_bound(of.begin(), of.end(), *rule) - of.begin();
      for (const std::uint32_t port_class : rows.ports.covered[static_cast<std::size_t>(at)]) {
        rows.words[row * rows.ports.count + port_class] = *rule;
      }
    }
  }
  return rows;
}

// One family's tables: found out, then written behind what `words` has.
class FamilyBuild {
 public:
  FamilyBuild(std::span<const AclRule> rules, int family, const Tables::Options& options)
      : rules_(rules),
        family_(family),
        max_words_(options.max_bytes / word),
        most_flat_(options.most_flat_cells),
        any_tags_(std::any_of(rules.begin(), rules.end(), asks_for_tags)),
        lists_(rules) {}

  Expected<void> run() {
    shape.rules = static_cast<std::size_t>(
        std::count_if(rules_.begin(), rules_.end(), [this](const AclRule& rule) { return rule.is_of(family_); }));
    if (shape.rules == 0) {
      return {};
    }
    if (auto ok = choose_groups(); !ok) {
      return ok;
    }
    if (!groups_->fill(lists_, max_words_)) {
      return too_large(max_words_);
    }
    make_leaves();
    source_.emplace(*groups_, &RuleGroup::source);
    destination_.emplace(*groups_, &RuleGroup::destination);
    source_trie_ = TrieWriter(*source_, family_ == 4 ? 32 : 128).take();
    destination_trie_ = TrieWriter(*destination_, family_ == 4 ? 32 : 128).take();
    describe();
    return {};
  }

  std::size_t words_needed() const { return needed_; }
  FamilyTables write(std::vector<std::uint32_t>& words) const;
  Tables::Shape shape;

 private:
  Expected<void> choose_groups();
  tl::unexpected<Error> too_large(std::size_t least_words) const;
  bool is_flat(const RuleGroup& group) const { return group.cell_count() <= most_flat_; }
  void write_cells(FamilyTables& out, std::vector<std::uint32_t>& words) const;
  void make_leaves();
  bool may_be_row(RuleLists::Id id) const;
  void describe();

  std::span<const AclRule> rules_;
  int family_;
  std::size_t max_words_;
  std::size_t most_flat_;
  bool any_tags_;
  RuleLists lists_;
  std::optional<RuleGroups> groups_;
  Leaves leaves_;
  std::optional<Rows> rows_;
  std::optional<Joint> source_, destination_;
  std::vector<std::uint32_t> source_trie_, destination_trie_;
  std::size_t needed_ = 0;
};

tl::unexpected<Error> FamilyBuild::too_large(std::size_t least_words) const {
  return make_error("the GPU's tables for " + std::to_string(shape.rules) + " IPv" + std::to_string(family_) +
                    " ACL rules would take more than " + std::to_string(least_words * word >> 20) +
                    " MB, and the limit is " + std::to_string(max_words_ * word >> 20) +
                    " MB: their source and destination prefixes combine too much; use fewer prefixes of middle "
                    "length, or the CPU");
}

Expected<void> FamilyBuild::choose_groups() {
  const auto cost = [this](const RuleGroups& groups) { return groups.least_words(most_flat_) + groups.steps(); };
  for (const unsigned wide : family_ == 4 ? wide4 : wide6) {
    RuleGroups tried(rules_, family_, wide);
    if (!groups_ || cost(tried) < cost(*groups_)) {
      groups_.emplace(std::move(tried));
    }
  }
  if (groups_->least_words(most_flat_) > max_words_) {
    return too_large(groups_->least_words(most_flat_));
  }
  if (groups_->steps() > most_steps) {
    return make_error("the " + std::to_string(shape.rules) + " IPv" + std::to_string(family_) +
                      " ACL rules overlap too much for the GPU's tables; use fewer wide prefixes, or the CPU");
  }
  return {};
}

// A row is found without the tags.
bool FamilyBuild::may_be_row(RuleLists::Id id) const {
  if (lists_.length(id) <= longest_list) return false;
  if (!any_tags_) return true;
  const std::vector<RuleIndex> list = lists_.rules(id);
  return std::none_of(list.begin(), list.end(), [this](RuleIndex rule) { return asks_for_tags(rules_[rule]); });
}

void FamilyBuild::make_leaves() {
  leaves_.cell.assign(lists_.size(), 0);
  for (const RuleGroup& group : groups_->group) {
    for (const RuleLists::Id id : group.cells) {
      if (id == RuleLists::empty || leaves_.cell[id] != 0) {
        continue;
      }
      if (may_be_row(id)) {
        leaves_.cell[id] = FamilyTables::row_flag | static_cast<std::uint32_t>(leaves_.long_lists.size());
        leaves_.long_lists.push_back(id);
      } else {
        leaves_.cell[id] = leaves_.add_records(rules_, lists_.rules(id));
      }
    }
  }
  if (leaves_.long_lists.empty()) {
    return;
  }
  rows_ = make_rows(rules_, lists_, leaves_, max_words_ / 2);
  if (!rows_) {
    for (const RuleLists::Id id : leaves_.long_lists) {
      leaves_.cell[id] = leaves_.add_records(rules_, lists_.rules(id));
    }
    leaves_.long_lists.clear();
  }
}

void FamilyBuild::describe() {
  shape.wide_bits = groups_->wide_bits;
  shape.source_classes = source_->classes.size();
  shape.destination_classes = destination_->classes.size();
  shape.trie_words = source_trie_.size() + destination_trie_.size();
  for (const RuleGroup& group : groups_->group) {
    shape.cells += group.cell_count();
    shape.paged_groups += is_flat(group) ? 0 : 1;
    // One page more, since pages begin at a multiple of their size.
    shape.cell_words += is_flat(group) ? group.cell_count() : group.pages.size() + group.cells.size() + page_cells;
  }
  shape.records = leaves_.records.size() - 1;
  shape.longest_list = leaves_.longest;
  shape.rows = leaves_.long_lists.size();
  needed_ = shape.trie_words + shape.cell_words + leaves_.records.size() * (sizeof(Record) / word) +
            (source_->classes.size() + destination_->classes.size()) * group_count;
  if (rows_) {
    shape.port_classes = rows_->ports.count;
    needed_ += 3U << 16;
    needed_ += rows_->ports.pairs.size() + rows_->ports.classes.size() + rows_->words.size();
  }
}

std::uint32_t append(std::vector<std::uint32_t>& words, const std::vector<std::uint32_t>& part) {
  words.resize((words.size() + 3) / 4 * 4);
  const auto at = static_cast<std::uint32_t>(words.size());
  words.insert(words.end(), part.begin(), part.end());
  return at;
}

// Cells of flat groups and pages of the others in one array; rows and columns that lead there.
void FamilyBuild::write_cells(FamilyTables& out, std::vector<std::uint32_t>& words) const {
  std::vector<std::uint32_t> cells;
  std::vector<std::uint32_t> pages;
  std::array<std::uint32_t, group_count> first{};
  std::array<std::uint32_t, group_count> row_words{};
  for (unsigned g = 0; g < group_count; ++g) {
    const RuleGroup& group = groups_->group[g];
    if (group.rules.empty()) {
      continue;
    }
    out.groups |= 1U << g;
    if (is_flat(group)) {
      first[g] = static_cast<std::uint32_t>(cells.size());
      row_words[g] = group.destination->classes;
      for (std::size_t s = 0; s < group.source->classes; ++s) {
        for (std::size_t d = 0; d < group.destination->classes; ++d) {
          cells.push_back(leaves_.cell[group.at(s, d)]);
        }
      }
      continue;
    }
    out.paged |= 1U << g;
    cells.resize((cells.size() + page_cells - 1) / page_cells * page_cells);
    const auto first_page = static_cast<std::uint32_t>(cells.size() / page_cells);
    first[g] = static_cast<std::uint32_t>(pages.size());
    row_words[g] = static_cast<std::uint32_t>(group.pages_of_row());
    for (const std::uint32_t page : group.pages) {
      pages.push_back(first_page + page);
    }
    for (const RuleLists::Id id : group.cells) {
      cells.push_back(leaves_.cell[id]);
    }
  }
  std::vector<std::uint32_t> rows;
  for (const auto& in : source_->classes) {
    for (unsigned g = 0; g < group_count; ++g) {
      rows.push_back(first[g] + in[g] * row_words[g]);
    }
  }
  std::vector<std::uint32_t> columns;
  for (const auto& in : destination_->classes) {
    columns.insert(columns.end(), in.begin(), in.end());
  }
  out.source_rows = append(words, rows);
  out.destination_columns = append(words, columns);
  out.pages = append(words, pages);
  out.cells = append(words, cells);
}

FamilyTables FamilyBuild::write(std::vector<std::uint32_t>& words) const {
  FamilyTables out;
  if (shape.rules == 0) {
    return out;
  }
  out.source_trie = append(words, source_trie_);
  out.destination_trie = append(words, destination_trie_);
  write_cells(out, words);
  std::vector<std::uint32_t> records;
  for (const Record& r : leaves_.records) {
    records.insert(records.end(), {r.source_port, r.destination_port, r.protocol_flags, r.rule});
  }
  out.records = append(words, records);
  if (rows_) {
    const PortClasses& ports = rows_->ports;
    out.source_ports = append(words, ports.source_ports);
    out.destination_ports = append(words, ports.destination_ports);
    out.protocol_flags = append(words, ports.protocol_flags);
    out.port_pairs = append(words, ports.pairs);
    out.port_classes = append(words, ports.classes);
    out.rows = append(words, rows_->words);
    out.destination_port_classes = ports.destination_port_classes;
    out.protocol_classes = ports.protocol_classes;
    out.port_class_count = ports.count;
  }
  return out;
}

// Nothing where no rule asks for any.
std::vector<std::uint32_t> tag_words(std::span<const AclRule> rules) {
  if (std::none_of(rules.begin(), rules.end(), asks_for_tags)) return {};
  std::vector<std::uint32_t> words;
  words.reserve(rules.size());
  for (const AclRule& rule : rules) words.push_back(rule.tags.value | static_cast<std::uint32_t>(rule.tags.mask) << 16);
  return words;
}

std::vector<std::uint32_t> denied_bits(std::span<const AclRule> rules) {
  std::vector<std::uint32_t> bits((rules.size() + 31) / 32);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (drops(rules[i].action.kind)) bits[i / 32] |= 1U << i % 32;
  }
  return bits;
}

}  // namespace

Expected<Tables> Tables::build(std::span<const AclRule> rules, const Options& options) {
  if (auto good = check(rules); !good) {
    return tl::unexpected(good.error());
  }
  FamilyBuild v4(rules, 4, options);
  FamilyBuild v6(rules, 6, options);
  for (FamilyBuild* family : {&v4, &v6}) {
    if (auto ok = family->run(); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  const std::vector<std::uint32_t> denied = denied_bits(rules);
  const std::vector<std::uint32_t> tags = tag_words(rules);
  const std::size_t needed = (v4.words_needed() + v6.words_needed() + denied.size() + tags.size()) * word;
  if (needed > options.max_bytes) {
    return make_error("the GPU's tables for " + std::to_string(rules.size()) + " ACL rules take " +
                      std::to_string(needed >> 20) + " MB, and the limit is " +
                      std::to_string(options.max_bytes >> 20) + " MB; use fewer rules, or the CPU");
  }
  Tables made;
  made.words.reserve(needed / word + 64);
  made.v4 = v4.write(made.words);
  made.v6 = v6.write(made.words);
  made.denied = append(made.words, denied);
  made.v4.tags = made.v6.tags = append(made.words, tags);
  made.shape4 = v4.shape;
  made.shape6 = v6.shape;
  return made;
}

}  // namespace sluice::lookup::acl
