// Which rules a packet satisfies: takes what a multi-pattern matcher has found in its payload, and confirms the rest.
//
//     auto detector = Detector::make(std::move(rule_set));          // once, seconds for 20,000 rules
//     matchers over detector->patterns(buffer), given the packet's class    // GpuMatcher or CpuMatcher
//     detector->inspect(point, packet, flow, buffers, found, scratch, matched);
//
// Each rule is inspected at one point: where the last of what it looks at is known. A rule without payload checks, or
// with checks of the payload only, at a packet (or piece of a stream); one that looks at HTTP where the last of its
// buffers is whole; one that looks at headers which both messages have, or at file_data, without a direction of its
// flow, at those of both (rules/rule_point.h). A body is inspected as it grows besides (Found::growing), but by rules
// that its end may refute: those with a negated check of it, or one of its size or end. A rule that has been confirmed
// with less of it, and of which nothing but its contents may change that, is confirmed again only when one of these
// ends in the new bytes (Found::body_before).
//
// A rule is a prefilter match when its best pattern was found, or when it has none and its header may admit the packet
// (header_index.h); in both cases only if a glance at ports, flags and sizes lets it (header_gate.h). A pattern of one
// byte, and one of two that most payloads hold, of a rule for few ports, is not searched for with the others: of the
// few packets that its rule's header admits, it is looked for in the payload.
//
// Prefilter matches are confirmed in the order in which Suricata treats rules (rules/rule_order.h): pass, drop, reject,
// alert; of one action those first that set flowbits, then those that set and ask for some, that ask for some, and all
// others; of these by priority and sid. A rule that asks for a flowbit is inspected at later points of its message once
// more, where one that sets it has held there. Where rules of several parts of a message set and clear flowbits, or ask
// that one is not set, they are confirmed but for these; the caller settles them when a piece of the stream has
// reported all that it holds of the message. Rules of a stream that ask for a flowbit that HTTP sets are reported, too.
// A pass rule that holds ends it: nothing else counts for this packet. Rules with `threshold` or `detection_filter` are
// reported whenever they hold, and a pass rule with one does not end it: the caller counts (rate_filter.h).
//
// Of rules that look at HTTP and at the payload many have but a common pattern in HTTP's buffers. One in the payload
// that ordinary traffic does not have is among the patterns of Point::packet, and where a caller knows that none of
// these is there (calls_for_http()), those rules are no prefilter matches.
//
// Rules that name places from the payload's beginning (rules/rule_scope.h) are tried, of a piece of a stream, in the
// window and then in the piece by itself, as Suricata falls back to the packet.
//
// Of a piece of a stream, a rule may need bytes that are still to come: its best pattern is in the window, or begins at
// the window's end, but not all of its checks hold. Scratch::open() has those rules, and with the next piece the caller
// reports them again (Found::open). What a budget leaves, what is given up, and what the packet's header or flowbits do
// not let hold, is not open.
//
// A search by keys leads to a rule with the piece that has the key of its pattern, which may end in a later one. What
// is found so early and not open, whatever it does not hold for, is in Scratch::begun(), and the caller reports it with
// the next piece (Found::begun): it is tried where its pattern ends, as after a search for patterns, and stays begun as
// long as the pattern goes on.
//
// Bounded: so many prefilter matches are confirmed for a packet, none begun after a given time (Budget), and one that
// has been begun is given up when that is over, but has `least_ticks`; what is left is reported by `Outcome::left`, and
// the caller says what becomes of such a packet. Rules that decide about packets are looked at first, so that what is
// left is for the most part of rules that only report (Outcome::decisive).
//
// Thread-safety: immutable; each thread has a Scratch. No allocation in inspect() but by PCRE2 for patterns it has no
// JIT code for.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "match/automaton/pattern.h"
#include "match/confirm/buffers.h"
#include "match/confirm/header_match.h"
#include "match/confirm/needle.h"
#include "match/confirm/payload_matcher.h"
#include "match/detect/flowbits.h"
#include "match/detect/header_gate.h"
#include "match/detect/header_index.h"
#include "match/detect/traffic_classes.h"
#include "match/rules/fast_pattern.h"
#include "match/rules/rule_order.h"
#include "match/rules/rule_point.h"
#include "match/rules/rule_set.h"

namespace sluice::match {

class Detector {
 public:
  // An Error names what of which rule cannot be compiled, or that the rules name too many flowbits. `before`: of whose
  // flows the flowbits go on to mean the same, by name; those of `rules` come behind its own or, where there is no more
  // capacity, in the place of such as neither names.
  static Expected<std::unique_ptr<Detector>> make(RuleSet rules, const Detector* before = nullptr);

  const RuleSet& rules() const { return set_; }
  // Some rule looks for a pattern in packets of the class whose payload is inspected as a stream as well.
  bool searches_packets(unsigned klass) const { return (packet_classes_ >> klass & 1) != 0; }
  // The flowbits that mean something else than by `before`: to be cleared where flows go on.
  FlowBits renamed(const Detector& before) const;
  const TrafficClasses& classes() const { return classes_; }
  // What is to be looked for in a buffer, of whatever point: payloads, and those of HTTP. Equal ones of several rules
  // are one. Found::patterns has those of Buffer::payload by their places here, and those of HTTP's by numbers(), which
  // no two have in common.
  std::span<const Pattern> patterns(Buffer buffer) const { return searched_in(buffer).patterns; }
  std::span<const std::uint32_t> numbers(Buffer buffer) const { return searched_in(buffer).numbers; }
  // Of HTTP's: these are less.
  std::uint32_t number_count() const { return number_count_; }
  // The buffers that a best pattern of the point's rules may be in, and those that any rule looks at: of the others
  // nothing has to be known.
  BufferSet searched(Point point) const { return group(point).buffers; }
  BufferSet looked_at() const { return looked_at_; }
  // No rule is inspected there.
  bool is_empty(Point point) const { return group(point).is_empty; }
  // Bytes of the longest of a buffer's.
  std::size_t longest_pattern(Buffer buffer) const { return searched_in(buffer).longest; }

  class Scratch {
   public:
    explicit Scratch(const Detector& detector);
    PayloadMatcher::Scratch payload;
    std::size_t prefilter_matches() const { return ranks_.size(); }  // that collect() has left
    // Of Found::stream, after collect() and confirm(): rules, one maybe several times.
    std::span<const std::uint32_t> open() const { return open_; }
    // Of Found::stream and by_keys, likewise: rules of which a part of the pattern is at the window's end, and which
    // are not open.
    std::span<const std::uint32_t> begun() const { return begun_; }
    // After confirm(): rules of HTTP that hold but for their flowbits, which settle() looks at; and, of Found::stream,
    // those that ask for a flowbit that HTTP may set, and that is not set yet.
    std::span<const std::uint32_t> waiting() const { return waiting_; }
    std::span<const std::uint32_t> unset() const { return unset_; }

   private:
    friend class Detector;
    std::vector<std::uint32_t> ranks_;  // prefilter matches
    std::vector<std::uint64_t> seen_;   // by rank, a bit each
    std::vector<std::uint32_t> open_;   // rules
    Point point_ = Point::packet;
    bool stream_ = false;
    bool by_keys_ = false;   // and what it has was found by keys
    bool new_only_ = false;  // rules of patterns hold where these have come with the piece
    std::string_view piece_;
    std::string_view body_;
    std::size_t body_before_ = 0;
    std::vector<std::uint32_t> reported_open_;  // Found::open
    std::vector<std::uint32_t> begun_;
    std::vector<std::uint32_t> waiting_, unset_;
  };

  static constexpr std::uint64_t unlimited = PayloadMatcher::unlimited;
  static constexpr std::uint64_t least_ticks = 1 << 15;  // about 10 us: nearly all prefilter matches end within it
  struct Budget {
    std::uint32_t prefilter_matches;
    std::uint64_t ticks = unlimited;  // of the time-stamp counter
  };
  struct Outcome {
    std::uint32_t confirmed = 0;  // prefilter matches looked at
    std::uint64_t ticks = 0;      // what that took, if time is limited
    std::uint32_t left = 0;       // not looked at: the budget was used up, or the payload's checks were given up
    std::uint32_t given_up = 0;   // the latter of these
    bool decisive = false;        // one of these could have decided whether a packet is dropped: is_decisive()
  };
  // Which rules are tried where a packet's payload is inspected as part of a stream: at the packet those about packets
  // (rules/rule_scope.h), at the stream's pieces the others. FlowFacts has the same, and the others would not hold.
  enum class Scope : std::uint8_t { all, packets, streams };
  // What a matcher has found, in any order, more than once or not. It has constructors because an aggregate is zeroed
  // as a whole first (`rep stos`), which costs each full inspection some 8 ns.
  struct Found {
    Found() = default;
    Found(std::span<const std::uint32_t> what, bool are_by_keys, std::size_t inspected_bytes, Scope which = Scope::all)
        : patterns(what), by_keys(are_by_keys), inspected(inspected_bytes), scope(which) {}

    std::span<const std::uint32_t> patterns;  // by index; of HTTP's points by number, of other points' too
    bool by_keys = false;                     // by keys (key_set.h) of the patterns
    // Bytes of Buffer::payload, where it is inspected.
    std::size_t inspected = HeaderGate::unknown;
    Scope scope = Scope::all;
    // A piece of a stream: what is open is reported.
    bool stream = false;
    bool open_unknown = false;                 // of it: rules are open besides those of `open`
    std::string_view piece{};                  // the new bytes of Buffer::payload, of which rules may name places
    std::string_view window{};                 // Buffer::payload, which ends with them
    std::span<const std::uint32_t> open{};     // rules to be tried besides
    std::span<const std::uint32_t> begun{};    // those of which the pattern ends in the piece, likewise
    std::span<const std::uint32_t> without{};  // rules not to be tried; they may begin
    bool growing = false;                      // the point's body is not whole yet
    std::string_view body{};                   // if it is growing
    std::size_t body_before = 0;               // with so many of its bytes all prefilter matches were confirmed before
    bool addresses_tried = false;              // rules about addresses alone have been tried with these
    // Of a point of HTTP: no pattern that calls_for_http() is in Buffer::payload, and so no rule that needs one holds.
    bool payload_is_ordinary = false;
  };
  // The first half of inspect(), for callers to whom what the second half takes is dear: false where there is no
  // prefilter match, as with most packets, and nothing is to be inspected.
  bool collect(Point point, const PacketFacts& packet, const Found& found, Scratch& scratch) const;
  // Whether collect() leaves any at Point::packet for such a packet in which no key is. A few ns.
  bool has_matches_without_keys(const PlainFacts& packet) const {
    bool any = false;
    const auto found = [&](std::uint32_t rank) { any |= gates_[rank].passes(packet); };
    without_any_.collect(packet, found);
    if (!of_addresses_.is_empty()) of_addresses_.collect(packet, found);
    return any;
  }
  // Likewise, of such a packet of that flow: whether a rule that is found without keys may hold, or one of these
  // patterns, by what of ports, flags, sizes and the flow's direction and state gates ask for. `addresses_tried`: as
  // Found's.
  bool may_hold_without_keys(const PlainFacts& packet, const FlowFacts& flow, bool addresses_tried) const {
    bool any = false;
    const auto found = [&](std::uint32_t rank) { any |= gates_[rank].passes(flow) && gates_[rank].passes(packet); };
    without_any_.collect(packet, found);
    if (!addresses_tried && !of_addresses_.is_empty()) of_addresses_.collect(packet, found);
    return any;
  }
  bool may_hold(const PlainFacts& packet, const FlowFacts& flow, std::span<const std::uint32_t> patterns) const;
  // Of patterns of Point::packet: a rule of HTTP may need one of them in the payload (Found::payload_is_ordinary).
  bool calls_for_http(std::span<const std::uint32_t> patterns) const {
    for (const std::uint32_t pattern : patterns) {
      if (calls_for_http_[pattern]) return true;
    }
    return false;
  }
  // Some rule drops or rejects. Where none does, no rule that is left could have stopped a packet.
  bool blocks() const { return blocks_; }
  // What becomes of a packet may depend on the rule, and not only who is notified: it drops, rejects or passes, or sets
  // flowbits where a rule that does asks for some. None is where nothing blocks().
  bool is_decisive(std::uint32_t rule) const { return rank_of_[rule] < decisive_; }
  // The rule has a best pattern that it is found by.
  bool has_pattern(std::uint32_t rule) const { return !best_[rank_of_[rule]].bytes.empty(); }
  // It does, and the pattern ends in the last `piece` bytes of a stream's window.
  bool comes(std::uint32_t rule, std::string_view window, std::size_t piece) const {
    return has_pattern(rule) && comes_with(rank_of_[rule], window, piece);
  }
  // Of the prefilter matches that collect() left, those that are of `rules` are taken out. False: no other is there.
  bool leave_out(std::span<const std::uint32_t> rules, Scratch& scratch) const;
  // The second half: of the prefilter matches that collect() left in `scratch`.
  Outcome confirm(const PacketFacts& packet, const FlowFacts& flow, FlowBits* bits, const Buffers& buffers,
                  Budget budget, Scratch& scratch, std::vector<std::uint32_t>& matched) const;
  // Of rules that confirm() has reported as waiting(), in any order, more than once or not: those that hold, in the
  // order of treatment, which change their flowbits.
  void settle(std::span<const std::uint32_t> waiting, FlowBits* bits, Scratch& scratch,
              std::vector<std::uint32_t>& matched) const;
  // As collect(), of a piece of a stream, no rules but these, which were reported as unset().
  bool collect_unset(std::span<const std::uint32_t> rules, std::string_view piece, Scratch& scratch) const;
  // `matched`: rules (by index into rules().rules)
  // that hold are appended, in the order of treatment; noalert ones too. `bits`: of the packet's flow; null: it has
  // none, and rules that ask for one do not hold.
  Outcome inspect(Point point, const PacketFacts& packet, const FlowFacts& flow, FlowBits* bits, const Buffers& buffers,
                  const Found& found, Budget budget, Scratch& scratch, std::vector<std::uint32_t>& matched) const {
    return collect(point, packet, found, scratch) ? confirm(packet, flow, bits, buffers, budget, scratch, matched)
                                                  : Outcome();
  }

 private:
  struct Compiled {
    std::uint32_t rule;
    PayloadMatcher payload;
    struct Bits {
      Flowbits::Operation operation;
      bool any;
      FlowBits mask{};
    };
    std::vector<Bits> conditions, changes;
  };
  Detector(RuleSet set, TrafficClasses classes) : set_(std::move(set)), classes_(std::move(classes)) {}
  Expected<void> compile(const FlowBits& kept);
  void find_decisive();
  Expected<void> compile_flowbits(const Rule& rule, const FlowBits& kept, Compiled& compiled);
  std::optional<std::size_t> number_of_bit(const std::string& name, const FlowBits& kept);
  struct Searched {
    std::vector<Pattern> patterns;
    std::vector<std::uint32_t> numbers;  // by pattern; of HTTP
    std::size_t longest = 0;
  };
  const Searched& searched_in(Buffer buffer) const { return searched_[static_cast<std::size_t>(buffer)]; }
  // Rules of a point, by pattern.
  struct Group {
    BufferSet buffers;                                         // of the patterns
    bool is_empty = true;                                      // no rules; not of Point::packet
    std::vector<std::vector<std::uint32_t>> ranks_of_pattern;  // by number
    std::vector<std::vector<std::uint32_t>> without_pattern;   // ranks, by class; not of Point::packet
  };
  const Group& group(Point point) const { return groups_[static_cast<std::size_t>(point)]; }
  void collect_patterns();
  void find_askers_of_http(std::span<const RulePoints> points);
  using PatternNumbers = std::array<std::map<std::pair<std::string, bool>, std::uint32_t>, buffer_count>;
  void enter(std::uint32_t rank, const std::optional<BestPattern>& best, ClassMask classes, Point point,
             PatternNumbers& known);
  void enter_message(std::uint32_t rank, const std::optional<BestPattern>& best, ClassMask classes,
                     const RulePoints::OfMessage& at, PatternNumbers& known);
  bool enter_payload(const Rule& rule, ClassMask classes, PatternNumbers& known);
  std::size_t place_of(const BestPattern& pattern, ClassMask classes, PatternNumbers& known);
  static bool conditions_hold(const Compiled& compiled, const FlowBits* bits);
  static void change(const Compiled& compiled, FlowBits* bits, FlowBits& fresh);
  bool is_called_again(std::uint32_t rank, Point point, const FlowBits& fresh) const;
  static void add(std::uint32_t rank, Scratch& scratch);
  static void put_in_order(Scratch& scratch);
  PayloadVerdict verdict_of(std::uint32_t rank, const Buffers& buffers, std::uint64_t until, Scratch& scratch) const;
  void refuse(std::uint32_t rank, const PacketFacts& packet, const Found& found, Scratch& scratch) const;
  void begin(std::uint32_t rank, std::string_view window, Scratch& scratch) const;
  bool may_grow(std::uint32_t rank, std::string_view window) const;
  bool comes_with(std::uint32_t rank, std::string_view window, std::size_t piece) const;
  bool has_come(std::uint32_t rank, std::string_view window, const Scratch& scratch) const;
  bool depends_on_new_bytes(const Compiled& compiled) const;
  bool is_there(std::uint32_t rank, const PacketFacts& packet, const Found& found) const;

  RuleSet set_;
  TrafficClasses classes_;
  std::vector<Compiled> ranked_;        // in the order of treatment
  std::vector<std::uint32_t> rank_of_;  // by rule
  bool blocks_ = false;
  std::uint32_t decisive_ = 0;       // ranks below it are: they are the first ones in the order of treatment
  std::vector<HeaderGate> gates_;    // by rank
  std::vector<BestPattern> best_;    // by rank; empty: none that is searched
  std::vector<Needle> needles_;      // by rank: of best_
  std::vector<bool> has_key_;        // by rank, of Point::packet: its pattern is searched for
  std::vector<bool> about_packets_;  // by rank: is_about_packets()
  std::vector<bool> by_piece_;       // by rank: is_about_places()
  std::vector<bool> needs_end_;      // by rank: not while a body is growing
  std::vector<bool> by_new_bytes_;   // by rank: depends_on_new_bytes()
  // By rank: points, a bit each, where it is inspected once more (rules/rule_order.h).
  std::vector<std::uint8_t> again_;
  std::vector<bool> waits_;           // by rank: RulePoints::waits
  std::vector<bool> asks_http_;       // by rank, of Point::packet: for a flowbit that a rule of HTTP changes
  std::vector<bool> needs_payload_;   // by rank, of HTTP: a pattern that calls_for_http()
  std::vector<bool> calls_for_http_;  // by pattern of Point::packet
  std::array<Searched, buffer_count> searched_;
  std::uint32_t number_count_ = 0;
  std::array<Group, point_count> groups_;
  // Of Point::packet: rules without a pattern, and those whose pattern is not searched for.
  HeaderIndex without_pattern_, without_key_;
  HeaderIndex without_any_;   // both
  HeaderIndex of_addresses_;  // and those that are in none of them: is_about_addresses()
  ClassMask packet_classes_ = 0;
  BufferSet looked_at_;
  std::vector<std::string> bit_names_;
  FlowBits named_{};  // by these rules
};

}  // namespace sluice::match
