// What one mirror of a trie has not been given yet: the set of changed slots, packed on demand into bounded change
// sets.
//
// Slots are tracked in cells of 16 (64 bytes, one bit each), so a slot that changes a hundred times between two packs
// is sent once, and memory is bounded whatever happens: about 4.5 MiB for the root and 72 B for each block, at
// creation.
//
// Order: pack() sends new blocks first, and other slots only when no new block is left to send. So after every change
// set, and at every moment while one is applied as change_set.h says, a lookup in the mirror finds for its address a
// route that the trie held at some moment between the last change set and this one:
//   - a slot that points to a new block is written after the block, and a new block points to new blocks only;
//   - a block that was taken out keeps its content until release_retired(), so a reader that is in it finds the old
//     route;
//   - any other change is one 32-bit store to the one slot that decides for the address.
//
// Threads: born, touch, retired and give_up_if_abandoned are the trie's, under its mutex; pack and release_retired
// belong to the mirror's thread and never wait: when the writer holds the trie they return false and are tried again
// later.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lookup/change_set.h"

namespace sluice::lookup {

class Trie;

class ChangeLog {
 public:
  // `abandoned`: whether the mirror is gone (a lost GPU); its claim on blocks then ends. Called on the trie's
  // thread.
  ChangeLog(Trie& trie, std::function<bool()> abandoned);
  ~ChangeLog();
  ChangeLog(const ChangeLog&) = delete;
  ChangeLog& operator=(const ChangeLog&) = delete;

  // Fills `set` with pending changes until it is full or holds `max_bytes`. With take_retired, and when the set is
  // complete, the blocks that were taken out so far become the ones that release_retired() gives back.
  bool pack(ChangeSet& set, std::size_t max_bytes, bool take_retired);
  // After the last complete set with take_retired: no reader can be in the blocks any more. True: they are given back.
  bool release_retired();
  bool holds_retired() const { return !leaving_.empty(); }
  // Blocks were taken out that no pack has taken yet. Any thread.
  bool has_retired() const { return gone_count_.load(std::memory_order_relaxed) != 0; }
  // Nothing is left to pack. Any thread.
  bool up_to_date() const { return pending_.load(std::memory_order_relaxed) == 0; }

  void born(std::uint32_t block);
  void touch(std::uint32_t first_slot, std::uint32_t count);
  void retired(std::uint32_t block);
  void give_up_if_abandoned();

 private:
  enum class Block : std::uint8_t { known, unsent, gone };
  static constexpr std::uint32_t cell_slots = 16;
  static constexpr std::uint32_t longest_run = 2048;

  // A queue in a ring that has capacity for every element at once, because none is queued twice.
  class Queue {
   public:
    explicit Queue(std::size_t capacity);
    bool empty() const { return head_ == tail_; }
    std::uint32_t front() const { return items_[head_]; }
    void push(std::uint32_t item);
    void pop();

   private:
    std::size_t size_;
    std::unique_ptr<std::uint32_t[]> items_;
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
  };

  Block* block_of(std::uint32_t slot);
  bool append_cell(ChangeSet& set, std::size_t max_bytes, std::uint32_t slot) const;
  void pack_locked(ChangeSet& set, std::size_t max_bytes);

  Trie& trie_;
  std::function<bool()> abandoned_;
  bool given_up_ = false;
  std::vector<std::uint64_t> dirty_;  // a bit for each cell
  std::vector<Block> blocks_;
  Queue cells_;
  Queue unsent_;
  std::uint32_t unsent_cells_done_ = 0;  // of the first unsent block
  std::vector<std::uint32_t> gone_;      // taken out since the last complete pack
  std::vector<std::uint32_t> leaving_;   // readers may still be in these
  std::atomic<std::size_t> pending_{0};  // cells and blocks queued
  std::atomic<std::size_t> gone_count_{0};
};

}  // namespace sluice::lookup
