#include "ipsec/replay_window.h"

#include <algorithm>
#include <bit>

namespace sluice::ipsec {
namespace {

constexpr unsigned half = 32;

constexpr std::uint64_t word_of_block(std::uint64_t block, std::uint32_t set) {
  return block << half | set;
}

// How far the word's block is behind `block`, or, below 0, in front of it.
std::int32_t behind(std::uint64_t word, std::uint64_t block) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(block) - static_cast<std::uint32_t>(word >> half));
}

}  // namespace

ReplayWindow::ReplayWindow(std::uint32_t size, std::uint64_t highest)
    : highest_(highest), size_(static_cast<std::uint16_t>(size)) {
  // A window reaches into one block more than it fills.
  const std::uint32_t words = std::bit_ceil((size + bits - 1) / bits + 1);
  if (words > inside) {
    further_ = std::make_unique<std::atomic<std::uint64_t>[]>(words);
    mask_ = static_cast<std::uint16_t>(words - 1);
  }
  const std::uint64_t top = highest / bits;
  for (std::uint64_t back = 0; back <= std::min<std::uint64_t>(top, mask_); ++back) {
    const std::uint64_t block = top - back;
    const std::uint32_t all = 0xffffffff;
    const auto received = back == 0 ? static_cast<std::uint32_t>((std::uint64_t{2} << highest % bits) - 1) : all;
    word_of(block)->store(word_of_block(block, received), std::memory_order_relaxed);
  }
}

std::optional<std::uint64_t> ReplayWindow::extend(std::uint32_t low) const {
  const std::uint64_t highest = highest_.load(std::memory_order_relaxed);
  const auto high = static_cast<std::uint32_t>(highest >> half);
  // The window's first number, T - W + 1, in 32 bits; without a window half of all numbers are before T.
  const std::uint32_t size = size_ == 0 ? 0x80000000 : size_;
  const std::uint32_t first = static_cast<std::uint32_t>(highest) - size + 1;
  std::uint64_t number = 0;
  if (static_cast<std::uint32_t>(highest) >= size - 1) {  // case A: it is within one half space
    if (low < first && high == 0xffffffff) return std::nullopt;
    number = std::uint64_t{high + (low < first ? 1U : 0U)} << half | low;
  } else {  // case B: it begins in the one before
    if (low >= first && high == 0) return std::nullopt;
    number = std::uint64_t{high - (low >= first ? 1U : 0U)} << half | low;
  }
  return number;
}

bool ReplayWindow::may_be_new(std::uint64_t number) const {
  if (size_ == 0) return true;
  const std::uint64_t highest = highest_.load(std::memory_order_relaxed);
  if (number == 0 || (number <= highest && highest - number >= size_)) return false;
  const std::uint64_t word = word_of(number / bits)->load(std::memory_order_relaxed);
  const std::int32_t later = behind(word, number / bits);
  return later > 0 || (later == 0 && (word >> number % bits & 1) == 0);
}

std::uint32_t ReplayWindow::set(std::uint64_t block, std::uint32_t wanted) {
  std::atomic<std::uint64_t>& place = *word_of(block);
  std::uint64_t word = place.load(std::memory_order_relaxed);
  while (true) {
    const std::int32_t later = behind(word, block);
    if (later < 0) return 0;
    const std::uint32_t there = later == 0 ? static_cast<std::uint32_t>(word) : 0;
    const std::uint32_t fresh = wanted & ~there;
    if (fresh == 0) return 0;
    if (place.compare_exchange_weak(word, word_of_block(block, there | wanted), std::memory_order_relaxed))
      return fresh;
  }
}

void ReplayWindow::raise(std::uint64_t number) {
  std::uint64_t highest = highest_.load(std::memory_order_relaxed);
  while (highest < number && !highest_.compare_exchange_weak(highest, number, std::memory_order_relaxed)) {
  }
}

bool ReplayWindow::accept(std::uint64_t number) {
  bool accepted = false;
  accept_run({&number, 1}, &accepted);
  return accepted;
}

void ReplayWindow::accept_run(std::span<const std::uint64_t> numbers, bool* accepted) {
  std::size_t at = 0;
  while (at < numbers.size()) {
    // A row of ascending numbers of one block; only its last may raise the window.
    const std::uint64_t block = numbers[at] / bits;
    std::uint32_t wanted = 0;
    std::size_t end = at;
    for (; end < numbers.size() && numbers[end] / bits == block; ++end) {
      const std::uint32_t bit = 1U << numbers[end] % bits;
      if (end > at && numbers[end] <= numbers[end - 1]) break;
      wanted |= bit;
    }
    std::uint64_t highest = highest_.load(std::memory_order_relaxed);
    const auto is_open = [&](std::uint64_t number) {
      return number != 0 && (number > highest || highest - number < size_);
    };
    for (std::size_t i = at; i < end; ++i) {
      if (size_ != 0 && !is_open(numbers[i])) wanted &= ~(1U << numbers[i] % bits);
    }
    const std::uint32_t fresh = size_ == 0 ? wanted : set(block, wanted);
    for (std::size_t i = at; i < end; ++i) accepted[i] = (fresh >> numbers[i] % bits & 1) != 0;
    if (size_ == 0 || accepted[end - 1]) raise(numbers[end - 1]);
    at = end;
  }
}

}  // namespace sluice::ipsec
