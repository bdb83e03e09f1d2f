#include "lookup/change_log.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "lookup/trie.h"

namespace sluice::lookup {

ChangeLog::Queue::Queue(std::size_t capacity)
    : size_(capacity + 1), items_(std::make_unique_for_overwrite<std::uint32_t[]>(capacity + 1)) {}

void ChangeLog::Queue::push(std::uint32_t item) {
  items_[tail_] = item;
  tail_ = tail_ + 1 == size_ ? 0 : tail_ + 1;
}

void ChangeLog::Queue::pop() {
  head_ = head_ + 1 == size_ ? 0 : head_ + 1;
  if (head_ == tail_) {
    head_ = tail_ = 0;  // so that a mirror that keeps up uses the first pages again and again, and no others
  }
}

ChangeLog::ChangeLog(Trie& trie, std::function<bool()> abandoned)
    : trie_(trie),
      abandoned_(std::move(abandoned)),
      dirty_(trie.slot_count() / cell_slots / 64),
      blocks_((trie.slot_count() - Trie::root_slots) / 256),
      cells_(trie.slot_count() / cell_slots),
      unsent_(blocks_.size()) {
  gone_.reserve(blocks_.size());
  leaving_.reserve(blocks_.size());
  const std::lock_guard lock(trie_.mutex());
  trie_.attach(*this);
}

ChangeLog::~ChangeLog() {
  const std::lock_guard lock(trie_.mutex());
  trie_.detach(*this);
  for (const auto* list : {&gone_, &leaving_}) {
    std::for_each(list->begin(), list->end(), [this](std::uint32_t block) { trie_.release(block); });
  }
}

// The state of the block that a slot lies in; null for the root's.
ChangeLog::Block* ChangeLog::block_of(std::uint32_t slot) {
  return slot < Trie::root_slots ? nullptr : &blocks_[slot / 256 - Trie::first_block];
}

void ChangeLog::born(std::uint32_t block) {
  if (given_up_) {
    return;
  }
  blocks_[block] = Block::unsent;
  unsent_.push(block);
  pending_.fetch_add(1, std::memory_order_relaxed);
}

void ChangeLog::touch(std::uint32_t first_slot, std::uint32_t count) {
  if (given_up_) {
    return;
  }
  // A run never crosses the border between blocks.
  if (const Block* block = block_of(first_slot); block != nullptr && *block != Block::known) {
    // What a block that is still to be sent says is read when it is sent; but the part that is sent already is not read
    // again.
    if (*block == Block::gone || unsent_.front() != first_slot / 256 - Trie::first_block || unsent_cells_done_ == 0) {
      return;
    }
  }
  const std::uint32_t last = (first_slot + count - 1) / cell_slots;
  for (std::uint32_t cell = first_slot / cell_slots; cell <= last; ++cell) {
    const std::uint64_t bit = 1ULL << (cell % 64);
    if ((dirty_[cell / 64] & bit) == 0) {
      dirty_[cell / 64] |= bit;
      cells_.push(cell);
      pending_.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

void ChangeLog::retired(std::uint32_t block) {
  if (given_up_) {
    trie_.release(block);
    return;
  }
  blocks_[block] = Block::gone;
  gone_.push_back(block);
  gone_count_.store(gone_.size(), std::memory_order_relaxed);
}

void ChangeLog::give_up_if_abandoned() {
  if (given_up_ || !abandoned_()) {
    return;
  }
  given_up_ = true;
  for (auto* list : {&gone_, &leaving_}) {
    std::for_each(list->begin(), list->end(), [this](std::uint32_t block) { trie_.release(block); });
    list->clear();
  }
}

// Adds 16 slots to the set's last run, or as a run of their own. False: no capacity.
bool ChangeLog::append_cell(ChangeSet& set, std::size_t max_bytes, std::uint32_t slot) const {
  const std::uint32_t* const now = trie_.slots() + slot;
  const bool fill = std::all_of(now + 1, now + cell_slots, [&](std::uint32_t value) { return value == *now; });
  Run* const last = set.runs > set.born ? set.run + set.runs - 1 : nullptr;
  const bool extends = last != nullptr && last->slot + last->count == slot && last->fill == (fill ? 1U : 0U) &&
                       (!fill || last->value == *now) && last->count < longest_run;
  const std::size_t bytes = set.runs * sizeof(Run) + set.values_used * sizeof(std::uint32_t) +
                            (extends ? 0 : sizeof(Run)) + (fill ? 0 : cell_slots * sizeof(std::uint32_t));
  if (bytes > max_bytes || set.slots + cell_slots > max_bytes * 4 || (!extends && set.runs == set.run_capacity) ||
      (!fill && set.values_used + cell_slots > set.value_capacity)) {
    return false;
  }
  if (extends) {
    last->count += cell_slots;
  } else {
    set.run[set.runs++] = {slot, cell_slots, fill ? *now : set.values_used, fill ? 1U : 0U};
  }
  if (!fill) {
    std::copy_n(now, cell_slots, set.values + set.values_used);
    set.values_used += cell_slots;
  }
  set.slots += cell_slots;
  return true;
}

void ChangeLog::pack_locked(ChangeSet& set, std::size_t max_bytes) {
  while (!unsent_.empty()) {
    const std::uint32_t block = unsent_.front();
    while (blocks_[block] == Block::unsent && unsent_cells_done_ < 256 / cell_slots) {
      if (!append_cell(set, max_bytes, (Trie::first_block + block) * 256 + unsent_cells_done_ * cell_slots)) {
        set.born = set.runs;
        return;
      }
      ++unsent_cells_done_;
    }
    if (blocks_[block] == Block::unsent) {
      blocks_[block] = Block::known;
    }
    unsent_cells_done_ = 0;
    unsent_.pop();
    pending_.fetch_sub(1, std::memory_order_relaxed);
  }
  set.born = set.runs;
  while (!cells_.empty()) {
    const std::uint32_t cell = cells_.front();
    const Block* const block = block_of(cell * cell_slots);
    if ((block == nullptr || *block != Block::gone) && !append_cell(set, max_bytes, cell * cell_slots)) {
      return;
    }
    dirty_[cell / 64] &= ~(1ULL << (cell % 64));
    cells_.pop();
    pending_.fetch_sub(1, std::memory_order_relaxed);
  }
  set.complete = true;
}

bool ChangeLog::pack(ChangeSet& set, std::size_t max_bytes, bool take_retired) {
  const std::unique_lock lock(trie_.mutex(), std::try_to_lock);
  if (!lock.owns_lock() || given_up_) {
    return false;
  }
  set.born = set.runs = set.values_used = 0;
  set.slots = 0;
  set.complete = false;
  pack_locked(set, max_bytes);
  if (set.complete && take_retired && leaving_.empty()) {
    leaving_.swap(gone_);
    gone_count_.store(0, std::memory_order_relaxed);
  }
  return true;
}

bool ChangeLog::release_retired() {
  const std::unique_lock lock(trie_.mutex(), std::try_to_lock);
  if (!lock.owns_lock()) {
    return false;
  }
  for (const std::uint32_t block : leaving_) {
    blocks_[block] = Block::known;
    trie_.release(block);
  }
  leaving_.clear();
  return true;
}

}  // namespace sluice::lookup
