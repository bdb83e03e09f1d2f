// Memory of one lane for what a conversation needs only now and then: segments that wait for one before them, headers,
// bodies, decompressors. One arena, reserved at start and never grown; blocks of 2^n bytes by the buddy method
// (Knuth, The Art of Computer Programming 1, section 2.5, algorithms R and S).
//
//   BlockPool pool(64U << 20);
//   if (std::uint8_t* block = pool.take(1460)) { ...; pool.give(block); }   // a block of 2,048 bytes
//
// take() answers nullptr when no block of that size is free, and counts it: the caller says under a name of its own
// what it could not keep. A block is aligned to 64 bytes.
//
// Thread-safety: none, one lane. Cost: a few ns when a block of the size is free, one step for each halving otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sluice::flow {

class BlockPool {
 public:
  static constexpr std::size_t smallest = 256;
  static constexpr std::size_t largest = std::size_t{1} << 20;

  // Rounded up to whole blocks of the largest size.
  explicit BlockPool(std::size_t bytes);

  // Has the kernel give all of the arena's pages now, and not to whoever takes a block first: that takes some us for
  // each, and on a virtual machine whose memory grows as it is used some ms. About 0.2 s for a gigabyte. The blocks
  // hold what they held.
  void touch();

  // At least `bytes` bytes, 1 to `largest`; nullptr: none is free, or more is asked for than `largest`.
  std::uint8_t* take(std::size_t bytes);
  // Whether it would answer one.
  bool has(std::size_t bytes) const;
  // A block from take(); nullptr is nothing.
  void give(void* block);

  // What a request for `bytes` really takes.
  static std::size_t block_size(std::size_t bytes);

  std::size_t capacity() const { return order_.size() * smallest; }
  std::size_t in_use() const { return in_use_; }
  std::uint64_t refused() const { return refused_; }
  // Memory held, the pool's own lists included.
  std::size_t memory_bytes() const { return capacity() + order_.size(); }

 private:
  static constexpr unsigned orders = 13;  // 256 B to 1 MiB
  struct Link {
    Link* next;
    Link* previous;
  };
  struct Free {
    void operator()(std::uint8_t* arena) const;
  };

  std::size_t index_of(const void* block) const;
  Link* block_at(std::size_t index) const;
  void push(std::size_t index, unsigned order);
  void remove(Link* block, unsigned order);

  std::unique_ptr<std::uint8_t[], Free> arena_;
  std::vector<std::uint8_t> order_;  // of the block that begins here, with the bits of block_pool.cc
  std::array<Link*, orders> free_{};
  std::size_t in_use_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace sluice::flow
