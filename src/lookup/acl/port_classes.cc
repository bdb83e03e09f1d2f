#include "lookup/acl/port_classes.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lookup/acl/partition.h"

namespace sluice::lookup::acl {

namespace {

constexpr std::size_t words = 1U << 16;
constexpr std::size_t most_steps = 2'000'000'000;
using Members = std::vector<std::vector<std::uint32_t>>;

// Splits classes of `cells` by sets of cells, one after the other, then numbers what is left.
class Refinement {
 public:
  explicit Refinement(std::size_t cells) : state_(cells, 0) {}

  void begin_set() { ++set_; }
  void add(std::size_t cell) {
    const std::uint32_t old = state_[cell];
    if (split_by_[old] != set_) {
      split_by_[old] = set_;
      split_[old] = static_cast<std::uint32_t>(split_.size());
      split_.push_back(0);
      split_by_.push_back(0);
    }
    state_[cell] = split_[old];
  }
  // The class of each cell; answers how many there are.
  std::uint32_t finish(std::vector<std::uint32_t>& out) const {
    std::vector<std::uint32_t> number(split_.size(), 0);
    std::uint32_t count = 0;
    out.resize(state_.size());
    for (std::size_t i = 0; i < state_.size(); ++i) {
      std::uint32_t& at = number[state_[i]];
      at = at != 0 ? at : ++count;
      out[i] = at - 1;
    }
    return count;
  }

 private:
  std::vector<std::uint32_t> state_, split_{0};
  std::vector<std::size_t> split_by_{0};
  std::size_t set_ = 0;
};

// The port's class for each port.
std::vector<std::uint32_t> by_port(const Partition& partition) {
  std::vector<std::uint32_t> out(words);
  for (std::size_t i = 0; i < partition.starts.size(); ++i) {
    const std::size_t end = i + 1 < partition.starts.size() ? static_cast<std::size_t>(partition.starts[i + 1]) : words;
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(partition.starts[i]),
              out.begin() + static_cast<std::ptrdiff_t>(end), partition.class_of[i]);
  }
  return out;
}

Partition ports_of(std::span<const AclRule> rules, std::span<const RuleIndex> of, PortRange AclRule::*which) {
  std::vector<Interval> intervals;
  for (const RuleIndex rule : of) {
    intervals.push_back({(rules[rule].*which).first, (rules[rule].*which).last});
  }
  return {intervals, words - 1};
}

// Protocol and flags: what each distinct pair of masked bytes matches.
class Protocols {
 public:
  Protocols(std::span<const AclRule> rules, std::span<const RuleIndex> of) {
    for (const RuleIndex rule : of) {
      const MaskedByte& p = rules[rule].protocol;
      const MaskedByte& f = rules[rule].flags;
      kind_.push_back(static_cast<std::uint32_t>(
          kinds_.try_emplace({p.value, p.mask, f.value, f.mask}, kinds_.size()).first->second));
    }
  }
  std::size_t steps() const { return kinds_.size() * words; }
  std::uint32_t classify(std::vector<std::uint32_t>& out) {
    Refinement refinement(words);
    for (const auto& [kind, id] : kinds_) {
      refinement.begin_set();
      each(kind, [&](std::size_t cell) { refinement.add(cell); });
    }
    const std::uint32_t count = refinement.finish(out);
    covered_.resize(kinds_.size());
    for (const auto& [kind, id] : kinds_) {
      std::vector<bool> seen(count);
      each(kind, [&, id = id](std::size_t cell) {
        if (!seen[out[cell]]) {
          seen[out[cell]] = true;
          covered_[id].push_back(out[cell]);
        }
      });
    }
    return count;
  }
  std::span<const std::uint32_t> covered(std::size_t rule) const { return covered_[kind_[rule]]; }

 private:
  using Kind = std::tuple<std::uint8_t, std::uint8_t, std::uint8_t, std::uint8_t>;
  template <typename Visit>
  static void each(const Kind& kind, const Visit& visit) {
    const auto& [protocol, protocol_mask, flags, flags_mask] = kind;
    for (std::size_t cell = 0; cell < words; ++cell) {
      if ((cell >> 8 & protocol_mask) == protocol && (cell & flags_mask) == flags) {
        visit(cell);
      }
    }
  }

  std::map<Kind, std::size_t> kinds_;
  std::vector<std::uint32_t> kind_;  // by rule
  Members covered_;
};

// The classes of the cells a * columns + b, where rule i matches the cells of rows[i] and columns_of(i).
template <typename Rows, typename Columns>
std::uint32_t cross(std::size_t rules, std::size_t row_count, std::uint32_t columns, const Rows& rows_of,
                    const Columns& columns_of, std::vector<std::uint32_t>& out, Members& covered) {
  Refinement refinement(row_count * columns);
  const auto each = [&](std::size_t rule, const auto& visit) {
    for (const std::uint32_t row : rows_of(rule)) {
      for (const std::uint32_t column : columns_of(rule)) {
        visit(std::size_t{row} * columns + column);
      }
    }
  };
  for (std::size_t i = 0; i < rules; ++i) {
    refinement.begin_set();
    each(i, [&](std::size_t cell) { refinement.add(cell); });
  }
  const std::uint32_t count = refinement.finish(out);
  std::vector<std::size_t> seen(count, 0);
  covered.assign(rules, {});
  for (std::size_t i = 0; i < rules; ++i) {
    each(i, [&](std::size_t cell) {
      if (seen[out[cell]] != i + 1) {
        seen[out[cell]] = i + 1;
        covered[i].push_back(out[cell]);
      }
    });
  }
  return count;
}

}  // namespace

Expected<PortClasses> PortClasses::make(std::span<const AclRule> rules, std::span<const RuleIndex> of,
                                        std::size_t max_entries) {
  PortClasses made;
  const Partition source = ports_of(rules, of, &AclRule::source_port);
  const Partition destination = ports_of(rules, of, &AclRule::destination_port);
  Protocols protocols(rules, of);
  const std::size_t pair_entries = std::size_t{source.classes} * destination.classes;
  if (pair_entries > max_entries || pair_entries * of.size() > most_steps || protocols.steps() > most_steps) {
    return make_error("the rules have too many port ranges for a table of them");
  }
  made.source_ports = by_port(source);
  made.destination_ports = by_port(destination);
  made.destination_port_classes = destination.classes;
  made.protocol_classes = protocols.classify(made.protocol_flags);
  Members pairs_of;
  const std::uint32_t pair_count = cross(
      of.size(), source.classes, destination.classes, [&](std::size_t i) { return source.covered(i); },
      [&](std::size_t i) { return destination.covered(i); }, made.pairs, pairs_of);
  const std::size_t entries = std::size_t{pair_count} * made.protocol_classes;
  if (entries > max_entries || entries * of.size() > most_steps) {
    return make_error("the rules have too many combinations of ports and protocols for a table of them");
  }
  made.count = cross(
      of.size(), pair_count, made.protocol_classes,
      [&](std::size_t i) { return std::span<const std::uint32_t>(pairs_of[i]); },
      [&](std::size_t i) { return protocols.covered(i); }, made.classes, made.covered);
  return made;
}

}  // namespace sluice::lookup::acl
