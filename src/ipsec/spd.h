// The security policy database of one direction (RFC 4301 section 4.4.1): which policy a packet has.
//
// Tuple space search (Srinivasan, Suri, Varghese, SIGCOMM 1999). A tuple is a mask: family, prefix lengths, whether
// there is a protocol, masks of ports. All policies of a tuple are in one hash table, keyed by the packet's bits in the
// mask, so a tuple costs one line of memory however many policies it has. A search goes over the tuples by the lowest
// rank of their policies, and ends where the next tuple has no lower one than what is found. Policies of a tuple that
// has only a few are looked at one after the other instead (packed_policies.h), which costs less than a line for each.
//
// Where a search is long, a lane that has a PolicyCache looks there first: at the packet's bits in the union of all
// masks, so that ports count only if a policy asks for them. Any change of a policy empties it.
//
// A change is seen by each search as a whole or not at all. What a reader has found, and the lists that it searches by,
// live as long as it holds the view that it has them from (view.h).
//
// Thread-safety: find() any thread, beside one that changes; a PolicyCache is one thread's. Cost:
// docs/ipsec-databases.md. Memory: 0.7 KB for each policy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "ipsec/line_table.h"
#include "ipsec/packed_policies.h"
#include "ipsec/packet_key.h"
#include "ipsec/policy_entry.h"
#include "ipsec/slot_pool.h"

namespace sluice::ipsec {

// What searches go over, as it is between two changes. `serial`: of the last change of any policy.
struct Tuples {
  struct Tuple {
    PacketKey mask;
    std::uint64_t lowest = 0;  // rank of its policies
    std::uint64_t seed = 0;
    std::uint32_t number = 0;
  };
  template <std::size_t words>
  struct Family {
    std::vector<Tuple> large;      // by `lowest`
    PackedPolicies<words> packed;  // of all other tuples, by rank
    PacketKey every;               // the union of all masks
    bool is_long = false;          // a search: the cache is asked first
  };
  struct Lists {
    Family<2> ipv4;
    Family<5> ipv6;
  };
  std::uint64_t serial = 0;
  std::shared_ptr<const Lists> lists;
};

// What one thread found last, policies and that there is none. Memory: 64 bytes for each entry.
class PolicyCache {
 public:
  static constexpr std::size_t usual_entries = 4096;
  // `entries`: a power of two.
  explicit PolicyCache(std::size_t entries = usual_entries) : entries_(entries) {}

 private:
  friend class Spd;
  struct alignas(64) Entry {
    PacketKey key;
    std::uint64_t serial = 0;
    const PolicyEntry* policy = nullptr;
  };
  Entry& at(std::uint64_t hash) { return entries_[hash & (entries_.size() - 1)]; }

  std::vector<Entry> entries_;
};

class Spd {
 public:
  using Handle = SlotPool<PolicyEntry>::Handle;
  // The longest burst that is searched for at a time; longer ones are cut.
  static constexpr std::size_t burst = 32;
  // A tuple with more policies than so many has a hash table; and a search of a table costs as much as that of so many
  // policies that are packed.
  static constexpr std::size_t few = 8, packed_as_a_table = 16;
  // A search as long as one of so many policies that are packed: the cache is asked first.
  static constexpr std::size_t search_to_cache = 32;

  // `capacity`: policies, with those that are taken out while readers may have found them.
  explicit Spd(std::size_t capacity);

  // The policy of each key in `found`, which is as long; null: none. `cache` may be null.
  void find(const Tuples& tuples, std::span<const PacketKey> keys, const PolicyEntry** found, PolicyCache* cache) const;

  // The rest is for who changes it, one call at a time.

  // In two steps: make() finds all that can be wrong, and put() brings it into force. In between the caller may fill in
  // PolicyEntry::sa. An Error: the selector or the templates are not possible, there is no capacity, or another one has
  // that selector and `replaces` is false.
  Expected<Handle> make(const Policy& policy, bool replaces);
  bool has_capacity() const { return pool_.used() < pool_.capacity(); }
  // Returns the one of the same selector that it replaces; null: there was none.
  Handle put(Handle entry);
  // Null: there is none.
  Handle take(const Selector& selector);

  PolicyEntry* entry(const Selector& selector) const;
  PolicyEntry* entry(std::uint64_t order) const;
  // At most so many, the first first.
  std::vector<Policy> policies(std::size_t most) const;
  std::size_t size() const { return entries_.size(); }
  // As of the last put() or take().
  const Tuples& tuples() const { return tuples_; }

 private:
  struct SelectorHash {
    std::size_t operator()(const Selector& selector) const;
  };
  using Rank = std::pair<std::uint64_t, std::uint64_t>;  // and order
  using ByRank = std::map<Rank, PolicyEntry*>;
  // A tuple as who changes it knows it.
  struct TupleState {
    std::uint32_t number = 0;
    std::uint64_t seed = 0;
    ByRank policies;
  };
  using States = std::map<std::array<std::uint64_t, 5>, TupleState>;  // by mask
  struct Search;

  template <std::size_t words>
  void find_family(const Tuples::Family<words>& family, std::uint64_t serial, std::span<const PacketKey> keys,
                   const PolicyEntry** found, PolicyCache* cache) const;
  void search_large(const std::vector<Tuples::Tuple>& tuples, Search& search, std::size_t count) const;
  const PolicyEntry* match(const Tuples::Tuple& tuple, const PacketKey& key, std::uint64_t hash,
                           std::uint32_t probable) const;
  States& states_of(const Selector& selector) { return states_[selector.source.address.family == 4 ? 0 : 1]; }
  void enter(PolicyEntry& entry, TupleState& tuple);
  void leave(const PolicyEntry& entry, TupleState& tuple);
  template <std::size_t words>
  static void list_family(const States& states, Tuples::Family<words>& family);
  void list_tuples();

  SlotPool<PolicyEntry> pool_;
  LineTable table_;
  const std::uint64_t seed_;
  std::unordered_map<Selector, Handle, SelectorHash> entries_;
  ByRank by_rank_;
  std::unordered_map<std::uint64_t, PolicyEntry*> by_order_;
  std::array<States, 2> states_;
  std::uint64_t last_order_ = 0;
  std::uint32_t last_tuple_ = 0;
  bool lists_changed_ = false;
  Tuples tuples_;
};

}  // namespace sluice::ipsec
