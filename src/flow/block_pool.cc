#include "flow/block_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>

namespace sluice::flow {
namespace {

constexpr std::uint8_t is_free = 0x80;  // a block begins here and is free; the other bits are its order

unsigned order_for(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(bytes < BlockPool::smallest ? BlockPool::smallest : bytes);
  return static_cast<unsigned>(std::countr_zero(size) - std::countr_zero(BlockPool::smallest));
}

}  // namespace

void BlockPool::Free::operator()(std::uint8_t* arena) const {
  ::operator delete[](arena, std::align_val_t{64});
}

BlockPool::BlockPool(std::size_t bytes) {
  static_assert(smallest << (orders - 1) == largest);
  const std::size_t count = bytes == 0 ? 1 : (bytes + largest - 1) / largest;
  arena_.reset(static_cast<std::uint8_t*>(::operator new[](count* largest, std::align_val_t{64})));
  order_.assign(count * (largest / smallest), 0);
  for (std::size_t i = count; i-- > 0;) {
    push(i * (largest / smallest), orders - 1);
  }
}

void BlockPool::touch() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(arena_.get());
  const std::uintptr_t first = (begin + page - 1) / page * page, end = (begin + capacity()) / page * page;
  if (first >= end || madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE) == 0) {
    return;
  }
  for (std::uintptr_t at = first; at < end; at += page) {  // a kernel before 5.14
    auto* const byte = reinterpret_cast<volatile std::uint8_t*>(at);
    *byte = *byte;
  }
}

std::size_t BlockPool::block_size(std::size_t bytes) {
  return smallest << order_for(bytes);
}

std::size_t BlockPool::index_of(const void* block) const {
  return static_cast<std::size_t>(static_cast<const std::uint8_t*>(block) - arena_.get()) / smallest;
}

BlockPool::Link* BlockPool::block_at(std::size_t index) const {
  return reinterpret_cast<Link*>(arena_.get() + index * smallest);
}

void BlockPool::push(std::size_t index, unsigned order) {
  Link* const block = block_at(index);
  *block = {free_[order], nullptr};
  if (free_[order] != nullptr) {
    free_[order]->previous = block;
  }
  free_[order] = block;
  order_[index] = static_cast<std::uint8_t>(order | is_free);
}

void BlockPool::remove(Link* block, unsigned order) {
  (block->previous != nullptr ? block->previous->next : free_[order]) = block->next;
  if (block->next != nullptr) {
    block->next->previous = block->previous;
  }
}

bool BlockPool::has(std::size_t bytes) const {
  const auto at_least = free_.begin() + (bytes > largest ? orders : order_for(bytes));
  return std::any_of(at_least, free_.end(), [](const Link* block) { return block != nullptr; });
}

std::uint8_t* BlockPool::take(std::size_t bytes) {
  const unsigned wanted = bytes > largest ? orders : order_for(bytes);
  unsigned order = wanted;
  while (order < orders && free_[order] == nullptr) {
    ++order;
  }
  if (order >= orders) {
    ++refused_;
    return nullptr;
  }
  Link* const block = free_[order];
  remove(block, order);
  const std::size_t index = index_of(block);
  while (order > wanted) {
    --order;
    push(index + (std::size_t{1} << order), order);
  }
  order_[index] = static_cast<std::uint8_t>(order);
  in_use_ += smallest << order;
  return reinterpret_cast<std::uint8_t*>(block);
}

void BlockPool::give(void* block) {
  if (block == nullptr) {
    return;
  }
  std::size_t index = index_of(block);
  unsigned order = order_[index];
  in_use_ -= smallest << order;
  while (order + 1 < orders) {
    const std::size_t buddy = index ^ (std::size_t{1} << order);
    if (order_[buddy] != (order | is_free)) {
      break;
    }
    remove(block_at(buddy), order);
    order_[buddy] = 0;
    order_[index] = 0;
    index = index < buddy ? index : buddy;
    ++order;
  }
  push(index, order);
}

}  // namespace sluice::flow
