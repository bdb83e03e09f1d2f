// The databases as a lane sees them for one batch: from the batch's first frame to the end of its last, it holds the
// view that Databases::pin() gave. What it finds by it, policies and SAs, lives as long, though it be removed
// meanwhile: packets under way are finished. Changes of single entries are seen at once.
//
//   const View* const view = databases.pin(reader);         // for a batch
//   view->find_policies(Direction::out, keys, found, &cache);
//   ...
//   databases.unpin(reader);                                 // when the batch has left
//
// Thread-safety: any thread that holds it; `lane` is one thread's at a time for each method. No call allocates, locks
// or waits. Costs: spd.h, sad.h, ways.h, lifetime.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ipsec/tables.h"

namespace sluice::ipsec {

class View {
 public:
  // What was taken out while this view was the current one. Views end in the order in which they were published, so
  // nobody holds one any more by which it was found.
  struct Retired {
    std::vector<Spd::Handle> policies;
    std::vector<SlotPool<Sa>::Handle> sas;
    std::vector<Ways::Handle> ways;
    std::vector<std::shared_ptr<const void>> others;
    bool empty() const { return policies.empty() && sas.empty() && ways.empty() && others.empty(); }
  };

  explicit View(Tables& tables)
      : tables_(tables),
        out_(tables.out.tuples()),
        in_(tables.in.tuples()),
        has_out_(tables.out.size() != 0),
        has_in_(tables.in.size() != 0) {}

  // Whether there are any of that direction: else find_policies() finds none for any packet.
  bool has_policies(Direction direction) const { return direction == Direction::out ? has_out_ : has_in_; }

  // The policy of each packet, in `found`, which is as long as `keys`; null: none. `cache`: of this thread and
  // direction, or null.
  void find_policies(Direction direction, std::span<const PacketKey> keys, const PolicyEntry** found,
                     PolicyCache* cache) const {
    if (direction == Direction::out) {
      tables_.out.find(out_, keys, found, cache);
    } else {
      tables_.in.find(in_, keys, found, cache);
    }
  }
  void count(Direction direction, const PolicyEntry& policy, std::uint32_t lane, std::uint64_t packets,
             std::uint64_t bytes) const {
    (direction == Direction::out ? tables_.out_counts : tables_.in_counts).add(lane, policy.index, packets, bytes);
  }

  // Before count() of a policy, some time.
  void prefetch_count(Direction direction, const PolicyEntry& policy, std::uint32_t lane) const {
    (direction == Direction::out ? tables_.out_counts : tables_.in_counts).prefetch(lane, policy.index);
  }

  // The inbound SA of each packet of ESP or AH, likewise. It may be dead.
  void find_sas(std::span<const SadKey> keys, Sa** found) const { tables_.sad.find(keys, found); }

  // The SA that template `index` of an outbound policy has now: of its protocol, mode, reqid (0: any), source and
  // destination, which in transport mode are the packet's. Null: none; want() asks for one.
  Sa* outbound(const PolicyEntry& policy, unsigned index, const PacketKey& packet) const {
    return outbound_sa(policy, index, packet, tables_.ways);
  }
  void want(const PolicyEntry& policy, const PacketKey& packet) const { tables_.acquires.note(policy, packet); }

  // Before count() of an SA, some time.
  void prefetch_count(const Sa& sa, std::uint32_t lane) const { tables_.sa_counts.prefetch(lane, sa.index); }
  // Packets of an SA, and the bytes inside: outbound before they are sealed, inbound when they are authentic. False:
  // the SA is dead, or its lifetime ends here, and nothing is counted; the packets are refused as `expired`.
  bool count(Sa& sa, std::uint32_t lane, std::uint32_t packets, std::uint64_t bytes) const;
  // Numbers for packets of an outbound SA, in order. Fewer than `count`: the last one was taken, and the SA is dead.
  Sequence::Run take_numbers(Sa& sa, std::uint32_t count) const;
  // An authentic packet of `sa` came from this address (as in the frame) and UDP port (host order), which differ from
  // Sa::outer. Said to who watches, once.
  void note_moved(Sa& sa, const std::uint8_t* source, std::uint16_t port) const;

  // An ICMP error about a packet that may be of an outbound SA. The watcher judges it; what comes faster than it looks
  // is let go.
  void note_too_big(const TooBig& error) const { tables_.too_big.push(error); }

  // The watcher's clock, in steps of a second.
  std::uint32_t seconds() const { return tables_.seconds.load(std::memory_order_relaxed); }

  // The control side's.
  Retired& retired() const { return retired_; }

 private:
  void end(Sa& sa) const;

  Tables& tables_;
  const Tuples out_, in_;
  const bool has_out_, has_in_;
  mutable Retired retired_;
};

inline bool View::count(Sa& sa, std::uint32_t lane, std::uint32_t packets, std::uint64_t bytes) const {
  if (sa.state.load(std::memory_order_relaxed) == SaState::dead) [[unlikely]] {
    return false;
  }
  if (sa.limited.load(std::memory_order_acquire)) {
    const LifetimeShares::Result result = tables_.shares.take(lane, sa.index, sa.budget, packets, bytes);
    if (result != LifetimeShares::Result::fine) [[unlikely]] {
      if (result == LifetimeShares::Result::hard) {
        end(sa);
        return false;
      }
      tables_.due.note(sa.index);
    }
  }
  tables_.sa_counts.add(lane, sa.index, packets, bytes);
  const std::uint32_t now = seconds();
  if (sa.last_used.load(std::memory_order_relaxed) != now) {
    sa.last_used.store(now, std::memory_order_relaxed);
    std::uint32_t never = 0;
    if (sa.first_used.load(std::memory_order_relaxed) == 0 && sa.first_used.compare_exchange_strong(never, now)) {
      tables_.due.note(sa.index);
    }
  }
  return true;
}

}  // namespace sluice::ipsec
