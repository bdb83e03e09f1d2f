#include "ipsec/spd.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/random_seed.h"
#include "ipsec/security_association.h"

namespace sluice::ipsec {
namespace {

std::uint64_t rank_of(const Policy& policy) {
  constexpr unsigned longest = 256;  // both prefixes of IPv6 together
  const unsigned lengths = policy.selector.source.length + policy.selector.destination.length;
  return std::uint64_t{policy.priority} << 16 | (longest - lengths);
}

bool is_host(const packet::IpPrefix& prefix) {
  return prefix.length == prefix.address.bits();
}

Expected<void> check(const Policy& policy) {
  if (auto fine = policy.selector.check(); !fine) return fine;
  const std::string of = "the policy " + policy.selector.str();
  const std::vector<Template>& templates = policy.templates;
  if (policy.action != Action::protect) {
    if (templates.empty()) return {};
    return make_error(of + " has templates, which only a policy that protects may have");
  }
  const bool both =
      templates.size() == 2 && templates[0].protocol == Protocol::esp && templates[1].protocol == Protocol::ah;
  if (templates.size() != 1 && !both) {
    return make_error(of + " needs a template of ESP or AH, or ESP and then AH around it");
  }
  for (const Template& one : templates) {
    if (one.protocol != Protocol::esp && one.protocol != Protocol::ah) {
      return make_error(of + " has a template of protocol " + std::to_string(static_cast<int>(one.protocol)) +
                        "; there are ESP and AH");
    }
    const bool open = policy.direction == Direction::in && one.source.empty() && one.destination.empty();
    if (one.mode == Mode::tunnel && !open && (one.source.empty() || one.source.family != one.destination.family)) {
      return make_error(of + " has a template for a tunnel without its two addresses of one family");
    }
  }
  return {};
}

EntryTemplate entry_template(const Template& of) {
  EntryTemplate entry{
      .reqid = of.reqid, .spi = of.spi, .protocol = of.protocol, .mode = of.mode, .optional = of.optional};
  if (of.mode != Mode::tunnel) return entry;
  entry.source = of.source.bytes;
  entry.destination = of.destination.bytes;
  entry.family = of.source.family;
  return entry;
}

// Templates whose SA is found by the addresses of each packet.
std::uint8_t per_packet_of(const Policy& policy) {
  std::uint8_t bits = 0;
  if (is_host(policy.selector.source) && is_host(policy.selector.destination)) return bits;
  for (std::size_t i = 0; i < policy.templates.size() && policy.templates[i].mode == Mode::transport; ++i) {
    bits |= static_cast<std::uint8_t>(1U << i);
  }
  return bits;
}

}  // namespace

std::size_t Spd::SelectorHash::operator()(const Selector& selector) const {
  const MaskedKey masked = masked_key(selector);
  return masked_hash(masked.value, masked.value, 0) ^ masked_hash(masked.mask, masked.mask, 1);
}

Spd::Spd(std::size_t capacity) : pool_(capacity), table_(capacity), seed_(random_seed()) {
  tuples_.lists = std::make_shared<Tuples::Lists>();
}

Expected<Spd::Handle> Spd::make(const Policy& policy, bool replaces) {
  if (auto fine = check(policy); !fine) return tl::unexpected(fine.error());
  const Selector selector = policy.selector.normal();
  const PolicyEntry* const before = entry(selector);
  if (before != nullptr && !replaces) return make_error("there is a policy " + selector.str() + " already");
  Handle made = pool_.make();
  if (made == nullptr) {
    return make_error("no capacity for the policy " + selector.str() + ": there is one for " +
                      std::to_string(pool_.capacity()));
  }
  const MaskedKey masked = masked_key(selector);
  std::copy_n(masked.value.word.begin(), 2, made->value.begin());
  std::copy_n(masked.value.word.begin() + 2, 3, made->more_value.begin());
  made->rank = rank_of(policy);
  made->order = before != nullptr && before->rank == made->rank ? before->order : ++last_order_;
  made->index = pool_.index_of(made.get());
  made->action = policy.action;
  made->templates = static_cast<std::uint8_t>(policy.templates.size());
  made->per_packet = per_packet_of(policy);
  std::ranges::transform(policy.templates, made->with.begin(), entry_template);
  made->policy = policy;
  made->policy.selector = selector;
  return made;
}

// Both before and after the change: what is packed is listed by itself.
void Spd::enter(PolicyEntry& entry, TupleState& tuple) {
  const Rank rank(entry.rank, entry.order);
  tuple.policies.emplace(rank, &entry);
  lists_changed_ |= tuple.policies.size() <= few + 1 || tuple.policies.begin()->first == rank;
  by_rank_.emplace(rank, &entry);
  by_order_.emplace(entry.order, &entry);
}

void Spd::leave(const PolicyEntry& entry, TupleState& tuple) {
  const Rank rank(entry.rank, entry.order);
  lists_changed_ |= tuple.policies.size() <= few + 1 || tuple.policies.begin()->first == rank;
  tuple.policies.erase(rank);
  by_rank_.erase(rank);
  by_order_.erase(entry.order);
}

// The table first, the list of tuples then: what a search sees in between is what was before.
Spd::Handle Spd::put(Handle fresh) {
  PolicyEntry* const entry = fresh.get();
  const MaskedKey masked = masked_key(entry->policy.selector);
  TupleState& tuple = states_of(entry->policy.selector)[masked.mask.word];
  if (tuple.number == 0) {
    tuple.number = ++last_tuple_;
    tuple.seed = seed_ ^ tuple.number * 0x9e3779b97f4a7c15U;
  }
  entry->tuple = tuple.number;
  Handle& place = entries_[entry->policy.selector];
  Handle before = std::exchange(place, std::move(fresh));
  const std::uint64_t hash = masked_hash(masked.value, masked.mask, tuple.seed);
  if (before != nullptr) {
    table_.replace(hash, before->index, entry->index);
    leave(*before, tuple);
  } else {
    table_.insert(hash, entry->index);
  }
  enter(*entry, tuple);
  list_tuples();
  return before;
}

Spd::Handle Spd::take(const Selector& selector) {
  const auto at = entries_.find(selector.normal());
  if (at == entries_.end()) return {};
  Handle gone = std::move(at->second);
  entries_.erase(at);
  const MaskedKey masked = masked_key(gone->policy.selector);
  States& states = states_of(gone->policy.selector);
  const auto state = states.find(masked.mask.word);
  table_.erase(masked_hash(masked.value, masked.mask, state->second.seed), gone->index);
  leave(*gone, state->second);
  if (state->second.policies.empty()) states.erase(state);
  list_tuples();
  return gone;
}

template <std::size_t words>
void Spd::list_family(const States& states, Tuples::Family<words>& family) {
  std::vector<const PolicyEntry*> packed;
  for (const auto& [mask, state] : states) {
    for (std::size_t i = 0; i < mask.size(); ++i) family.every.word[i] |= mask[i];
    if (state.policies.size() <= few) {
      for (const auto& [rank, entry] : state.policies) packed.push_back(entry);
    } else {
      const std::uint64_t lowest = state.policies.begin()->first.first;
      family.large.push_back({.mask = {mask}, .lowest = lowest, .seed = state.seed, .number = state.number});
    }
  }
  std::ranges::sort(family.large, {}, &Tuples::Tuple::lowest);
  std::ranges::sort(packed, {}, [](const PolicyEntry* entry) { return Rank(entry->rank, entry->order); });
  family.packed = PackedPolicies<words>(packed);
  family.is_long = packed_as_a_table * family.large.size() + packed.size() >= search_to_cache;
}

void Spd::list_tuples() {
  ++tuples_.serial;
  if (!std::exchange(lists_changed_, false)) return;
  auto lists = std::make_shared<Tuples::Lists>();
  list_family(states_[0], lists->ipv4);
  list_family(states_[1], lists->ipv6);
  tuples_.lists = std::move(lists);
}

PolicyEntry* Spd::entry(const Selector& selector) const {
  const auto at = entries_.find(selector.normal());
  return at == entries_.end() ? nullptr : at->second.get();
}

PolicyEntry* Spd::entry(std::uint64_t order) const {
  const auto at = by_order_.find(order);
  return at == by_order_.end() ? nullptr : at->second;
}

std::vector<Policy> Spd::policies(std::size_t most) const {
  std::vector<Policy> all;
  all.reserve(std::min(most, by_rank_.size()));
  for (const auto& [rank, entry] : by_rank_) {
    if (all.size() == most) break;
    all.push_back(entry->policy);
  }
  return all;
}

}  // namespace sluice::ipsec
