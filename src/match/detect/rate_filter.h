// Counts the matches of rules with `threshold` or `detection_filter`: whether one that holds is reported, and acted
// upon.
//
//     RateFilter rates(rule_set, settings);                              // a lane's
//     switch (rates.judge(rule, packet, flow, microseconds)) ...         // for each rule that held, once
//
// As Suricata counts (detect-engine-threshold.c). A period begins with a match and lasts `seconds`, its last
// microsecond included; the first match behind it begins the next. n: matches of the period so far, this one included.
//
//   threshold, type limit       n <= count: all        n > count: action only
//   threshold, type threshold   each count-th: all     others: nothing; the period goes on behind an alert
//   threshold, type both        n == count: all        n < count: nothing; n > count: action only
//   detection_filter            n > count: all         others: nothing
//
// "All" is alert and action, "action only" drops or passes without an alert, "nothing" lets the packet be as if the
// rule had not held (but for its flowbits). With `unique_on`, n counts the distinct ports of the period's matches; a
// packet without ports adds none.
//
// What is counted apart: source address (by_src), destination address (by_dst), the two whichever way (by_both), the
// flow (by_flow: without a flow, nothing), or all together (by_rule); each for its own rule.
//
// Bounded: `entries` counts of 64 bytes, and `port_sets` sets of ports of 8 KiB for unique_on, taken here if any rule
// needs them; by_rule has a place of its own for each rule. Where eight counts share a place of the table, a ninth
// evicts one whose period is over, else the one whose period ends first; its count begins anew, later than it should.
// A sender of many addresses can do that to others' counts: `evicted` and `sets_evicted` say how often.
//
// Thread-safety: none, one lane. Each lane counts by itself. Cost: two cache misses at most, and clearing 8 KiB when a
// period of unique_on begins.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "match/confirm/packet_facts.h"
#include "match/rules/rule_set.h"

namespace sluice::match {

enum class RateVerdict : std::uint8_t { nothing, action_only, all };

struct RateSettings {
  std::uint32_t entries = 65'536;  // rounded up to a power of two, at least 8
  std::uint16_t port_sets = 256;   // at least 1
  std::uint64_t seed = 0;          // of the table's hash; 0: random
};

struct RateCounters {
  std::uint64_t action_only = 0;   // matches without an alert
  std::uint64_t nothing = 0;       // matches without effect
  std::uint64_t evicted = 0;       // counts lost within their period
  std::uint64_t sets_evicted = 0;  // sets of ports likewise: their count begins anew
};

// A count for the rule of that number, besides what the rule says itself.
struct RuleThreshold {
  std::uint32_t rule;  // of rules.rules
  Threshold threshold;
};

class RateFilter {
 public:
  // As the rules say it.
  RateFilter(const RuleSet& rules, const RateSettings& settings);
  // As others say it; in the rules' order, one for each at most.
  RateFilter(const RuleSet& rules, std::span<const RuleThreshold> thresholds, const RateSettings& settings);

  // Goes on with the counts of `before`, which is not used any more: those of rules with the same gid and sid, but for
  // by_rule, whose counts begin anew. Exchanges pointers: no cost. All begin anew where the settings differ.
  void take_over(RateFilter& before);

  // `rule`: of rules.rules. `flow`: a number that is the flow's own, 0: none. A time before an earlier one is taken as
  // it is.
  RateVerdict judge(std::uint32_t rule, const PacketFacts& packet, std::uint64_t flow, std::uint64_t microseconds) {
    if (rule >= rate_of_.size() || rate_of_[rule] == no_rate) return RateVerdict::all;
    return count(rate_of_[rule], packet, flow, microseconds);
  }
  const RateCounters& counters() const { return counters_; }
  std::uint64_t memory_bytes() const {
    return table_.size() * sizeof(Entry) + sets_.size() * (sizeof(PortSet) + sizeof(SetOwner)) +
           by_rule_.size() * sizeof(Entry);
  }

 private:
  static constexpr std::uint32_t no_rate = 0xffffffff;
  static constexpr std::size_t ways = 8;
  using Unique = DetectionFilter::Unique;

  enum class Kind : std::uint8_t { limit, threshold, both, detection };
  struct Rate {
    Kind kind;
    Track track;
    Unique unique;
    std::uint32_t gid, sid;
    std::uint32_t count;
    std::uint64_t microseconds;
  };
  struct Key {
    std::array<std::uint64_t, 4> words{};  // two addresses, or a flow
    std::uint32_t gid = 0, sid = 0;
    std::uint16_t family = 0;
  };
  struct alignas(64) Entry {
    std::array<std::uint64_t, 4> words{};
    std::uint64_t until = 0;  // the period's last microsecond; 0: none has begun
    std::uint32_t gid = 0, sid = 0;
    std::uint32_t count = 0;
    std::uint32_t ticket = 0;  // this one
    std::uint16_t set = 0;     // of sets_, if its owner's ticket is
    std::uint16_t family = 0;
    bool is_of(const Key& key) const {
      return words == key.words && sid == key.sid && gid == key.gid && family == key.family;
    }
  };
  static_assert(sizeof(Entry) == 64);
  using PortSet = std::array<std::uint64_t, 1024>;
  // Of the count that a set is for; apart from the bits, so that looking for one is cheap.
  struct SetOwner {
    std::uint64_t until = 0;
    std::uint32_t ticket = 0;
  };

  static Rate rate_of(const Rule& rule, const Threshold& threshold);
  void add(std::uint32_t rule, const Rate& rate);
  void take_memory(const RateSettings& settings);
  static Key key_of(const Rate& rate, const PacketFacts& packet, std::uint64_t flow);
  RateVerdict count(std::uint32_t rate, const PacketFacts& packet, std::uint64_t flow, std::uint64_t now);
  Entry& entry_of(const Key& key, std::uint64_t now);
  void count_up(const Rate& rate, const PacketFacts& packet, std::uint64_t now, Entry& entry);
  bool add_port(const Rate& rate, const PacketFacts& packet, const Entry& entry);
  bool owns_set(const Entry& entry) const {
    return entry.ticket != 0 && entry.set < owners_.size() && owners_[entry.set].ticket == entry.ticket;
  }
  void take_set(Entry& entry, std::uint64_t now);
  static RateVerdict verdict(const Rate& rate, Entry& entry);

  std::vector<Rate> rates_;
  std::vector<std::uint32_t> rate_of_;  // by rule, up to the last that has one
  std::vector<Entry> by_rule_;          // by rate
  std::vector<Entry> table_;
  std::vector<PortSet> sets_;
  std::vector<SetOwner> owners_;  // by set
  std::uint32_t last_ticket_ = 0;
  std::uint64_t seed_ = 0;
  RateCounters counters_;
};

}  // namespace sluice::match
