#include "match/detect/rate_filter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/random_seed.h"
#include "packet/flow_hash.h"

namespace sluice::match {
namespace {

constexpr std::uint64_t second = 1'000'000;

}  // namespace

RateFilter::RateFilter(const RuleSet& rules, const RateSettings& settings) {
  for (std::uint32_t r = 0; r < rules.rules.size(); ++r) {
    const Rule& rule = rules.rules[r];
    if (!rule.thresholds.empty()) {
      add(r, rate_of(rule, rule.thresholds.front()));
    } else if (!rule.detection_filters.empty()) {
      const DetectionFilter& one = rule.detection_filters.front();
      add(r, {Kind::detection, one.track, one.unique, rule.gid, rule.sid, one.count, one.seconds * second});
    }
  }
  take_memory(settings);
}

RateFilter::RateFilter(const RuleSet& rules, std::span<const RuleThreshold> thresholds, const RateSettings& settings) {
  for (const RuleThreshold& one : thresholds) add(one.rule, rate_of(rules.rules[one.rule], one.threshold));
  take_memory(settings);
}

RateFilter::Rate RateFilter::rate_of(const Rule& rule, const Threshold& threshold) {
  constexpr std::array kinds{Kind::limit, Kind::threshold, Kind::both};  // as Threshold::Type
  const Kind kind = kinds[static_cast<std::size_t>(threshold.type)];
  return {kind, threshold.track, Unique::none, rule.gid, rule.sid, threshold.count, threshold.seconds * second};
}

void RateFilter::add(std::uint32_t rule, const Rate& rate) {
  rate_of_.resize(rule, no_rate);
  rate_of_.push_back(static_cast<std::uint32_t>(rates_.size()));
  rates_.push_back(rate);
}

void RateFilter::take_memory(const RateSettings& settings) {
  seed_ = settings.seed == 0 ? random_seed() : settings.seed;
  const bool keyed = std::ranges::any_of(rates_, [](const Rate& rate) { return rate.track != Track::by_rule; });
  const bool unique = std::ranges::any_of(rates_, [](const Rate& rate) { return rate.unique != Unique::none; });
  by_rule_.resize(rates_.size());
  if (keyed) table_.resize(std::bit_ceil(std::max<std::size_t>(settings.entries, ways)));
  if (unique) sets_.resize(std::max<std::size_t>(settings.port_sets, 1));
  owners_.resize(sets_.size());
}

void RateFilter::take_over(RateFilter& before) {
  last_ticket_ = before.last_ticket_;  // no set of before is taken for one of this
  counters_ = before.counters_;
  if (table_.size() == before.table_.size()) {
    std::swap(table_, before.table_);
    std::swap(seed_, before.seed_);
  }
  if (sets_.size() == before.sets_.size()) {
    std::swap(sets_, before.sets_);
    std::swap(owners_, before.owners_);
  }
}

RateFilter::Key RateFilter::key_of(const Rate& rate, const PacketFacts& packet, std::uint64_t flow) {
  Key key;
  key.gid = rate.gid;
  key.sid = rate.sid;
  const auto set = [&](std::size_t at, const packet::IpAddress& address) {
    std::memcpy(&key.words[at], address.bytes.data(), address.bytes.size());
  };
  key.family = rate.track == Track::by_flow ? 0 : packet.family;
  switch (rate.track) {
    case Track::by_src:
      set(0, packet.source);
      break;
    case Track::by_dst:
      set(0, packet.destination);
      break;
    case Track::by_both: {
      const bool swapped = packet.destination.bytes < packet.source.bytes;
      set(0, swapped ? packet.destination : packet.source);
      set(2, swapped ? packet.source : packet.destination);
      break;
    }
    case Track::by_flow:
      key.words[0] = flow;
      break;
    case Track::by_rule:
      break;
  }
  return key;
}

RateVerdict RateFilter::count(std::uint32_t rate, const PacketFacts& packet, std::uint64_t flow, std::uint64_t now) {
  const Rate& of = rates_[rate];
  RateVerdict result = RateVerdict::nothing;
  if (of.track != Track::by_flow || flow != 0) {
    Entry& entry = of.track == Track::by_rule ? by_rule_[rate] : entry_of(key_of(of, packet, flow), now);
    count_up(of, packet, now, entry);
    result = verdict(of, entry);
  }
  if (result == RateVerdict::nothing) ++counters_.nothing;
  if (result == RateVerdict::action_only) ++counters_.action_only;
  return result;
}

// The key's count, or a place for it, whose period has not begun.
RateFilter::Entry& RateFilter::entry_of(const Key& key, std::uint64_t now) {
  using packet::detail::multiply_fold;
  const std::uint64_t ends = multiply_fold(key.words[0] ^ seed_, key.words[1] ^ 0x589965cc75374cc3U) ^
                             multiply_fold(key.words[2] ^ 0xe7037ed1a0b428dbU, key.words[3] ^ seed_);
  const std::uint64_t rule = std::uint64_t{key.gid} << 32 | key.sid;
  const std::uint64_t hash = multiply_fold(ends ^ seed_, rule ^ 0x8ebc6af09c88c6e3U);
  Entry* const place = &table_[(hash & (table_.size() / ways - 1)) * ways];
  Entry* const end = place + ways;
  Entry* const known = std::find_if(place, end, [&](const Entry& one) { return one.until != 0 && one.is_of(key); });
  if (known != end) return *known;
  Entry* const first =
      std::min_element(place, end, [](const Entry& one, const Entry& two) { return one.until < two.until; });
  if (first->until >= now) ++counters_.evicted;
  *first = {};
  first->words = key.words;
  first->gid = key.gid;
  first->sid = key.sid;
  first->family = key.family;
  return *first;
}

void RateFilter::count_up(const Rate& rate, const PacketFacts& packet, std::uint64_t now, Entry& entry) {
  const bool unique = rate.unique != Unique::none;
  const bool lost = unique && entry.until != 0 && !owns_set(entry);
  if (entry.until == 0 || now > entry.until || lost) {
    entry.until = now + rate.microseconds;
    entry.count = 0;
    if (unique) take_set(entry, now);
  }
  if (entry.count == UINT32_MAX || (unique && !add_port(rate, packet, entry))) return;
  ++entry.count;
}

// Whether the packet's port is new in the period.
bool RateFilter::add_port(const Rate& rate, const PacketFacts& packet, const Entry& entry) {
  if (!packet.has_ports) return false;
  const std::uint16_t port = rate.unique == Unique::src_port ? packet.source_port : packet.destination_port;
  std::uint64_t& word = sets_[entry.set][port / 64];
  const std::uint64_t bit = std::uint64_t{1} << port % 64;
  const bool is_new = (word & bit) == 0;
  word |= bit;
  return is_new;
}

// An empty set for the period that `entry` begins: its own from before, else that whose period ends first.
void RateFilter::take_set(Entry& entry, std::uint64_t now) {
  if (!owns_set(entry)) {
    const auto first = std::min_element(owners_.begin(), owners_.end(),
                                        [](const SetOwner& one, const SetOwner& two) { return one.until < two.until; });
    if (first->until >= now) ++counters_.sets_evicted;
    entry.set = static_cast<std::uint16_t>(first - owners_.begin());
    entry.ticket = ++last_ticket_;
  }
  sets_[entry.set].fill(0);
  owners_[entry.set] = {entry.until, entry.ticket};
}

RateVerdict RateFilter::verdict(const Rate& rate, Entry& entry) {
  switch (rate.kind) {
    case Kind::limit:
      return entry.count <= rate.count ? RateVerdict::all : RateVerdict::action_only;
    case Kind::threshold:
      if (entry.count < rate.count) return RateVerdict::nothing;
      entry.count = 0;
      return RateVerdict::all;
    case Kind::both:
      if (entry.count == rate.count) return RateVerdict::all;
      return entry.count < rate.count ? RateVerdict::nothing : RateVerdict::action_only;
    case Kind::detection:
      return entry.count > rate.count ? RateVerdict::all : RateVerdict::nothing;
  }
  return RateVerdict::nothing;
}

}  // namespace sluice::match
