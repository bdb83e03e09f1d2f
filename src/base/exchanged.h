// A value that never changes, exchanged for another while readers run: what a change of rules or streams publishes.
//
//     Exchanged<Classifier> current(lanes);
//     lane i:    const Reading reading = current.read(i);            // for one batch
//                if (reading) reading->classify4(keys, out, n);
//     control:   current.publish(std::move(built));                  // at once
//                current.reclaim();                                  // now and then, until it answers 0
//
// What a reader sees: read() gives the value that was published last, or the one before when the two calls race;
// until the Reading ends it stays that one, whole. Two lanes may be one value apart for the length of a batch.
//
// A reader that holds what it read across calls, such as from one stage of a batch to the next, has pin() and unpin()
// instead of a Reading.
//
// Threads: read(i), pin(i) and unpin(i) by one thread at a time for each i, without locks or waiting for the writer;
// publish() and reclaim() by one thread. Cost: read() and pin() two atomic loads and a store with a fence. Memory: the
// old values until reclaim() finds no reader in them; a reader that never ends its Reading keeps one.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace sluice {

template <typename Value>
class Exchanged {
  struct alignas(64) Place {
    std::atomic<const Value*> in{nullptr};
  };

 public:
  class Reading {
   public:
    explicit Reading(Place& place, const Value* value) : place_(&place), value_(value) {}
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() { place_->in.store(nullptr, std::memory_order_release); }
    explicit operator bool() const { return value_ != nullptr; }
    const Value* operator->() const { return value_; }
    const Value& operator*() const { return *value_; }

   private:
    Place* place_;
    const Value* value_;
  };

  explicit Exchanged(std::size_t readers) : places_(readers) {}

  Reading read(std::size_t reader) const {
    const Value* const value = pin(reader);
    return Reading(places_[reader], value);
  }

  // The value that read() would give; it lives until the reader's next pin(), unpin() or read().
  const Value* pin(std::size_t reader) const {
    Place& place = places_[reader];
    const Value* value = current_.load(std::memory_order_acquire);
    while (true) {
      // Either reclaim() sees this store, or the load behind it sees what was published before reclaim().
      place.in.store(value, std::memory_order_seq_cst);
      const Value* const again = current_.load(std::memory_order_seq_cst);
      if (again == value) {
        return value;
      }
      value = again;
    }
  }
  // The same with a value of the caller's, which is current or which reclaim() is told to keep.
  void pin(std::size_t reader, const Value* value) const { places_[reader].in.store(value, std::memory_order_seq_cst); }
  void unpin(std::size_t reader) const { places_[reader].in.store(nullptr, std::memory_order_release); }

  // It throws before it publishes, or not at all.
  void publish(std::unique_ptr<const Value> value) {
    retired_.reserve(retired_.size() + 1);
    current_.store(value.get(), std::memory_order_seq_cst);
    if (owned_) {
      retired_.push_back(std::move(owned_));
    }
    owned_ = std::move(value);
  }

  // Destroys the old ones that no reader is in; answers how many are left.
  std::size_t reclaim() {
    return reclaim([](const Value&) { return false; });
  }
  // But for those that `keep(value)` wants.
  template <typename Keep>
  std::size_t reclaim(const Keep& keep) {
    std::erase_if(retired_, [&](const auto& old) {
      if (keep(*old)) {
        return false;
      }
      for (const Place& place : places_) {
        if (place.in.load(std::memory_order_seq_cst) == old.get()) {
          return false;
        }
      }
      return true;
    });
    return retired_.size();
  }

 private:
  mutable std::vector<Place> places_;
  std::atomic<const Value*> current_{nullptr};
  std::unique_ptr<const Value> owned_;
  std::vector<std::unique_ptr<const Value>> retired_;
};

}  // namespace sluice
