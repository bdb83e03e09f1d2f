// Objects of one type in one row of memory: a fixed number of slots at fixed addresses, named by an index of 32 bits.
//
// Thread-safety: at() any thread; make() and the end of a Handle one at a time. Memory: huge_memory.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ipsec/huge_memory.h"

namespace sluice::ipsec {

template <class T>
class SlotPool {
 public:
  struct GiveBack {
    SlotPool* pool = nullptr;
    void operator()(T* object) const { pool->destroy(object); }
  };
  // Owns a slot. It ends before the pool.
  using Handle = std::unique_ptr<T, GiveBack>;

  // Throws std::bad_alloc.
  explicit SlotPool(std::size_t capacity)
      : capacity_(capacity), memory_(capacity * sizeof(T)), slots_(static_cast<T*>(memory_.data())) {
    free_.reserve(capacity);  // giving a slot back cannot fail
  }
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  // Null: all slots are in use.
  template <class... Arguments>
  Handle make(Arguments&&... arguments) {
    const bool fresh = free_.empty();
    if (fresh && begun_ == capacity_) return {nullptr, GiveBack{this}};
    const std::uint32_t index = next_index();
    T* const object = new (slots_ + index) T(std::forward<Arguments>(arguments)...);
    if (fresh) {
      ++begun_;
    } else {
      free_.pop_back();
    }
    return {object, GiveBack{this}};
  }

  // Of the object that make() makes next, if there is capacity.
  std::uint32_t next_index() const { return free_.empty() ? static_cast<std::uint32_t>(begun_) : free_.back(); }

  T* at(std::uint32_t index) const { return slots_ + index; }
  std::uint32_t index_of(const T* object) const { return static_cast<std::uint32_t>(object - slots_); }
  std::size_t capacity() const { return capacity_; }
  std::size_t used() const { return begun_ - free_.size(); }

 private:
  void destroy(T* object) {
    object->~T();
    free_.push_back(index_of(object));
  }

  const std::size_t capacity_;
  const HugeMemory memory_;
  T* const slots_;
  std::size_t begun_ = 0;  // slots that were ever in use
  std::vector<std::uint32_t> free_;
};

}  // namespace sluice::ipsec
