// What is made of the rules before any packet comes: their order, what leads to each, and the patterns to search for.
#include <algorithm>
#include <map>
#include <utility>

#include "match/automaton/byte_pairs.h"
#include "match/automaton/key_set.h"
#include "match/detect/detector.h"
#include "match/rules/check_facts.h"
#include "match/rules/rule_order.h"
#include "match/rules/rule_scope.h"

namespace sluice::match {
namespace {

// The rule may hold for the beginning of a body, and not for the whole of it.
bool needs_end(const Rule& rule) {
  return std::any_of(rule.checks.begin(), rule.checks.end(), [](const Check& check) {
    const Buffer buffer = buffer_of(check);
    if (buffer != Buffer::base64_data && buffer != Buffer::http_request_body && buffer != Buffer::http_response_body &&
        buffer != Buffer::file_data) {
      return false;
    }
    if (const auto* content = std::get_if<Content>(&check)) return content->negated || content->place.at_end;
    if (const auto* pcre = std::get_if<Pcre>(&check)) return pcre->negated;
    if (const auto* data = std::get_if<IsDataAt>(&check)) return data->negated;
    if (const auto* jump = std::get_if<ByteJump>(&check)) return jump->from == ByteJump::From::end;
    return std::holds_alternative<BufferSize>(check);
  });
}

// Whether a rule's header leads to it better than a search would: its best pattern has one byte, or two that ordinary
// payloads hold, and the rule is for ports that are in no group, where few packets go.
bool is_found_by_header(const BestPattern& best, ClassMask classes) {
  constexpr float common = 11;  // of two bytes, -log2 of how often they are at a place
  if (best.bytes.size() < KeySet::least_pattern) return true;
  if (best.bytes.size() > 2 || (classes & ~TrafficClasses::named_classes) != 0) return false;
  const char folded[] = {static_cast<char>(fold(static_cast<std::uint8_t>(best.bytes[0]))),
                         static_cast<char>(fold(static_cast<std::uint8_t>(best.bytes[1])))};
  return bits_of({folded, 2}) < common;
}

// The content of the payload that the fewest packets hold; nothing: all that there are may be in ordinary traffic.
std::optional<BestPattern> rarest_in_payload(const Rule& rule) {
  constexpr float rare = 18;  // key_rarity(): at one of 262,144 places
  std::optional<BestPattern> rarest;
  float most = rare;
  for (std::size_t i = 0; i < rule.checks.size(); ++i) {
    const Content* const content = std::get_if<Content>(&rule.checks[i]);
    if (content == nullptr || content->negated || content->buffer != Buffer::payload) continue;
    const float rarity = key_rarity(content->bytes);
    if (rarity < most) continue;
    most = rarity;
    rarest = BestPattern{i, Buffer::payload, content->bytes, content->nocase};
  }
  return rarest;
}

}  // namespace

Expected<std::unique_ptr<Detector>> Detector::make(RuleSet rules, const Detector* before) {
  TrafficClasses classes(rules.rules);
  auto detector = std::unique_ptr<Detector>(new Detector(std::move(rules), std::move(classes)));
  if (before != nullptr) detector->bit_names_ = before->bit_names_;
  if (auto ok = detector->compile(before == nullptr ? FlowBits{} : before->named_); !ok)
    return tl::unexpected(ok.error());
  detector->collect_patterns();
  return detector;
}

FlowBits Detector::renamed(const Detector& before) const {
  FlowBits renamed{};
  for (std::size_t i = 0; i < std::min(bit_names_.size(), before.bit_names_.size()); ++i) {
    if (bit_names_[i] != before.bit_names_[i]) set_bit(renamed, i);
  }
  return renamed;
}

Expected<void> Detector::compile(const FlowBits& kept) {
  for (const std::uint32_t r : order_of_treatment(set_.rules)) {
    const Rule& rule = set_.rules[r];
    auto payload = PayloadMatcher::make(rule);
    if (!payload) return make_error(set_.place(rule.file, rule.line) + ": " + payload.error().message);
    Compiled compiled{r, std::move(*payload), {}, {}};
    if (auto ok = compile_flowbits(rule, kept, compiled); !ok) {
      return make_error(set_.place(rule.file, rule.line) + ": " + ok.error().message);
    }
    ranked_.push_back(std::move(compiled));
  }
  rank_of_.resize(ranked_.size());
  for (std::uint32_t rank = 0; rank < ranked_.size(); ++rank) rank_of_[ranked_[rank].rule] = rank;
  find_decisive();
  return {};
}

// Those that act come first, and of those that alert the ones that set flowbits.
void Detector::find_decisive() {
  const auto acts = [](const Rule& rule) { return rule.action != Action::alert; };
  const auto asks = [](const Rule& rule) {
    const BitOrder order = bit_order_of(rule);
    return order == BitOrder::asks || order == BitOrder::sets_and_asks;
  };
  const std::vector<Rule>& rules = set_.rules;
  blocks_ = std::ranges::any_of(rules, [&](const Rule& rule) { return acts(rule) && rule.action != Action::pass; });
  if (!blocks_) return;
  const bool by_bits = std::ranges::any_of(rules, [&](const Rule& rule) { return acts(rule) && asks(rule); });
  for (const Compiled& compiled : ranked_) {
    const Rule& rule = rules[compiled.rule];
    if (!acts(rule) && !(by_bits && bit_order_of(rule) <= BitOrder::sets_and_asks)) break;
    ++decisive_;
  }
}

// Nothing: there is no capacity.
std::optional<std::size_t> Detector::number_of_bit(const std::string& name, const FlowBits& kept) {
  auto at = static_cast<std::size_t>(std::find(bit_names_.begin(), bit_names_.end(), name) - bit_names_.begin());
  if (at == bit_names_.size() && at < max_flowbits) bit_names_.push_back(name);
  if (at == max_flowbits) {
    const auto is_free = [&](std::size_t i) { return !has_bit(kept, i) && !has_bit(named_, i); };
    for (at = 0; at < max_flowbits && !is_free(at);) ++at;
    if (at == max_flowbits) return std::nullopt;
    bit_names_[at] = name;
  }
  set_bit(named_, at);
  return at;
}

Expected<void> Detector::compile_flowbits(const Rule& rule, const FlowBits& kept, Compiled& compiled) {
  for (const Flowbits& bits : rule.flowbits) {
    Compiled::Bits made{bits.operation, bits.any, {}};
    for (const std::string& name : bits.names) {
      const auto at = number_of_bit(name, kept);
      if (!at) {
        return make_error("flowbits: the rules name more than " + std::to_string(max_flowbits) + " of them");
      }
      set_bit(made.mask, *at);
    }
    const bool asks = bits.operation == Flowbits::Operation::isset || bits.operation == Flowbits::Operation::isnotset;
    (asks ? compiled.conditions : compiled.changes).push_back(made);
  }
  return {};
}

void Detector::collect_patterns() {
  PatternNumbers known;
  const std::vector<RulePoints> points = points_of(set_.rules);
  again_.assign(ranked_.size(), 0);
  find_askers_of_http(points);
  for (Group& one : groups_) one.without_pattern.resize(max_classes);
  std::vector<HeaderIndex::Entry> without_pattern, without_key, of_addresses;
  for (std::uint32_t rank = 0; rank < ranked_.size(); ++rank) {
    const Rule& rule = set_.rules[ranked_[rank].rule];
    gates_.emplace_back(rule);
    about_packets_.push_back(is_about_packets(rule));
    by_piece_.push_back(is_about_places(rule));
    needs_end_.push_back(needs_end(rule));
    by_new_bytes_.push_back(!waits_[rank] && depends_on_new_bytes(ranked_[rank]));
    for (const Check& check : rule.checks) looked_at_.add(buffer_of(check));
    const RulePoints& at = points[ranked_[rank].rule];
    const Point point = at.of.first;
    const ClassMask classes = classes_.classes_of(rule);
    // Searched are the payload of packets and the buffers of HTTP; what a rule looks for elsewhere is confirmed only.
    auto best = point == Point::packet ? best_pattern(rule) : best_pattern(rule, is_of_http);
    if (best && point == Point::packet && best->buffer != Buffer::payload) best.reset();
    best_.push_back(best.value_or(BestPattern{}));
    needles_.push_back(best ? Needle(best->bytes, best->nocase) : Needle());
    if (!best && point == Point::packet) {
      (is_about_addresses(rule) ? of_addresses : without_pattern).push_back({rank, &rule});
      continue;
    }
    const bool has_key = best && !is_found_by_header(*best, classes);
    has_key_.resize(rank + 1);
    has_key_[rank] = point == Point::packet && has_key;
    if (point == Point::packet && !has_key) without_key.push_back({rank, &rule});
    if (has_key_[rank] && about_packets_[rank]) packet_classes_ |= classes;
    needs_payload_.resize(rank + 1);
    if (point != Point::packet) needs_payload_[rank] = enter_payload(rule, classes, known);
    if (point == Point::packet) {
      enter(rank, best, classes, point, known);
      continue;
    }
    enter_message(rank, best, classes, at.of, known);
    if (at.of_other) enter_message(rank, best, classes, *at.of_other, known);
  }
  needs_payload_.resize(ranked_.size());
  has_key_.resize(ranked_.size());
  calls_for_http_.resize(patterns(Buffer::payload).size());
  for (Group& one : groups_) {
    one.ranks_of_pattern.resize(&one == groups_.data() ? patterns(Buffer::payload).size() : number_count_);
  }
  without_pattern_ = HeaderIndex(without_pattern, classes_);
  without_key_ = HeaderIndex(without_key, classes_);
  without_pattern.insert(without_pattern.end(), without_key.begin(), without_key.end());
  without_any_ = HeaderIndex(without_pattern, classes_);
  of_addresses_ = HeaderIndex(of_addresses, classes_);
}

void Detector::find_askers_of_http(std::span<const RulePoints> points) {
  FlowBits by_http{};
  for (const Compiled& compiled : ranked_) {
    if (points[compiled.rule].of.first == Point::packet) continue;
    for (const Compiled::Bits& one : compiled.changes) {
      for (std::size_t i = 0; i < by_http.size(); ++i) by_http[i] |= one.mask[i];
    }
  }
  for (const Compiled& compiled : ranked_) {
    const RulePoints& at = points[compiled.rule];
    waits_.push_back(at.waits);
    asks_http_.push_back(at.of.first == Point::packet &&
                         std::ranges::any_of(compiled.conditions, [&](const Compiled::Bits& one) {
                           return one.operation == Flowbits::Operation::isset && has_any(by_http, one.mask);
                         }));
  }
}

void Detector::enter_message(std::uint32_t rank, const std::optional<BestPattern>& best, ClassMask classes,
                             const RulePoints::OfMessage& at, PatternNumbers& known) {
  for (Point point = at.first; point <= at.last; point = next(point)) {
    enter(rank, best, classes, point, known);
    if (point != at.first) again_[rank] |= 1U << static_cast<unsigned>(point);
  }
}

// Of a rule that looks at an HTTP body: it asks for nothing that another packet or flowbit could change, and of bodies
// for contents of one message's alone.
bool Detector::depends_on_new_bytes(const Compiled& compiled) const {
  const Rule& rule = set_.rules[compiled.rule];
  const bool is_fixed = compiled.conditions.empty() && rule.numbers.empty() && rule.bits.empty() &&
                        rule.ip_options.empty() && rule.stream_sizes.empty() && !rule.same_ip;
  BufferSet looks_at;
  for (const Check& check : rule.checks) looks_at.add(buffer_of(check));
  const bool is_of_both = looks_at.has(Buffer::http_request_body) &&
                          (looks_at.has(Buffer::http_response_body) || looks_at.has(Buffer::file_data));
  return is_fixed && !is_of_both && !looks_at.has(Buffer::payload) && !(looks_at & http_bodies).empty() &&
         compiled.payload.asks_bodies_for_contents();
}

void Detector::enter(std::uint32_t rank, const std::optional<BestPattern>& best, ClassMask classes, Point point,
                     PatternNumbers& known) {
  Group& of = groups_[static_cast<std::size_t>(point)];
  of.is_empty = false;
  if (!best) {
    for (unsigned c = 0; c < max_classes; ++c) {
      if ((classes >> c & 1) != 0) of.without_pattern[c].push_back(rank);
    }
    return;
  }
  Searched& in = searched_[static_cast<std::size_t>(best->buffer)];
  const bool is_searched = point != Point::packet || has_key_[rank];
  const std::size_t place = place_of(*best, is_searched ? classes : 0, known);
  const std::size_t number = point == Point::packet ? place : in.numbers[place];
  of.buffers.add(best->buffer);
  of.ranks_of_pattern.resize(std::max(of.ranks_of_pattern.size(), number + 1));
  of.ranks_of_pattern[number].push_back(rank);
}

// Among the patterns of its buffer, which it joins.
std::size_t Detector::place_of(const BestPattern& pattern, ClassMask classes, PatternNumbers& known) {
  Searched& in = searched_[static_cast<std::size_t>(pattern.buffer)];
  const auto [at, is_new] = known[static_cast<std::size_t>(pattern.buffer)].try_emplace(
      {std::string(pattern.bytes), pattern.nocase}, static_cast<std::uint32_t>(in.patterns.size()));
  if (is_new) {
    in.patterns.push_back({at->first.first, pattern.nocase, 0});
    in.longest = std::max(in.longest, pattern.bytes.size());
    if (pattern.buffer != Buffer::payload) in.numbers.push_back(number_count_++);
  }
  in.patterns[at->second].classes |= classes;
  return at->second;
}

// Of a rule of HTTP, a pattern of the payload that ordinary traffic does not have. False: there is none.
bool Detector::enter_payload(const Rule& rule, ClassMask classes, PatternNumbers& known) {
  const auto best = rarest_in_payload(rule);
  if (!best) return false;
  const std::size_t place = place_of(*best, classes, known);
  calls_for_http_.resize(std::max(calls_for_http_.size(), place + 1));
  calls_for_http_[place] = true;
  return true;
}

}  // namespace sluice::match
