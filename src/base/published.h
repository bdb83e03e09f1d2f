// A table that one thread publishes and others read while it is replaced. All tables that change while lanes run reach
// their readers so. On devices device/table_mirror.h does it, with the same words. docs/architecture.md says who uses
// it.
//
//     Published<const Classifier> current(lanes);
//     control:   auto next = Classifier::create(rules);              // prepare: all that can fail
//                current.publish(std::move(next));                   // in force at once, cannot fail
//     lane i:    const Reading reading = current.read(i);            // for one batch
//                if (reading) reading->classify4(keys, out, n);
//     control:   current.reclaim();                                  // now and then; reclaim_soon() is below
//
// What a reader sees: read() gives the table that was published last, or the one before if the two calls race. The
// Reading keeps that one table until it ends. For the length of a batch two lanes may have different tables.
//
// A reader that keeps a table across calls, such as from classify() to apply() of one batch, calls pin() and unpin()
// instead of read(). A table that is not `const` belongs to one reader: the memory that it searches with, for example.
//
// Thread-safety: for each i one thread at a time calls read(i), pin(i) and unpin(i), without a lock and without waiting
// for the writer. One thread calls publish() and reclaim(), and waits for nobody. If other code holds a shared pointer
// that was published, it must release it on that thread, too.
//
// Cost: read() and pin() are two atomic loads and a store with a fence, has_newer() is a load. Memory: a replaced table
// stays until reclaim() finds no reader in it. A reader that never ends its Reading keeps one table for ever.
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

  // The table that read() would give. It lives until the reader's next pin(), unpin() or read().
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
  // The same for a table that the caller chooses. It must be current, or be held by somebody else, such as a device's
  // mirror. If that is a reader who ends meanwhile, his number is lower than `reader`: reclaim() looks at them in
  // order, and would see neither if it looked at `reader` before this call and at the other one after his unpin().
  void pin(std::size_t reader, Table* table) const { places_[reader].in.store(table, std::memory_order_seq_cst); }
  void unpin(std::size_t reader) const { places_[reader].in.store(nullptr, std::memory_order_release); }

  // Whether pin() would give another table than `table`.
  bool has_newer(const Table* table) const { return current_.load(std::memory_order_relaxed) != table; }

  // If it throws (memory), nothing is published.
  void publish(std::shared_ptr<Table> table) {
    retired_.reserve(retired_.size() + 1);
    current_.store(table.get(), std::memory_order_seq_cst);
    if (owned_) {
      retired_.push_back(std::move(owned_));
    }
    owned_ = std::move(table);
  }

  // Destroys the replaced tables that no reader uses and nobody else holds. Returns how many are left.
  std::size_t reclaim() {
    std::erase_if(retired_, [this](const auto& old) { return is_left(old); });
    return retired_.size();
  }
  // The same, but destroys a table only when all older ones are gone: for tables that readers find through an older
  // one.
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

// For a reload, after publish(): calls `reclaim` until it returns 0, for at most 200 ms. Usually the old table is gone
// then; if not, the next reload destroys it.
template <typename Reclaim>
void reclaim_soon(const Reclaim& reclaim) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (reclaim() != 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace sluice
