// The route table of one address family in the form that the GPU reads, kept in host memory and changed in place.
//
// Shape: one array of 32-bit slots. The first 2^24 are indexed by an address' first 24 bits; behind them lie blocks of
// 256 slots, each indexed by the next 8 bits. A slot holds the id of a next hop, or `child_flag` and the number of a
// block whose first slot is number << 8. A block exists exactly while some prefix is longer than the bits that lead to
// it. IPv4 lookups read one or two slots, IPv6 lookups one more for each 8 bits that the prefixes there are longer
// than 24.
//
// The prefixes themselves are not kept here but in the Fib's RIB (rib.h): Fib::attach() builds the trie and keeps it
// equal.
//
// Mirrors: a ChangeLog (change_log.h) is notified of every changed slot; a block that was taken out is not used again
// before every ChangeLog has said that no reader can still be in it.
//
// Threads: one writer (the control thread) and the threads that pack changes for mirrors; mutex() orders them. lookup()
// is for tests and tools: it must not run at the same time as a change. Memory: 64 MiB and 1 KiB for each block,
// touched as it is used; nothing is allocated after creation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "lookup/next_hop.h"
#include "lookup/rib.h"
#include "packet/ip_address.h"

namespace sluice::lookup {

class ChangeLog;

class Trie {
 public:
  static constexpr std::uint32_t child_flag = 0x8000'0000;
  static constexpr std::uint32_t root_slots = 1U << 24;
  static constexpr std::uint32_t first_block = root_slots / 256;
  static constexpr std::uint32_t max_blocks = (1U << 24) - first_block;

  // family: 4 or 6. `blocks`: how many there can be at most, those waiting for readers included.
  static Expected<std::unique_ptr<Trie>> create(int family, std::uint32_t blocks);
  ~Trie();
  Trie(const Trie&) = delete;
  Trie& operator=(const Trie&) = delete;

  int family() const { return family_; }

  // Makes sure that update() will find the blocks that adding `prefix` needs.
  Expected<void> reserve(const packet::IpPrefix& prefix);
  // The RIB gained, changed or lost `prefix`: makes the slots say the same.
  void update(const Rib& rib, const packet::IpPrefix& prefix);

  NextHopId lookup4(std::uint32_t destination_host_order) const;
  NextHopId lookup6(const std::uint8_t* destination) const;

  std::uint32_t blocks_used() const { return used_; }
  std::size_t memory_bytes() const { return slot_count_ * sizeof(std::uint32_t); }

  // For mirrors.
  std::mutex& mutex() { return mutex_; }
  const std::uint32_t* slots() const { return slots_; }
  std::size_t slot_count() const { return slot_count_; }
  // Slots from here on were never used.
  std::size_t slots_touched() const { return (static_cast<std::size_t>(first_block) + fresh_from_) * 256; }
  void attach(ChangeLog& log);
  void detach(ChangeLog& log);
  // Under mutex(): this log's readers have left the block.
  void release(std::uint32_t block);

 private:
  using Key = unsigned __int128;  // an address, its first bit highest

  Trie(int family, std::uint32_t blocks, std::uint32_t* slots);
  std::uint32_t available() const { return block_limit_ - fresh_from_ + static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t missing_blocks(const packet::IpPrefix& prefix) const;
  std::uint32_t child(std::uint32_t slot);
  void fill(std::uint32_t base, unsigned depth, Key first, Key last, NextHopId value);
  void set(std::uint32_t first, std::uint32_t count, std::uint32_t value);
  bool collapse(const Rib& rib, const packet::IpPrefix& prefix, NextHopId value);
  void retire(std::uint32_t block);

  const int family_;
  const std::uint32_t block_limit_;
  const std::size_t slot_count_;
  std::uint32_t* const slots_;
  std::mutex mutex_;
  std::uint32_t used_ = 0;
  std::uint32_t fresh_from_ = 0;       // blocks from here on were never used
  std::vector<std::uint32_t> free_;    // used before, free again
  std::vector<std::uint8_t> holders_;  // by block: logs that have not released it yet
  std::vector<ChangeLog*> logs_;
};

}  // namespace sluice::lookup
