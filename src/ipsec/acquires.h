// Which SAs lanes lack. A lane notes the policy of a packet that has no SA; the thread that watches the databases asks
// for it once (RFC 4301 section 4.4.1.1: the SPD triggers key management), and again when nothing has come for 30 s.
//
// Lanes note a policy once as long as it is being asked for. Where each packet's addresses decide, every packet is
// noted, and the watcher asks once for each pair of addresses. The queue is bounded: what does not fit is noted with
// a later packet.
//
// Thread-safety: note() any threads; take() one at a time, beside them, which nobody changes policies beside. Cost:
// note() a load, or an exchange and a place in the queue.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/bounded_queue.h"
#include "ipsec/database.h"
#include "ipsec/policy_entry.h"
#include "ipsec/spd.h"
#include "ipsec/ways.h"

namespace sluice::ipsec {

class Acquires {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kept{30};
  // Noted between two calls of take(), and asked for at a time.
  static constexpr std::size_t most_noted = 1024, most_asked = 4096;

  Acquires() : noted_(most_noted) {}

  void note(const PolicyEntry& entry, const PacketKey& packet);

  // Those to say now: one for each template without an SA.
  std::vector<Acquire> take(const Spd& out, const Ways& ways, Time now);

 private:
  struct Noted {
    std::uint64_t policy = 0;  // PolicyEntry::order
    PacketKey packet;
  };
  // The policy and, where they decide, the packet's addresses.
  using Key = std::pair<std::uint64_t, std::array<std::uint64_t, 4>>;
  struct Asked {
    Time until;
    PacketKey packet;
  };

  static Key key_of(const PolicyEntry& entry, const PacketKey& packet);
  void forget_what_has_come(const Spd& out, const Ways& ways, Time now);

  BoundedQueue<Noted> noted_;
  std::map<Key, Asked> asked_;
  std::uint32_t last_sequence_ = 0;
};

// The SA of a template of a policy that goes out; null: none.
inline Sa* outbound_sa(const PolicyEntry& entry, unsigned index, const PacketKey& packet, const Ways& ways) {
  if ((entry.per_packet >> index & 1) != 0) [[unlikely]] {
    return ways.find(entry, index, packet);
  }
  return entry.sa[index].load(std::memory_order_acquire);
}

}  // namespace sluice::ipsec
