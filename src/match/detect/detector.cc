// Which rules a packet's findings lead to, and which of them hold.
#include "match/detect/detector.h"

#include <x86intrin.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "match/rules/rule_scope.h"

namespace sluice::match {
namespace {

// Of Found::open, without an allocation.
constexpr std::size_t most_reported_open = 64;

// Prefilter matches that are sorted, whatever there are of rules; and words of their bits for each that cost as much as
// sorting it.
constexpr std::size_t few_ranks = 32, words_worth_sorting = 8;

}  // namespace

Detector::Scratch::Scratch(const Detector& detector) : seen_((detector.ranked_.size() + 63) / 64) {
  ranks_.reserve(detector.ranked_.size());
  open_.reserve(2 * detector.ranked_.size());
  reported_open_.reserve(most_reported_open);
  begun_.reserve(3 * detector.ranked_.size());
  waiting_.reserve(static_cast<std::size_t>(std::ranges::count(detector.waits_, true)));
  unset_.reserve(static_cast<std::size_t>(std::ranges::count(detector.asks_http_, true)));
}

void Detector::add(std::uint32_t rank, Scratch& scratch) {
  std::uint64_t& word = scratch.seen_[rank / 64];
  const std::uint64_t bit = std::uint64_t{1} << rank % 64;
  if ((word & bit) != 0) return;
  word |= bit;
  scratch.ranks_.push_back(rank);
}

// Many by their bits: what a sender makes dear must not cost more than in proportion.
void Detector::put_in_order(Scratch& scratch) {
  std::vector<std::uint32_t>& ranks = scratch.ranks_;
  if (ranks.size() < few_ranks || scratch.seen_.size() > words_worth_sorting * ranks.size()) {
    for (const std::uint32_t rank : ranks) scratch.seen_[rank / 64] = 0;
    std::sort(ranks.begin(), ranks.end());
    return;
  }
  std::uint32_t* next = ranks.data();
  for (std::size_t w = 0; w < scratch.seen_.size(); ++w) {
    for (std::uint64_t word = std::exchange(scratch.seen_[w], 0); word != 0; word &= word - 1) {
      *next++ = static_cast<std::uint32_t>(64 * w) + static_cast<std::uint32_t>(std::countr_zero(word));
    }
  }
}

bool Detector::conditions_hold(const Compiled& compiled, const FlowBits* bits) {
  return std::all_of(compiled.conditions.begin(), compiled.conditions.end(), [&](const Compiled::Bits& one) {
    if (bits == nullptr) return false;
    if (one.operation == Flowbits::Operation::isset) {
      return one.any ? has_any(*bits, one.mask) : has_all(*bits, one.mask);
    }
    return one.any ? !has_all(*bits, one.mask) : !has_any(*bits, one.mask);
  });
}

// `fresh`: those that were not set before are added to it.
void Detector::change(const Compiled& compiled, FlowBits* bits, FlowBits& fresh) {
  if (bits == nullptr) return;
  for (const Compiled::Bits& one : compiled.changes) {
    for (std::size_t i = 0; i < bits->size(); ++i) {
      std::uint64_t& word = (*bits)[i];
      const std::uint64_t before = word;
      switch (one.operation) {
        case Flowbits::Operation::set:
          word |= one.mask[i];
          break;
        case Flowbits::Operation::unset:
          word &= ~one.mask[i];
          break;
        case Flowbits::Operation::toggle:
          word ^= one.mask[i];
          break;
        default:
          break;
      }
      fresh[i] |= word & ~before;
    }
  }
}

// Where a rule is inspected once more, it is if one of the flowbits that it asks for has just been set, or may be.
bool Detector::is_called_again(std::uint32_t rank, Point point, const FlowBits& fresh) const {
  if ((again_[rank] >> static_cast<unsigned>(point) & 1) == 0) return true;
  return std::ranges::any_of(ranked_[rank].conditions, [&](const Compiled::Bits& one) {
    return one.operation == Flowbits::Operation::isset && (waits_[rank] || has_any(fresh, one.mask));
  });
}

bool Detector::collect(Point point, const PacketFacts& packet, const Found& found, Scratch& scratch) const {
  scratch.ranks_.clear();
  scratch.open_.clear();
  scratch.begun_.clear();
  scratch.waiting_.clear();
  scratch.unset_.clear();
  scratch.point_ = point;
  scratch.stream_ = found.stream;
  scratch.by_keys_ = found.stream && found.by_keys;
  scratch.new_only_ = scratch.by_keys_ && !found.open_unknown;
  scratch.piece_ = found.piece;
  scratch.body_ = found.body;
  scratch.body_before_ = found.body_before;
  if (scratch.new_only_) scratch.reported_open_.assign(found.open.begin(), found.open.end());
  const auto is_out_of_scope = [&](std::uint32_t rank) {
    return found.scope != Scope::all && about_packets_[rank] == (found.scope == Scope::streams);
  };
  const auto add_rank = [&](std::uint32_t rank) {
    if (is_out_of_scope(rank)) return;
    if (found.growing && needs_end_[rank]) return;
    if (found.payload_is_ordinary && needs_payload_[rank]) return;
    if (std::find(found.without.begin(), found.without.end(), ranked_[rank].rule) != found.without.end()) {
      begin(rank, found.window, scratch);  // it may be forgotten that it has held when the pattern's rest comes
      return;
    }
    const HeaderGate& gate = gates_[rank];
    if (gate.passes(packet, found.inspected) ||
        (found.stream && by_piece_[rank] && gate.passes(packet, found.piece.size()))) {
      add(rank, scratch);
    } else if (found.stream && !best_[rank].bytes.empty()) {
      refuse(rank, packet, found, scratch);
    }
  };
  for (const std::uint32_t rule : found.open) add_rank(rank_of_[rule]);
  for (const std::uint32_t rule : found.begun) {
    const std::uint32_t rank = rank_of_[rule];
    comes_with(rank, found.window, found.piece.size()) ? add_rank(rank) : begin(rank, found.window, scratch);
  }
  for (const std::uint32_t pattern : found.patterns) {
    for (const std::uint32_t rank : group(point).ranks_of_pattern[pattern]) add_rank(rank);
  }
  if (point == Point::packet) {
    // Here and not as prefilter matches: of what a header excludes nothing is left to be confirmed, whatever time there
    // is.
    const auto add_admitted = [&](std::uint32_t rank) {
      if (!is_out_of_scope(rank) && admits_packet(set_.rules[ranked_[rank].rule], packet)) add_rank(rank);
    };
    without_pattern_.collect(packet, add_admitted);
    if (!found.addresses_tried && !of_addresses_.is_empty()) of_addresses_.collect(packet, add_admitted);
    without_key_.collect(packet, [&](std::uint32_t rank) {
      if (!is_out_of_scope(rank) && (found.by_keys || is_there(rank, packet, found))) add_rank(rank);
    });
  } else {
    for (const std::uint32_t rank : group(point).without_pattern[classes_.class_of(packet)]) add_rank(rank);
  }
  if (scratch.ranks_.empty()) return false;
  put_in_order(scratch);
  return true;
}

bool Detector::may_hold(const PlainFacts& packet, const FlowFacts& flow,
                        std::span<const std::uint32_t> patterns) const {
  for (const std::uint32_t pattern : patterns) {
    for (const std::uint32_t rank : group(Point::packet).ranks_of_pattern[pattern]) {
      if (gates_[rank].passes(flow) && gates_[rank].passes(packet)) return true;
    }
  }
  return false;
}

// What the gate does not let pass with this piece of a stream, and may with the next.
[[gnu::noinline]] void Detector::refuse(std::uint32_t rank, const PacketFacts& packet, const Found& found,
                                        Scratch& scratch) const {
  const HeaderGate& gate = gates_[rank];
  if (gate.too_short(found.inspected) && gate.passes(packet, HeaderGate::unknown)) {
    scratch.open_.push_back(ranked_[rank].rule);
  } else if (gate.passes_ends(packet)) {
    begin(rank, found.window, scratch);
  }
}

// A rule that does not hold now, and that a key has led to whose pattern may end in the next piece: no key leads to it
// there.
void Detector::begin(std::uint32_t rank, std::string_view window, Scratch& scratch) const {
  if (scratch.by_keys_ && has_key_[rank] && needles_[rank].begins_at_end_of(window)) {
    scratch.begun_.push_back(ranked_[rank].rule);
  }
}

PayloadVerdict Detector::verdict_of(std::uint32_t rank, const Buffers& buffers, std::uint64_t until,
                                    Scratch& scratch) const {
  const PayloadMatcher& matcher = ranked_[rank].payload;
  const PayloadVerdict verdict = matcher.matches(buffers, scratch.payload, until);
  if (verdict != PayloadVerdict::no || !scratch.stream_ || !by_piece_[rank]) return verdict;
  if (scratch.piece_.size() == buffers[Buffer::payload]->size()) return verdict;
  Buffers piece;
  piece.set(Buffer::payload, scratch.piece_);
  return matcher.matches(piece, scratch.payload, until);
}

// Whether a rule whose checks do not hold in the window may hold in one that begins with it.
bool Detector::may_grow(std::uint32_t rank, std::string_view window) const {
  const BestPattern& best = best_[rank];
  if (best.bytes.empty()) return false;
  const Needle& needle = needles_[rank];
  if (needle.begins_at_end_of(window)) return true;
  const std::vector<Check>& checks = set_.rules[ranked_[rank].rule].checks;
  const bool is_all = checks.size() == 1 && std::get<Content>(checks[best.check]).bytes.size() == best.bytes.size();
  return !is_all && needle.is_in(window);
}

// A key may be there, or the window's earlier bytes may hold the pattern, without that it came with the piece.
bool Detector::comes_with(std::uint32_t rank, std::string_view window, std::size_t piece) const {
  const Needle& needle = needles_[rank];
  const std::size_t history = window.size() - piece;
  return needle.is_in(window.substr(history - std::min(history, needle.size() - 1)));
}

// A key in a stream's piece, or a header, has led to a rule; whether a core would try it, to whose search its pattern
// has come with the piece.
bool Detector::has_come(std::uint32_t rank, std::string_view window, const Scratch& scratch) const {
  if (!scratch.new_only_ || best_[rank].bytes.empty()) return true;
  const std::vector<std::uint32_t>& open = scratch.reported_open_;
  if (std::find(open.begin(), open.end(), ranked_[rank].rule) != open.end()) return true;
  return comes_with(rank, window, scratch.piece_.size());
}

// Whether a search for all patterns would have led to a rule whose pattern is none of those.
bool Detector::is_there(std::uint32_t rank, const PacketFacts& packet, const Found& found) const {
  if (!gates_[rank].passes_ends(packet)) return false;
  if (!found.stream) return needles_[rank].is_in(packet.payload);
  return found.open_unknown ? needles_[rank].is_in(found.window) : comes_with(rank, found.window, found.piece.size());
}

bool Detector::leave_out(std::span<const std::uint32_t> rules, Scratch& scratch) const {
  std::erase_if(scratch.ranks_, [&](std::uint32_t rank) {
    return std::find(rules.begin(), rules.end(), ranked_[rank].rule) != rules.end();
  });
  return !scratch.ranks_.empty();
}

Detector::Outcome Detector::confirm(const PacketFacts& packet, const FlowFacts& flow, FlowBits* bits,
                                    const Buffers& buffers, Budget budget, Scratch& scratch,
                                    std::vector<std::uint32_t>& matched) const {
  Outcome outcome;
  const bool bounded = budget.ticks != unlimited;
  const std::uint64_t began = bounded ? __rdtsc() : 0;
  FlowBits fresh{};
  std::uint32_t passed_by = 0;
  for (const std::uint32_t rank : scratch.ranks_) {
    if (!is_called_again(rank, scratch.point_, fresh)) {
      ++passed_by;
      continue;
    }
    const std::uint64_t now = bounded ? __rdtsc() : 0;
    if (outcome.confirmed == budget.prefilter_matches || (bounded && now - began >= budget.ticks)) {
      outcome.left = static_cast<std::uint32_t>(scratch.ranks_.size()) - outcome.confirmed - passed_by;
      outcome.decisive |= rank < decisive_;
      break;
    }
    ++outcome.confirmed;
    const Compiled& compiled = ranked_[rank];
    const Rule& rule = set_.rules[compiled.rule];
    if (scratch.body_before_ != 0 && by_new_bytes_[rank] &&
        !compiled.payload.ends_behind(scratch.body_, scratch.body_before_)) {
      continue;
    }
    const std::string_view window = scratch.stream_ ? *buffers[Buffer::payload] : std::string_view();
    const bool is_admitted = admits(rule, packet, flow);
    if (!is_admitted || (!waits_[rank] && !conditions_hold(compiled, bits))) {
      if (is_admitted && scratch.stream_ && asks_http_[rank]) scratch.unset_.push_back(compiled.rule);
      begin(rank, window, scratch);
      continue;
    }
    const std::uint64_t until = bounded ? std::max(began + budget.ticks, now + least_ticks) : unlimited;
    const PayloadVerdict verdict = verdict_of(rank, buffers, until, scratch);
    if (verdict == PayloadVerdict::given_up) {
      ++outcome.given_up;
      outcome.decisive |= rank < decisive_;
    }
    const bool has_come = verdict != PayloadVerdict::given_up && this->has_come(rank, window, scratch);
    if (verdict == PayloadVerdict::no && scratch.stream_ && has_come && may_grow(rank, window)) {
      scratch.open_.push_back(compiled.rule);
      continue;
    }
    begin(rank, window, scratch);
    if (verdict != PayloadVerdict::yes || !has_come) continue;
    if (waits_[rank]) {
      scratch.waiting_.push_back(compiled.rule);
      continue;
    }
    change(compiled, bits, fresh);
    matched.push_back(compiled.rule);
    if (rule.action == Action::pass && rule.thresholds.empty() && rule.detection_filters.empty()) break;
  }
  outcome.left += outcome.given_up;
  if (bounded) outcome.ticks = __rdtsc() - began;
  return outcome;
}

void Detector::settle(std::span<const std::uint32_t> waiting, FlowBits* bits, Scratch& scratch,
                      std::vector<std::uint32_t>& matched) const {
  scratch.ranks_.clear();
  for (const std::uint32_t rule : waiting) add(rank_of_[rule], scratch);
  put_in_order(scratch);
  FlowBits fresh{};
  for (const std::uint32_t rank : scratch.ranks_) {
    const Compiled& compiled = ranked_[rank];
    if (!conditions_hold(compiled, bits)) continue;
    change(compiled, bits, fresh);
    matched.push_back(compiled.rule);
  }
}

bool Detector::collect_unset(std::span<const std::uint32_t> rules, std::string_view piece, Scratch& scratch) const {
  for (auto* const list : {&scratch.ranks_, &scratch.open_, &scratch.begun_, &scratch.waiting_, &scratch.unset_}) {
    list->clear();
  }
  scratch.point_ = Point::packet;
  scratch.stream_ = true;
  scratch.by_keys_ = scratch.new_only_ = false;
  scratch.piece_ = piece;
  for (const std::uint32_t rule : rules) add(rank_of_[rule], scratch);
  put_in_order(scratch);
  return !scratch.ranks_.empty();
}

}  // namespace sluice::match
