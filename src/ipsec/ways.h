// Which outbound SA a policy's packets leave by. A way is all that policies can ask for: protocol, mode, reqid (0: any)
// and the addresses of a tunnel, or of the packet. It leads to one of its SAs: the newest that is valid, else the
// newest that is dying. So a rekey is in force as soon as the new SA is added, and the old one stays until it is
// removed.
//
// Ways are resolved when SAs change: the SA is then written into every policy that takes the way (PolicyEntry::sa).
// Only where a policy in transport mode leaves addresses open, packets find their way by their own addresses.
//
// Thread-safety: find() any thread; the rest one call at a time. Cost: find() two lines; add() and remove() of an SA
// some us, and a store for each policy whose SA changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ipsec/line_table.h"
#include "ipsec/policy_entry.h"
#include "ipsec/sa.h"
#include "ipsec/slot_pool.h"

namespace sluice::ipsec {

class Ways {
 public:
  struct Way {
    // As a PacketKey's: family, and in place of the ports' part mode, protocol and reqid; addresses.
    PacketKey key;
    std::atomic<Sa*> current{nullptr};
    std::map<std::uint64_t, Sa*> sas{};                      // by age, the oldest first
    std::set<std::pair<PolicyEntry*, unsigned>> policies{};  // that take it, with which template
  };
  using Handle = SlotPool<Way>::Handle;

  // `sas`, `policies`: how many there can be, and twice that with ways that readers may still look at.
  Ways(std::size_t sas, std::size_t policies);

  // The SA of a template that is PolicyEntry::per_packet; null: none.
  Sa* find(const PolicyEntry& entry, unsigned index, const PacketKey& packet) const;

  // Of who changes it. A way that is not used any more goes to gone(), which readers may still look at. Before add()
  // and attach() there must be has_capacity().
  bool has_capacity() const { return pool_.used() + 2 * most_templates <= pool_.capacity(); }
  void add(Sa& sa);
  // Its record is still as it was added.
  void remove(Sa& sa);
  // Its state has changed.
  void look_again(Sa& sa);
  // Before readers find the policy; and after they could, at the last.
  void attach(PolicyEntry& entry);
  void detach(PolicyEntry& entry);
  std::vector<Handle>& gone() { return gone_; }

 private:
  struct KeyHash {
    std::size_t operator()(const PacketKey& key) const;
  };
  std::uint64_t hash_of(const PacketKey& key) const;
  Way& way(const PacketKey& key);
  void forget_if_unused(Way& way);
  // The SA that `way` leads to for such a template.
  static Sa* choose(const Way& way, std::uint32_t spi);
  static void resolve(Way& way);

  SlotPool<Way> pool_;
  LineTable table_;  // of those of transport mode
  const std::uint64_t seed_;
  std::unordered_map<PacketKey, Handle, KeyHash> ways_;
  std::vector<Handle> gone_;
};

}  // namespace sluice::ipsec
