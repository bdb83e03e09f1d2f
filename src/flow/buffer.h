// A growing run of bytes in a lane's BlockPool: contiguous, doubled when it is full, bounded by its caller.
// A queue as well: bytes may be taken from its front.
//
// Thread-safety: none, one lane. Views into it hold until the next append() or clear().
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "flow/block_pool.h"

namespace sluice::flow {

class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // All of `bytes`, or false and nothing: the pool has no block that is large enough.
  bool append(BlockPool& pool, std::string_view bytes) {
    if (bytes.empty()) {
      return true;
    }
    const bool fits = data_ != nullptr && front_ + size_ + bytes.size() <= capacity_;
    if (!fits && !ensure_capacity(pool, size_ + bytes.size())) {
      return false;
    }
    std::memcpy(data_ + front_ + size_, bytes.data(), bytes.size());
    size_ += static_cast<std::uint32_t>(bytes.size());
    return true;
  }
  // Gives the memory back.
  void clear(BlockPool& pool) {
    pool.give(data_);
    data_ = nullptr;
    front_ = size_ = capacity_ = 0;
  }
  // Forgets the first `count` bytes, and gives the memory back when none are left. The others stay where they are until
  // capacity is needed.
  void drop_front(BlockPool& pool, std::size_t count) {
    if (count >= size_) {
      clear(pool);
      return;
    }
    front_ += static_cast<std::uint32_t>(count);
    size_ -= static_cast<std::uint32_t>(count);
  }
  void cut(std::size_t size) { size_ = std::min(size_, static_cast<std::uint32_t>(size)); }

  std::uint8_t* data() { return data_ + front_; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  std::string_view view() const { return {reinterpret_cast<const char*>(data_) + front_, size_}; }
  // What there is of it.
  std::string_view view(std::size_t at, std::size_t length) const {
    return view().substr(std::min<std::size_t>(at, size_), length);
  }

 private:
  bool ensure_capacity(BlockPool& pool, std::size_t wanted) {
    if (data_ != nullptr && wanted <= capacity_) {
      std::memmove(data_, data_ + front_, size_);
      front_ = 0;
      return true;
    }
    std::uint8_t* const larger = pool.take(wanted);
    if (larger == nullptr) {
      return false;
    }
    if (data_ != nullptr) {
      std::memcpy(larger, data_ + front_, size_);
    }
    pool.give(data_);
    data_ = larger;
    front_ = 0;
    capacity_ = static_cast<std::uint32_t>(BlockPool::block_size(wanted));
    return true;
  }

  std::uint8_t* data_ = nullptr;
  std::uint32_t front_ = 0;  // bytes before the first
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;
};

}  // namespace sluice::flow
