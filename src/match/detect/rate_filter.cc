#include "match/detect/rate_filter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "packet/flow_hash.h"

namespace sluice::match {
namespace {

constexpr std::uint64_t second = 1'000'000;

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

RateFilter::RateFilter(const RuleSet& rules, const RateSettings& settings)
    : seed_(settings.seed == 0 ? random_seed() : settings.seed) {
  bool keyed = false, unique = false;
  for (std::uint32_t r = 0; r < rules.rules.size(); ++r) {
    const Rule& rule = rules.rules[r];
    Rate rate{};
    if (!rule.thresholds.empty()) {
      const Threshold& one = rule.thresholds.front();
      constexpr std::array kinds{Kind::limit, Kind::threshold, Kind::both};  // as Threshold::Type
      rate = {kinds[static_cast<std::size_t>(one.type)], one.track, Unique::none, one.count, one.seconds * second};
    } else if (!rule.detection_filters.empty()) {
      const DetectionFilter& one = rule.detection_filters.front();
      rate = {Kind::detection, one.track, one.unique, one.count, one.seconds * second};
    } else {
      continue;
    }
    rate_of_.resize(r, no_rate);
    rate_of_.push_back(static_cast<std::uint32_t>(rates_.size()));
    rates_.push_back(rate);
    keyed |= rate.track != Track::by_rule;
    unique |= rate.unique != Unique::none;
  }
  by_rule_.resize(rates_.size());
  if (keyed) table_.resize(std::bit_ceil(std::max<std::size_t>(settings.entries, ways)));
  if (unique) sets_.resize(std::max(settings.port_sets, 1U));
  owners_.resize(sets_.size());
}

RateFilter::Key RateFilter::key_of(std::uint32_t rate, Track track, const PacketFacts& packet, std::uint64_t flow) {
  Key key;
  key.rate = rate;
  const auto set = [&](std::size_t at, const packet::IpAddress& address) {
    std::memcpy(&key.words[at], address.bytes.data(), address.bytes.size());
  };
  key.family = track == Track::by_flow ? 0 : packet.family;
  switch (track) {
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
    Count& count = of.track == Track::by_rule ? by_rule_[rate] : count_of(key_of(rate, of.track, packet, flow), now);
    count_up(of, packet, now, count);
    result = verdict(of, count);
  }
  if (result == RateVerdict::nothing) ++counters_.nothing;
  if (result == RateVerdict::action_only) ++counters_.action_only;
  return result;
}

// The key's count, or a place for it, whose period is over.
RateFilter::Count& RateFilter::count_of(const Key& key, std::uint64_t now) {
  using packet::detail::multiply_fold;
  const std::uint64_t ends = multiply_fold(key.words[0] ^ seed_, key.words[1] ^ 0x589965cc75374cc3U) ^
                             multiply_fold(key.words[2] ^ 0xe7037ed1a0b428dbU, key.words[3] ^ seed_);
  const std::uint64_t hash = multiply_fold(ends ^ seed_, std::uint64_t{key.rate} << 32 ^ 0x8ebc6af09c88c6e3U);
  Entry* const place = &table_[(hash & (table_.size() / ways - 1)) * ways];
  Entry* const end = place + ways;
  Entry* const known =
      std::find_if(place, end, [&](const Entry& one) { return one.count.until != 0 && one.key == key; });
  if (known != end) return known->count;
  Entry* const first = std::min_element(
      place, end, [](const Entry& one, const Entry& two) { return one.count.until < two.count.until; });
  if (first->count.until >= now) ++counters_.evicted;
  *first = {key, {}};
  return first->count;
}

void RateFilter::count_up(const Rate& rate, const PacketFacts& packet, std::uint64_t now, Count& count) {
  const bool unique = rate.unique != Unique::none;
  const bool lost = unique && count.until != 0 && owners_[count.set].ticket != count.ticket;
  if (count.until == 0 || now > count.until || lost) {
    count.until = now + rate.microseconds;
    count.count = 0;
    if (unique) take_set(count, now);
  }
  if (count.count == UINT32_MAX || (unique && !add_port(rate, packet, count))) return;
  ++count.count;
}

// Whether the packet's port is new in the period.
bool RateFilter::add_port(const Rate& rate, const PacketFacts& packet, Count& count) {
  if (!packet.has_ports) return false;
  const std::uint16_t port = rate.unique == Unique::src_port ? packet.source_port : packet.destination_port;
  std::uint64_t& word = sets_[count.set][port / 64];
  const std::uint64_t bit = std::uint64_t{1} << port % 64;
  const bool is_new = (word & bit) == 0;
  word |= bit;
  return is_new;
}

// An empty set for the period that `count` begins: its own from before, else that whose period ends first.
void RateFilter::take_set(Count& count, std::uint64_t now) {
  const bool own = count.ticket != 0 && owners_[count.set].ticket == count.ticket;
  if (!own) {
    const auto first = std::min_element(owners_.begin(), owners_.end(),
                                        [](const SetOwner& one, const SetOwner& two) { return one.until < two.until; });
    if (first->until >= now) ++counters_.sets_evicted;
    count.set = static_cast<std::uint32_t>(first - owners_.begin());
    count.ticket = ++last_ticket_;
  }
  sets_[count.set].fill(0);
  owners_[count.set] = {count.until, count.ticket};
}

RateVerdict RateFilter::verdict(const Rate& rate, Count& count) {
  switch (rate.kind) {
    case Kind::limit:
      return count.count <= rate.count ? RateVerdict::all : RateVerdict::action_only;
    case Kind::threshold:
      if (count.count < rate.count) return RateVerdict::nothing;
      count.count = 0;
      return RateVerdict::all;
    case Kind::both:
      if (count.count == rate.count) return RateVerdict::all;
      return count.count < rate.count ? RateVerdict::nothing : RateVerdict::action_only;
    case Kind::detection:
      return count.count > rate.count ? RateVerdict::all : RateVerdict::nothing;
  }
  return RateVerdict::nothing;
}

}  // namespace sluice::match
