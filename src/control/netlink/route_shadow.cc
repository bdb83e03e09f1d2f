#include "control/netlink/route_shadow.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cstring>

namespace sluice::control::netlink {

using function::RouteKind;

namespace {
constexpr std::size_t most_retries = 8192;             // at a time: some ten milliseconds
constexpr std::chrono::milliseconds tick(10);          // of the kernel's times for user space
constexpr std::chrono::milliseconds after_expiry(50);  // so that the kernel's clock is past it, too
}  // namespace

std::size_t RouteShadow::Hash::operator()(const packet::IpPrefix& prefix) const noexcept {
  std::uint64_t high;
  std::uint64_t low;
  std::memcpy(&high, prefix.address.bytes.data(), 8);
  std::memcpy(&low, prefix.address.bytes.data() + 8, 8);
  std::uint64_t hash = (high ^ (low * 0x9e3779b97f4a7c15ULL) ^ prefix.length) * 0xbf58476d1ce4e5b9ULL;
  hash = (hash ^ (hash >> 32)) * 0x94d049bb133111ebULL;
  return hash ^ (hash >> 29);
}

RouteShadow::Join RouteShadow::join_of(std::uint16_t flags, int family) {
  if ((flags & NLM_F_REPLACE) != 0) return Join::replace;
  if ((flags & NLM_F_EXCL) != 0) return Join::only;
  // IPv6 has no "prepend": a route that is neither first nor a replacement goes behind the others.
  return (flags & NLM_F_APPEND) != 0 || family == 6 ? Join::append : Join::prepend;
}

RouteShadow::Candidate RouteShadow::candidate_of(const RouteMessage& message) {
  Candidate candidate;
  candidate.metric = message.metric;
  candidate.nexthop_id = message.nexthop_id;
  candidate.hops = message.nexthop_id != 0 ? no_hops : hops_.intern(message.hops);
  candidate.generation = table_of(message.prefix.address.family).generation;
  candidate.type = message.type;
  candidate.protocol = message.protocol;
  candidate.tos = message.tos;
  candidate.source_length = message.source_length;
  candidate.local_table = message.table == RT_TABLE_LOCAL;
  candidate.expired = message.expires < 0;
  candidate.preference = message.preference;
  return candidate;
}

// Whether every hop of `smaller` is one of `larger`, alive or not, of any weight.
bool RouteShadow::covers(HopSetId larger, HopSetId smaller) const {
  const auto& all = hops_.hops(larger);
  return std::ranges::all_of(hops_.hops(smaller), [&](const Hop& wanted) {
    return std::ranges::any_of(
        all, [&](const Hop& hop) { return hop.ifindex == wanted.ifindex && hop.gateway == wanted.gateway; });
  });
}

// The route that `wanted` takes the place of, or end(). Routes of the same metric that it does not replace stay beside
// it.
RouteShadow::Candidates::iterator RouteShadow::find_replaced(Candidates& candidates, const Candidate& wanted, Join join,
                                                             int family) {
  const std::uint32_t generation = table_of(family).generation;
  const auto first = [&](auto condition) {
    return std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& known) {
      return known.generation != pinned && known.same_key(wanted) && condition(known);
    });
  };
  auto same = first([&](const Candidate& known) {
    return known.type == wanted.type && known.protocol == wanted.protocol && known.nexthop_id == wanted.nexthop_id &&
           known.hops == wanted.hops;
  });
  if (same != candidates.end()) return same;
  switch (join) {
    case Join::dumped:
      return first([&](const Candidate& known) { return known.generation != generation; });
    case Join::only:
    case Join::replace:
      return first([](const Candidate&) { return true; });
    case Join::append:
      // An IPv6 route that gained a hop is announced whole.
      return first([&](const Candidate& known) {
        return family == 6 && known.nexthop_id == 0 && known.hops != no_hops && covers(wanted.hops, known.hops);
      });
    case Join::prepend:
      return candidates.end();
  }
  return candidates.end();
}

void RouteShadow::insert(Candidates& candidates, const Candidate& wanted, Join join) {
  // A dump has the routes in the kernel's order: those that it has not named yet come behind, or are gone.
  const auto goes_before_equal = [&](const Candidate& known) {
    return join == Join::prepend || (join == Join::dumped && known.generation != wanted.generation);
  };
  auto before = candidates.before_begin();
  for (auto next = candidates.begin(); next != candidates.end(); before = next++) {
    if (next->order() > wanted.order() || (next->order() == wanted.order() && goes_before_equal(*next))) break;
  }
  candidates.insert_after(before, wanted);
}

void RouteShadow::add(const RouteMessage& message, Join join) {
  const int family = message.prefix.address.family;
  const Candidate wanted = candidate_of(message);
  auto& [prefix, entry] = *table_of(family).prefixes.try_emplace(message.prefix).first;
  nexthops_.retain(wanted.nexthop_id);
  has_advertised_ |= message.protocol == RTPROT_RA;
  if (const auto place = find_replaced(entry.candidates, wanted, join, family); place != entry.candidates.end()) {
    nexthops_.release(place->nexthop_id);
    const bool alone = std::next(entry.candidates.begin()) == entry.candidates.end();
    if (place->order() == wanted.order() && (join != Join::dumped || alone)) {
      *place = wanted;
    } else {
      entry.candidates.remove_if([&](const Candidate& known) { return &known == &*place; });
      insert(entry.candidates, wanted, join);
    }
  } else {
    insert(entry.candidates, wanted, join);
  }
  if (message.expires > 0) next_expiry_ = std::min(next_expiry_, Clock::now() + message.expires * tick + after_expiry);
  announce(prefix, entry);
}

// The position before the route that a notification says is gone: the very same one, else an IPv6 route that has its
// hops among others, else (IPv4) the first of its metric; before the end when there is none.
RouteShadow::Candidates::iterator RouteShadow::find_removed(Candidates& candidates, const Candidate& gone, int family) {
  const auto before_first = [&](auto condition) {
    auto before = candidates.before_begin();
    for (auto next = candidates.begin(); next != candidates.end(); before = next++) {
      if (next->generation != pinned && next->same_key(gone) && next->type == gone.type && condition(*next)) break;
    }
    return before;
  };
  const auto same = before_first(
      [&](const Candidate& known) { return known.nexthop_id == gone.nexthop_id && known.hops == gone.hops; });
  if (std::next(same) != candidates.end()) return same;
  return before_first([&](const Candidate& known) {
    return family == 4 || (known.nexthop_id == gone.nexthop_id && covers(known.hops, gone.hops));
  });
}

void RouteShadow::remove(const RouteMessage& message) {
  auto& prefixes = table_of(message.prefix.address.family).prefixes;
  const auto found = prefixes.find(message.prefix);
  if (found == prefixes.end()) return;
  auto& [prefix, entry] = *found;
  const Candidate gone = candidate_of(message);
  const auto victim_before = find_removed(entry.candidates, gone, message.prefix.address.family);
  const auto victim = std::next(victim_before);
  if (victim == entry.candidates.end()) return;
  std::vector<Hop> left = hops_.hops(victim->hops);
  std::erase_if(left, [&](const Hop& hop) {
    return std::ranges::any_of(message.hops, [&](const Hop& removed) {
      return hop.ifindex == removed.ifindex && hop.gateway == removed.gateway;
    });
  });
  const bool is_v6 = message.prefix.address.family == 6;
  // An IPv6 route may lose one hop of several.
  if (is_v6 && message.nexthop_id == 0 && !left.empty() && !message.hops.empty()) {
    victim->hops = hops_.intern(left);
  } else {
    nexthops_.release(victim->nexthop_id);
    entry.candidates.erase_after(victim_before);
  }
  announce(prefix, entry);
  if (entry.candidates.empty() && !entry.is_announced) prefixes.erase(found);
}

void RouteShadow::pin_local(const packet::IpPrefix& prefix) {
  Candidate candidate;
  candidate.generation = pinned;
  candidate.type = RTN_LOCAL;
  candidate.protocol = RTPROT_KERNEL;
  candidate.local_table = true;
  Entry& entry = table_of(prefix.address.family).prefixes[prefix];
  entry.candidates.push_front(candidate);
  announce(prefix, entry);
}

void RouteShadow::begin_dump(int family) {
  ++table_of(family).generation;
  if (family == 4) return;
  forget_expiries();  // the dump names them anew
  has_advertised_ = false;
}

void RouteShadow::end_dump(int family) {
  Table& table = table_of(family);
  for (auto next = table.prefixes.begin(); next != table.prefixes.end();) {
    auto& [prefix, entry] = *next;
    entry.candidates.remove_if([&](const Candidate& known) {
      const bool gone = known.generation != table.generation && known.generation != pinned;
      if (gone) nexthops_.release(known.nexthop_id);
      return gone;
    });
    announce(prefix, entry);
    next = entry.candidates.empty() && !entry.is_announced ? table.prefixes.erase(next) : std::next(next);
  }
}

std::optional<RouteShadow::Announced> RouteShadow::effective(const Candidate& candidate) {
  if (candidate.expired) return std::nullopt;
  Announced announced{candidate.metric, no_hops, RouteKind::local, candidate.protocol, false};
  switch (candidate.type) {
    case RTN_BLACKHOLE:
      announced.kind = RouteKind::blackhole;
      break;
    case RTN_UNREACHABLE:
    case RTN_PROHIBIT:
    case RTN_THROW:
      announced.kind = RouteKind::unreachable;
      break;
    case RTN_UNICAST: {
      NexthopTable::Target target{false, candidate.hops};
      if (candidate.nexthop_id != 0) {
        const auto resolved = nexthops_.resolve(candidate.nexthop_id);
        if (!resolved) break;  // the kernel knows more than we do: let it forward
        target = *resolved;
      }
      if (target.blackhole) {
        announced.kind = RouteKind::blackhole;
        break;
      }
      const Resolved& resolved = hops_.resolved(target.hops);
      if (!resolved.usable) return std::nullopt;
      announced.kind = resolved.kind;
      announced.elsewhere = announced.kind == RouteKind::local;
      if (announced.kind == RouteKind::unicast) announced.hops = target.hops;
      break;
    }
    default:
      break;  // an address of the host, a broadcast or a multicast group
  }
  // It holds for some frames only, by TOS or source address: the kernel decides for all of the prefix.
  if (candidate.conditional()) announced = {candidate.metric, no_hops, RouteKind::local, candidate.protocol, false};
  return announced;
}

std::optional<RouteShadow::Announced> RouteShadow::best(const Candidates& candidates) {
  for (const Candidate& candidate : candidates) {
    if (auto announced = effective(candidate)) return announced;
  }
  return std::nullopt;
}

bool RouteShadow::announce(const packet::IpPrefix& prefix, Entry& entry, bool again) {
  const auto wanted = best(entry.candidates);
  if (!refused_.empty() && !again) refused_.erase(prefix);
  if (!wanted) {
    if (entry.is_announced) {
      withdraw(prefix, entry.announced.metric);
      note_found(prefix);
    }
    announced_ -= entry.is_announced ? 1 : 0;
    entry.is_announced = false;
    return true;
  }
  if (entry.is_announced && entry.announced == *wanted && !hops_.changed(wanted->hops)) return true;
  const auto& next_hops = hops_.resolved(wanted->hops).next_hops;
  const auto answer =
      plane_.add_route({prefix, wanted->kind, next_hops, wanted->metric, wanted->protocol, wanted->elsewhere});
  if (!answer) {
    if (again) return false;
    note(answer);
    refused_.insert(prefix);
    // The set of hops that is announced means something else by now: not what is wanted, though it has the same id.
    if (entry.is_announced && entry.announced == *wanted) entry.announced.hops = no_hops;
    return false;
  }
  if (entry.is_announced && entry.announced.metric != wanted->metric) withdraw(prefix, entry.announced.metric);
  if (!again) note_found(prefix);
  announced_ += entry.is_announced ? 0 : 1;
  entry.announced = *wanted;
  entry.is_announced = true;
  return true;
}

void RouteShadow::retry_refused(std::size_t limit) {
  std::size_t in_a_row = 0;
  for (std::size_t left = std::min(refused_.size(), most_retries); left > 0 && in_a_row < limit; --left) {
    auto next = refused_.upper_bound(last_retried_);
    if (next == refused_.end()) next = refused_.begin();
    last_retried_ = *next;
    auto& prefixes = table_of(last_retried_.address.family).prefixes;
    const auto found = prefixes.find(last_retried_);
    if (found == prefixes.end() || announce(found->first, found->second, true)) {
      refused_.erase(next);
      in_a_row = 0;
    } else {
      ++in_a_row;
    }
  }
}

void RouteShadow::withdraw(const packet::IpPrefix& prefix, std::uint32_t metric) {
  note(plane_.remove_route(prefix, metric));
}

void RouteShadow::note(const Expected<void>& answer) {
  if (answer) return;
  ++refusals_;
  last_refusal_ = answer.error().message;
}

void RouteShadow::note_found(const packet::IpPrefix& prefix) {
  if (!counts_as_found_) return;
  ++found_;
  last_found_ = prefix;
}

void RouteShadow::settle() {
  if (hops_.any_changed() || nexthops_.changed()) {
    nexthops_.settled();
    for (Table& table : tables_) {
      for (auto& [prefix, entry] : table.prefixes) announce(prefix, entry);
    }
    hops_.settled();
  }
  if (hops_.live() > free_hops_above_) free_unused_hops();
}

void RouteShadow::free_unused_hops() {
  std::vector<bool> marks(hops_.ids(), false);
  nexthops_.mark(marks);
  for (const Table& table : tables_) {
    for (const auto& [prefix, entry] : table.prefixes) {
      if (entry.is_announced) marks[entry.announced.hops] = true;
      for (const Candidate& candidate : entry.candidates) marks[candidate.hops] = true;
    }
  }
  hops_.keep(marks);
  free_hops_above_ = std::max<std::size_t>(4096, 2 * hops_.live());
}

}  // namespace sluice::control::netlink
