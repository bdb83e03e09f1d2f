// How many frames and bytes each rule of a list has decided, and what no rule matched.
//
// HitCounters: the counters of one list. Each writer has an array of its own, on cache lines of its own, and adds
// without an atomic read-modify-write; any thread sums them up.
//
// RuleHits: what is reported of them. A reload brings another list with counters of its own. A rule that stays, with
// the same match, priority and action (and whatever name), keeps what it has counted, wherever in the list it then
// stands: the first of equal ones is the first of them again. So does the default if its action stays. A changed rule
// is a new one and begins at 0. Batches that are judged by the old list after that still count: nothing is lost. Totals
// by action count since the start, whatever becomes of rules.
//
// Threads: HitCounters::add(), one thread at a time for each writer; sum() any thread. RuleHits: list()
// and totals() any thread; all else on the thread that reloads, or before lanes run. Memory: 16 bytes a rule and
// writer, for each list that has a user; a copy of the rules. Cost: docs/acl.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/counted_rules.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/acl/acl_settings.h"

namespace sluice::function {

struct HitCount {
  std::uint64_t frames = 0, bytes = 0;
  HitCount& operator+=(const HitCount& other) {
    frames += other.frames;
    bytes += other.bytes;
    return *this;
  }
};

// One writer.
struct alignas(16) HitCounter {
  std::atomic<std::uint64_t> frames{0}, bytes{0};
  void add(std::uint32_t length) {
    frames.store(frames.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    bytes.store(bytes.load(std::memory_order_relaxed) + length, std::memory_order_relaxed);
  }
  HitCount get() const { return {frames.load(std::memory_order_relaxed), bytes.load(std::memory_order_relaxed)}; }
};

class HitCounters {
 public:
  // `places`: the rules', and behind them the default's.
  HitCounters(std::uint32_t writers, std::uint32_t places);

  void add(std::uint32_t writer, std::uint32_t place, std::uint32_t length) { at(writer, place).add(length); }
  HitCount sum(std::uint32_t place) const;
  std::uint32_t places() const { return places_; }
  HitCounter& at(std::uint32_t writer, std::uint32_t place) const { return first_[writer * stride_ + place]; }

 private:
  // Two cache lines, which processors fetch together.
  static constexpr std::size_t apart = 128;

  std::uint32_t writers_, places_;
  std::size_t stride_;
  std::unique_ptr<HitCounter[], decltype(&std::free)> first_;
};

class RuleHits final : public engine::CountedRules {
 public:
  explicit RuleHits(std::uint32_t writers) : writers_(writers) {}

  // A list that may follow the one in force, worked out: enter() cannot fail.
  struct Next {
    std::vector<lookup::acl::AclRule> rules;
    std::vector<lookup::acl::RuleText> texts;
    bool deny_others = false;
    std::shared_ptr<HitCounters> counters;
    std::vector<std::uint32_t> heir;  // by place in the list in force: its place in this one, or `gone`
  };
  // What is written as one rule (AclRule::text, of `texts`) is one row, behind one another in `rules`.
  std::unique_ptr<Next> next(std::span<const lookup::acl::AclRule> rules, bool deny_others,
                             std::span<const lookup::acl::RuleText> texts = {}) const;
  // In force from now on; before any lane counts by it.
  void enter(std::unique_ptr<Next> next);
  // Lets go the counters of lists that nobody else holds; what they counted stays.
  void fold();

  // The rules in force. The thread that reloads.
  const std::vector<lookup::acl::AclRule>& rules() const { return rules_; }

  Listing list(std::uint32_t limit) const override;

  // By action (ActionKind), and last of frames that no rule matched. Reads every counter.
  using Totals = std::array<HitCount, lookup::acl::action_kinds + 1>;
  Totals totals() const;

 private:
  static constexpr std::uint32_t gone = 0xffff'ffff;
  // Of a list that was in force: to be added to its heirs'.
  struct Left {
    std::shared_ptr<HitCounters> counters;
    std::vector<std::uint32_t> heir;  // by its place: that in the list in force, or `gone`
    std::vector<std::uint8_t> total;  // by its place: which of the totals
  };
  std::vector<std::uint8_t> totals_of_places() const;
  engine::CountedRule row_of(const lookup::acl::AclRule& rule) const;
  HitCount count(std::uint32_t place) const;

  const std::uint32_t writers_;
  mutable std::mutex mutex_;  // of all below, for writing and for list()
  std::vector<lookup::acl::AclRule> rules_;
  std::vector<lookup::acl::RuleText> texts_;
  bool deny_others_ = false;
  std::shared_ptr<HitCounters> counters_;
  std::vector<HitCount> before_;  // by place: what lists that are let go have counted
  std::vector<Left> left_;
  Totals gone_{};  // of rules that are no more
};

}  // namespace sluice::function
