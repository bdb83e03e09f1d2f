#include "ipsec/acquires.h"

#include <algorithm>

namespace sluice::ipsec {
namespace {

bool has_all(const PolicyEntry& entry, const PacketKey& packet, const Ways& ways) {
  for (unsigned i = 0; i < entry.templates; ++i) {
    if (outbound_sa(entry, i, packet, ways) == nullptr) return false;
  }
  return true;
}

}  // namespace

void Acquires::note(const PolicyEntry& entry, const PacketKey& packet) {
  if (entry.per_packet != 0) {
    noted_.push({entry.order, packet});
    return;
  }
  if (entry.wanted.load(std::memory_order_relaxed) || entry.wanted.exchange(true, std::memory_order_relaxed)) return;
  if (!noted_.push({entry.order, packet})) entry.wanted.store(false, std::memory_order_relaxed);
}

Acquires::Key Acquires::key_of(const PolicyEntry& entry, const PacketKey& packet) {
  Key key{entry.order, {}};
  if (entry.per_packet != 0) std::copy_n(packet.word.begin() + 1, key.second.size(), key.second.begin());
  return key;
}

void Acquires::forget_what_has_come(const Spd& out, const Ways& ways, Time now) {
  for (auto at = asked_.begin(); at != asked_.end();) {
    const PolicyEntry* const entry = out.entry(at->first.first);
    if (entry != nullptr && now < at->second.until && !has_all(*entry, at->second.packet, ways)) {
      ++at;
      continue;
    }
    if (entry != nullptr) entry->wanted.store(false, std::memory_order_relaxed);
    at = asked_.erase(at);
  }
}

std::vector<Acquire> Acquires::take(const Spd& out, const Ways& ways, Time now) {
  forget_what_has_come(out, ways, now);
  std::vector<Acquire> acquires;
  Noted noted;
  for (std::size_t taken = 0; taken < most_noted && noted_.pop(noted); ++taken) {
    const PolicyEntry* const entry = out.entry(noted.policy);
    if (entry == nullptr) continue;
    const Key key = key_of(*entry, noted.packet);
    if (asked_.contains(key)) continue;
    if (asked_.size() == most_asked || has_all(*entry, noted.packet, ways)) {
      entry->wanted.store(false, std::memory_order_relaxed);
      continue;
    }
    asked_.emplace(key, Asked{now + kept, noted.packet});
    for (unsigned i = 0; i < entry->templates; ++i) {
      if (outbound_sa(*entry, i, noted.packet, ways) != nullptr) continue;
      const FlowKey packet = flow_key(noted.packet);
      Template wanted = entry->policy.templates[i];
      if (wanted.mode == Mode::transport) {
        const bool in_tunnel = i > 0 && entry->policy.templates[i - 1].mode == Mode::tunnel;
        wanted.source = in_tunnel ? entry->policy.templates[i - 1].source : packet.source;
        wanted.destination = in_tunnel ? entry->policy.templates[i - 1].destination : packet.destination;
      }
      acquires.push_back({entry->policy, wanted, packet, ++last_sequence_});
    }
  }
  return acquires;
}

}  // namespace sluice::ipsec
