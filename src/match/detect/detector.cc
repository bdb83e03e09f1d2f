#include "match/detect/detector.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "match/rules/fast_pattern.h"

namespace sluice::match {
namespace {

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

}  // namespace

Expected<std::unique_ptr<Detector>> Detector::make(RuleSet rules) {
  TrafficClasses classes(rules.rules);
  auto detector = std::unique_ptr<Detector>(new Detector(std::move(rules), std::move(classes)));
  if (auto ok = detector->compile(); !ok) return tl::unexpected(ok.error());
  detector->collect_patterns();
  return detector;
}

Expected<void> Detector::compile() {
  std::vector<std::uint32_t> order(set_.rules.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Rule &one = set_.rules[a], &two = set_.rules[b];
    return std::tuple(order_of(one.action), one.priority) < std::tuple(order_of(two.action), two.priority);
  });
  for (const std::uint32_t r : order) {
    const Rule& rule = set_.rules[r];
    auto payload = PayloadMatcher::make(rule);
    if (!payload) return make_error(set_.place(rule.file, rule.line) + ": " + payload.error().message);
    Compiled compiled{r, std::move(*payload), {}, {}};
    if (auto ok = compile_flowbits(rule, compiled); !ok) {
      return make_error(set_.place(rule.file, rule.line) + ": " + ok.error().message);
    }
    ranked_.push_back(std::move(compiled));
  }
  return {};
}

Expected<void> Detector::compile_flowbits(const Rule& rule, Compiled& compiled) {
  for (const Flowbits& bits : rule.flowbits) {
    Compiled::Bits made{bits.operation, bits.any, {}};
    for (const std::string& name : bits.names) {
      const auto known = std::find(bit_names_.begin(), bit_names_.end(), name);
      const auto at = static_cast<std::size_t>(known - bit_names_.begin());
      if (known == bit_names_.end()) bit_names_.push_back(name);
      if (at >= max_flowbits) {
        return make_error("flowbits: the rules name more than " + std::to_string(max_flowbits) + " of them");
      }
      made.mask.set(at);
    }
    const bool asks = bits.operation == Flowbits::Operation::isset || bits.operation == Flowbits::Operation::isnotset;
    (asks ? compiled.conditions : compiled.changes).push_back(std::move(made));
  }
  return {};
}

void Detector::collect_patterns() {
  without_pattern_.resize(max_classes);
  std::map<std::pair<std::string, bool>, std::uint32_t> known;
  for (std::uint32_t rank = 0; rank < ranked_.size(); ++rank) {
    const Rule& rule = set_.rules[ranked_[rank].rule];
    const ClassMask classes = classes_.classes_of(rule);
    const auto best = best_pattern(rule);
    if (!best) {
      for (unsigned c = 0; c < max_classes; ++c) {
        if ((classes >> c & 1) != 0) without_pattern_[c].push_back(rank);
      }
      continue;
    }
    const auto [at, is_new] =
        known.try_emplace({std::string(best->bytes), best->nocase}, static_cast<std::uint32_t>(patterns_.size()));
    if (is_new) {
      patterns_.push_back({at->first.first, best->nocase, 0});
      ranks_of_pattern_.emplace_back();
    }
    patterns_[at->second].classes |= classes;
    ranks_of_pattern_[at->second].push_back(rank);
  }
}

Detector::Scratch::Scratch(const Detector& detector) : seen_((detector.ranked_.size() + 63) / 64) {
  ranks_.reserve(detector.ranked_.size());
}

void Detector::add(std::uint32_t rank, Scratch& scratch) const {
  std::uint64_t& word = scratch.seen_[rank / 64];
  const std::uint64_t bit = std::uint64_t{1} << rank % 64;
  if ((word & bit) != 0) return;
  word |= bit;
  scratch.ranks_.push_back(rank);
}

bool Detector::conditions_hold(const Compiled& compiled, const FlowBits* bits) {
  return std::all_of(compiled.conditions.begin(), compiled.conditions.end(), [&](const Compiled::Bits& one) {
    if (bits == nullptr) return false;
    const FlowBits there = *bits & one.mask;
    if (one.operation == Flowbits::Operation::isset) return one.any ? there.any() : there == one.mask;
    return one.any ? there != one.mask : there.none();
  });
}

void Detector::change(const Compiled& compiled, FlowBits* bits) {
  if (bits == nullptr) return;
  for (const Compiled::Bits& one : compiled.changes) {
    switch (one.operation) {
      case Flowbits::Operation::set:
        *bits |= one.mask;
        break;
      case Flowbits::Operation::unset:
        *bits &= ~one.mask;
        break;
      case Flowbits::Operation::toggle:
        *bits ^= one.mask;
        break;
      default:
        break;
    }
  }
}

Detector::Outcome Detector::inspect(const PacketFacts& packet, const FlowFacts& flow, FlowBits* bits,
                                    const Buffers& buffers, std::span<const std::uint32_t> found, std::uint32_t budget,
                                    Scratch& scratch, std::vector<std::uint32_t>& matched) const {
  Outcome outcome;
  scratch.ranks_.clear();
  for (const std::uint32_t pattern : found) {
    for (const std::uint32_t rank : ranks_of_pattern_[pattern]) add(rank, scratch);
  }
  for (const std::uint32_t rank : without_pattern_[classes_.class_of(packet)]) add(rank, scratch);
  for (const std::uint32_t rank : scratch.ranks_) scratch.seen_[rank / 64] = 0;
  std::sort(scratch.ranks_.begin(), scratch.ranks_.end());
  bool weighed = false;
  for (const std::uint32_t rank : scratch.ranks_) {
    if (outcome.confirmed == budget) {
      outcome.left = static_cast<std::uint32_t>(scratch.ranks_.size()) - outcome.confirmed;
      break;
    }
    ++outcome.confirmed;
    const Compiled& compiled = ranked_[rank];
    const Rule& rule = set_.rules[compiled.rule];
    if (!admits(rule, packet, flow) || !conditions_hold(compiled, bits)) continue;
    const PayloadVerdict verdict = compiled.payload.matches(buffers, scratch.payload);
    if (verdict == PayloadVerdict::given_up) ++outcome.left;
    if (verdict != PayloadVerdict::yes) continue;
    change(compiled, bits);
    matched.push_back(compiled.rule);
    if (!weighed) outcome.action = rule.action;
    weighed = true;
    if (rule.action == Action::pass) break;
  }
  return outcome;
}

}  // namespace sluice::match
