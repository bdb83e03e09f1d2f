// A table that one thread publishes and others read while it is replaced: the one way in which a table reaches its
// readers. On devices it is device/table_mirror.h, with the same words. docs/architecture.md says who uses it.
//
//     Published<const Classifier> current(lanes);
//     control:   auto next = Classifier::create(rules);              // prepare: all that can fail
//                current.publish(std::move(next));                   // in force at once, cannot fail
//     lane i:    const Reading reading = current.read(i);            // for one batch
//                if (reading) reading->classify4(keys, out, n);
//     control:   current.reclaim();                                  // now and then; reclaim_soon() is below
//
// What a reader sees: read() gives the table that was published last, or the one before when the two calls race. Until
// the Reading ends it stays that one, whole. Two lanes may be one table apart for the length of a batch.
//
// A reader that keeps a table across calls, such as from classify() to apply() of one batch, calls pin() and unpin()
// instead of read(). A table that is not `const` belongs to one reader: the memory that it searches with, for example.
//
// Threads: read(i), pin(i) and unpin(i) by one thread at a time for each i, without locks or waiting for the writer;
// publish() and reclaim() by one thread, which waits for nobody. Whoever else holds a pointer that was published lets
// it go on that thread, too.
// Cost: read() and pin() two atomic loads and a store with a fence; has_newer() a load. Memory: a replaced table stays
// until reclaim() finds no reader in it; a reader that never ends its Reading keeps one.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace sluice {

template <typename Table>
class Published {
  struct alignas(64) Place {
    std::atomic<Table*> in{nullptr};
  };

 public:
  class Reading {
   public:
    explicit Reading(Place& place, Table* table) : place_(&place), table_(table) {}
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() { place_->in.store(nullptr, std::memory_order_release); }
    explicit operator bool() const { return table_ != nullptr; }
    Table* operator->() const { return table_; }
    Table& operator*() const { return *table_; }

   private:
    Place* place_;
    Table* table_;
  };

  explicit Published(std::size_t readers) : places_(readers) {}

  Reading read(std::size_t reader) const {
    Table* const table = pin(reader);
    return Reading(places_[reader], table);
  }

  // The table that read() would give; it lives until the reader's next pin(), unpin() or read().
  Table* pin(std::size_t reader) const {
    Place& place = places_[reader];
    Table* table = current_.load(std::memory_order_acquire);
    while (true) {
      // Either reclaim() sees this store, or the load behind it sees what was published before reclaim().
      place.in.store(table, std::memory_order_seq_cst);
      Table* const again = current_.load(std::memory_order_seq_cst);
      if (again == table) {
        return table;
      }
      table = again;
    }
  }
  // The same with a table of the caller's, which is current, or whose pointer somebody else holds: a device's mirror.
  void pin(std::size_t reader, Table* table) const { places_[reader].in.store(table, std::memory_order_seq_cst); }
  void unpin(std::size_t reader) const { places_[reader].in.store(nullptr, std::memory_order_release); }

  // Whether another one than `table` is current: pin() would give that.
  bool has_newer(const Table* table) const { return current_.load(std::memory_order_relaxed) != table; }

  // It throws before it publishes, or not at all.
  void publish(std::shared_ptr<Table> table) {
    retired_.reserve(retired_.size() + 1);
    current_.store(table.get(), std::memory_order_seq_cst);
    if (owned_) {
      retired_.push_back(std::move(owned_));
    }
    owned_ = std::move(table);
  }

  // Destroys those replaced ones that no reader is in and whose pointer nobody else holds; answers how many are left.
  std::size_t reclaim() {
    std::erase_if(retired_, [this](const auto& old) { return is_left(old); });
    return retired_.size();
  }
  // Of these only the ones before which none is left: for what may have been found through an older table.
  std::size_t reclaim_in_order() {
    retired_.erase(retired_.begin(),
                   std::ranges::find_if_not(retired_, [this](const auto& old) { return is_left(old); }));
    return retired_.size();
  }

 private:
  bool is_left(const std::shared_ptr<Table>& old) const {
    return old.use_count() == 1 && std::none_of(places_.begin(), places_.end(), [&](const Place& place) {
             return place.in.load(std::memory_order_seq_cst) == old.get();
           });
  }

  mutable std::vector<Place> places_;
  std::atomic<Table*> current_{nullptr};
  std::shared_ptr<Table> owned_;
  std::vector<std::shared_ptr<Table>> retired_;
};

// What a reload does behind publish(): calls `reclaim` until it answers 0, for at most 200 ms. Most often the memory of
// the old table is free then; else it is left to the next reload.
template <typename Reclaim>
void reclaim_soon(const Reclaim& reclaim) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (reclaim() != 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace sluice
