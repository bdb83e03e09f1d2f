#include "match/rules/rule_order.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace sluice::match {
namespace {

bool is_condition(const Flowbits& bits) {
  return bits.operation == Flowbits::Operation::isset || bits.operation == Flowbits::Operation::isnotset;
}

// As Suricata's default action-order.
unsigned order_of(Action action) {
  switch (action) {
    case Action::pass:
      return 0;
    case Action::drop:
      return 1;
    case Action::reject:
      return 2;
    case Action::alert:
      return 3;
  }
  return 4;
}

// Rules and flowbits as the nodes of a graph: from a rule to each flowbit that it changes, and from that to each rule
// that asks for it. A flowbit's node stands behind those of the rules.
class BitGraph {
 public:
  BitGraph(std::span<const Rule> rules, const std::vector<std::uint32_t>& of) : next_(rules.size()) {
    for (const std::uint32_t r : of) {
      for (const Flowbits& bits : rules[r].flowbits) {
        for (const std::string& name : bits.names) {
          const auto [at, is_new] = nodes_.try_emplace(name, static_cast<std::uint32_t>(next_.size()));
          if (is_new) next_.emplace_back();
          is_condition(bits) ? next_[at->second].push_back(r) : next_[r].push_back(at->second);
        }
      }
    }
  }

  // By rule: how many groups of nodes, each of which reaches all others of its group, lie before it at most. Tarjan's
  // strongly connected components (1972), without recursion; it ends them in the reverse of a topological order.
  std::vector<std::uint32_t> levels(const std::vector<std::uint32_t>& of) {
    const std::size_t n = next_.size();
    index_.assign(n, 0);
    low_.assign(n, 0);
    group_.assign(n, none);
    for (const std::uint32_t r : of) {
      if (index_[r] == 0) visit(r);
    }
    std::vector<std::uint32_t> level(groups_.size(), 0);
    for (std::size_t g = groups_.size(); g-- > 0;) {  // before those that it leads to
      for (const std::uint32_t node : groups_[g]) {
        for (const std::uint32_t to : next_[node]) {
          if (group_[to] != g) level[group_[to]] = std::max(level[group_[to]], level[g] + 1);
        }
      }
    }
    std::vector<std::uint32_t> by_node(n, 0);
    for (std::size_t node = 0; node < n; ++node) by_node[node] = group_[node] == none ? 0 : level[group_[node]];
    return by_node;
  }

 private:
  static constexpr std::uint32_t none = 0xffffffff;

  void enter(std::uint32_t node) {
    index_[node] = low_[node] = ++count_;
    open_.push_back(node);
    path_.emplace_back(node, 0);
  }

  void visit(std::uint32_t root) {
    enter(root);
    while (!path_.empty()) {
      const auto [node, at] = path_.back();
      if (at < next_[node].size()) {
        ++path_.back().second;
        const std::uint32_t to = next_[node][at];
        if (index_[to] == 0) {
          enter(to);
        } else if (group_[to] == none) {
          low_[node] = std::min(low_[node], index_[to]);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) low_[path_.back().first] = std::min(low_[path_.back().first], low_[node]);
      if (low_[node] == index_[node]) close(node);
    }
  }

  void close(std::uint32_t node) {
    groups_.emplace_back();
    for (std::uint32_t last = none; last != node;) {
      last = open_.back();
      open_.pop_back();
      group_[last] = static_cast<std::uint32_t>(groups_.size() - 1);
      groups_.back().push_back(last);
    }
  }

  std::vector<std::vector<std::uint32_t>> next_;
  std::unordered_map<std::string_view, std::uint32_t> nodes_;
  std::vector<std::uint32_t> index_, low_, group_;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> open_;
  std::vector<std::pair<std::uint32_t, std::size_t>> path_;
};

// A message's parts: of which of them a rule's flowbits may be set, by name.
using LastByName = std::unordered_map<std::string_view, Point>;

void widen(const Rule& rule, RulePoints::OfMessage& of, LastByName& set_at, bool& changed) {
  for (const Flowbits& bits : rule.flowbits) {
    if (!is_condition(bits)) continue;
    for (const std::string& name : bits.names) {
      const auto at = set_at.find(name);
      if (at == set_at.end() || at->second <= of.last) continue;
      of.last = at->second;
      changed = true;
    }
  }
  for (const Flowbits& bits : rule.flowbits) {
    if (is_condition(bits)) continue;
    for (const std::string& name : bits.names) {
      const auto [at, is_new] = set_at.try_emplace(name, of.last);
      if (!is_new && at->second >= of.last) continue;
      at->second = of.last;
      changed = true;
    }
  }
}

// Rules of one kind of message that change a flowbit.
struct Change {
  std::uint32_t rule;
  Point at;        // the last that it is inspected at
  unsigned order;  // order_of() its action
  bool clears;
};
using ChangesByName = std::unordered_map<std::string_view, std::vector<Change>>;

bool clears(const Flowbits& bits) {
  return bits.operation == Flowbits::Operation::unset || bits.operation == Flowbits::Operation::toggle;
}

// Whether what the rule does with its flowbits depends on what another part of the message does with them: it asks that
// one is not set which a later part may set, or that one is set which a later part may clear; or it changes one, and
// another part clears it, or sets what this clears.
bool depends_on_parts(const Rule& rule, std::uint32_t number, Point at, const ChangesByName& changes) {
  const auto depends = [&](const Flowbits& bits, const Change& other) {
    if (other.rule == number || other.order > order_of(rule.action)) return false;
    if (bits.operation == Flowbits::Operation::isnotset) return other.at > at;
    if (bits.operation == Flowbits::Operation::isset) return other.clears && other.at > at;
    return other.at != at && (clears(bits) || other.clears);
  };
  return std::ranges::any_of(rule.flowbits, [&](const Flowbits& bits) {
    return std::ranges::any_of(bits.names, [&](const std::string& name) {
      const auto found = changes.find(name);
      return found != changes.end() &&
             std::ranges::any_of(found->second, [&](const Change& other) { return depends(bits, other); });
    });
  });
}

bool names_any(const Rule& rule, const std::unordered_set<std::string_view>& names) {
  return std::ranges::any_of(rule.flowbits, [&](const Flowbits& bits) {
    return std::ranges::any_of(bits.names, [&](const std::string& name) { return names.contains(name); });
  });
}

// And those that ask for or change what such a rule changes.
void find_waiting(std::span<const Rule> rules, std::vector<RulePoints>& points) {
  std::array<ChangesByName, 2> changes;  // of requests, of responses
  const auto kind_of = [](const RulePoints::OfMessage& of) { return is_of_response(of.first) ? 1 : 0; };
  const auto each = [&](auto use) {
    for (std::uint32_t r = 0; r < rules.size(); ++r) {
      if (points[r].of.first == Point::packet || rules[r].flowbits.empty()) continue;
      use(r, points[r].of);
      if (points[r].of_other) use(r, *points[r].of_other);
    }
  };
  each([&](std::uint32_t r, const RulePoints::OfMessage& of) {
    for (const Flowbits& bits : rules[r].flowbits) {
      if (is_condition(bits)) continue;
      for (const std::string& name : bits.names) {
        changes[kind_of(of)][name].push_back({r, of.last, order_of(rules[r].action), clears(bits)});
      }
    }
  });
  std::unordered_set<std::string_view> late;  // flowbits that rules change which wait
  const auto wait = [&](std::uint32_t r) {
    points[r].waits = true;
    for (const Flowbits& bits : rules[r].flowbits) {
      if (!is_condition(bits)) late.insert(bits.names.begin(), bits.names.end());
    }
  };
  each([&](std::uint32_t r, const RulePoints::OfMessage& of) {
    if (rules[r].action == Action::pass || points[r].waits) return;
    if (depends_on_parts(rules[r], r, of.first, changes[kind_of(of)])) wait(r);
  });
  for (std::size_t before = late.size() + 1; before != late.size();) {
    before = late.size();
    each([&](std::uint32_t r, const RulePoints::OfMessage&) {
      if (rules[r].action != Action::pass && !points[r].waits && names_any(rules[r], late)) wait(r);
    });
  }
}

}  // namespace

BitOrder bit_order_of(const Rule& rule) {
  bool asks = false, sets = false;
  for (const Flowbits& bits : rule.flowbits) (is_condition(bits) ? asks : sets) = true;
  return sets && asks ? BitOrder::sets_and_asks : sets ? BitOrder::sets : asks ? BitOrder::asks : BitOrder::none;
}

std::vector<std::uint32_t> order_of_treatment(std::span<const Rule> rules) {
  std::vector<std::uint32_t> order(rules.size());
  std::iota(order.begin(), order.end(), 0U);
  std::vector<std::uint32_t> level(rules.size(), 0);
  for (const Action action : {Action::pass, Action::drop, Action::reject, Action::alert}) {
    std::vector<std::uint32_t> chained;
    std::ranges::copy_if(order, std::back_inserter(chained), [&](std::uint32_t r) {
      return rules[r].action == action && bit_order_of(rules[r]) == BitOrder::sets_and_asks;
    });
    if (chained.empty()) continue;
    const auto levels = BitGraph(rules, chained).levels(chained);
    for (const std::uint32_t r : chained) level[r] = levels[r];
  }
  std::ranges::stable_sort(order, {}, [&](std::uint32_t r) {
    const Rule& rule = rules[r];
    return std::tuple(order_of(rule.action), bit_order_of(rule), level[r], rule.priority, rule.sid);
  });
  return order;
}

std::vector<RulePoints> points_of(std::span<const Rule> rules) {
  std::vector<RulePoints> points;
  points.reserve(rules.size());
  for (const Rule& rule : rules) {
    const Point point = point_of(rule);
    points.push_back({{point, point}, std::nullopt, false});
    if (const auto other = other_point_of(rule)) points.back().of_other = RulePoints::OfMessage{*other, *other};
  }
  LastByName by_request, by_response;
  const auto each = [&](auto use) {
    for (std::size_t r = 0; r < rules.size(); ++r) {
      if (points[r].of.first == Point::packet || rules[r].flowbits.empty()) continue;
      use(rules[r], points[r].of);
      if (points[r].of_other) use(rules[r], *points[r].of_other);
    }
  };
  for (bool changed = true; changed;) {  // as often as a message has parts, at most, and once more
    changed = false;
    each([&](const Rule& rule, RulePoints::OfMessage& of) {
      widen(rule, of, is_of_response(of.first) ? by_response : by_request, changed);
    });
  }
  find_waiting(rules, points);
  return points;
}

}  // namespace sluice::match
