// What waits of a stream for bytes before it (tcp_held.h): how it is kept, and how it goes.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "flow/tcp_held.h"
#include "flow/tcp_stream.h"

namespace sluice::flow {
namespace {

constexpr std::uint32_t most_in_block = BlockPool::largest;
constexpr std::size_t given_back_for_capacity = 32;  // where there is no other

}  // namespace

// With capacity for more, twice as many as there are.
bool Reassembler::ensure_capacity_to_wait(StreamSide& side) {
  HeldList* const old = side.held;
  if (old != nullptr && !old->is_full()) {
    return true;
  }
  const std::size_t size = BlockPool::block_size(old == nullptr ? 1 : HeldList::size_for(old->capacity + 1));
  std::uint8_t* const block = block_of(size);
  if (block == nullptr) {
    return false;
  }
  side.held = new (block) HeldList(size);
  if (old != nullptr) {
    side.held->count = old->count;
    std::memcpy(&(*side.held)[0], &(*old)[0], old->count * sizeof(Held));
    pool_.give(old);
  }
  return true;
}

// False: there is no block.
bool Reassembler::insert(StreamSide& side, std::size_t at, std::uint32_t sequence, std::string_view bytes,
                         std::uint8_t mark) {
  std::uint8_t* const block = block_of(bytes.size());
  if (block == nullptr || !ensure_capacity_to_wait(side)) {
    pool_.give(block);
    return false;
  }
  std::memcpy(block, bytes.data(), bytes.size());
  const auto length = static_cast<std::uint32_t>(bytes.size());
  side.held->insert(at, {sequence, length, 1, mark, reinterpret_cast<char*>(block)});
  side.held_bytes += length;
  ++side.held_count;
  waiting_ += BlockPool::block_size(length);
  return true;
}

void Reassembler::remove_held(StreamSide& side, std::size_t at) {
  const Held gone = (*side.held)[at];
  side.held_bytes -= gone.length;
  --side.held_count;
  waiting_ -= BlockPool::block_size(gone.length);
  pool_.give(gone.bytes);
  side.held->remove(at);
  if (side.held->count == 0) {
    pool_.give(std::exchange(side.held, nullptr));
  }
}

// What is new of a segment; `same`: what is not, is as it waits. False: there is no capacity for all of it; where such
// a segment is refused nothing of it is kept.
bool Reassembler::keep(StreamSide& side, std::uint32_t sequence, std::string_view bytes, std::uint8_t mark,
                       bool& same) {
  const std::size_t first = side.held == nullptr ? 0 : side.held->find(sequence);
  std::size_t at = first;
  bool kept = true;
  while (!bytes.empty() && kept) {
    auto part = static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), most_in_block));
    const Held* const next = side.held != nullptr && at < side.held->count ? &(*side.held)[at] : nullptr;
    if (next != nullptr && !sequence_before(sequence, next->sequence)) {  // overlaps what waits: that stays
      part = std::min(part, next->end() - sequence);
      if (std::memcmp(next->bytes + (sequence - next->sequence), bytes.data(), part) != 0) {
        conflict(side);
        same = false;
      }
      at += sequence + part == next->end() ? 1 : 0;
    } else {
      part = next == nullptr ? part : std::min(part, next->sequence - sequence);
      kept = insert(side, at, sequence, bytes.substr(0, part), mark);
      at += kept ? 1 : 0;
    }
    sequence += part;
    bytes.remove_prefix(part);
  }
  for (std::size_t i = at; i-- > first;) {
    if ((*side.held)[i].fresh == 0) {
      continue;
    }
    (*side.held)[i].fresh = 0;
    if (!kept && settings_.drop_without_capacity) {
      remove_held(side, i);
    }
  }
  return kept;
}

Taken Reassembler::hold(StreamSide& side, Direction direction, std::uint32_t sequence, std::string_view bytes,
                        StreamSink& sink) {
  // What waits behind `depth` will not be delivered.
  const std::uint64_t begin = side.offset + (sequence - side.next);
  if (settings_.drop_without_capacity && settings_.depth != 0 && begin >= settings_.depth) {
    return Taken::part;
  }
  if (sequence - side.next > settings_.ahead) {
    ++counters_.too_far;
    return Taken::part;
  }
  bool same = settings_.depth == 0 || begin + bytes.size() <= settings_.depth;
  const bool kept = keep(side, sequence, bytes, sink.waits(direction), same);
  if (!kept && settings_.drop_without_capacity) {
    ++counters_.not_held;
    return Taken::no_capacity;
  }
  ++counters_.out_of_order;
  if (!kept) {
    counters_.not_held += side.held == nullptr ? 1 : 0;
  }
  if (side.held != nullptr && !settings_.drop_without_capacity &&
      (!kept || side.held_bytes > settings_.held_bytes || side.held_count > settings_.held_segments)) {
    ++counters_.gaps_for_space;
    skip_gap(side, direction, side.held->first().sequence, sink);
  }
  return same && kept ? Taken::all : Taken::part;
}
// Of a direction: its blocks are given back later.
void Reassembler::forget_waiting(StreamSide& side) {
  if (side.held == nullptr) {
    return;
  }
  side.held->next = std::exchange(thrown_away_, side.held);
  side.held = nullptr;
  side.held_bytes = 0;
  side.held_count = 0;
}

void Reassembler::give_back(std::size_t blocks) {
  for (; blocks != 0 && thrown_away_ != nullptr; --blocks) {
    HeldList& list = *thrown_away_;
    const Held last = list[list.count - 1];
    waiting_ -= BlockPool::block_size(last.length);
    pool_.give(last.bytes);
    if (--list.count == 0) {
      thrown_away_ = list.next;
      pool_.give(&list);
    }
  }
}

std::uint8_t* Reassembler::block_of(std::size_t bytes) {
  std::uint8_t* block = pool_.take(bytes);
  if (block == nullptr && thrown_away_ != nullptr) {
    give_back(given_back_for_capacity);
    block = pool_.take(bytes);
  }
  return block;
}

// What waits in the direction, and what is missing before and within it: delivery goes on behind all that.
void Reassembler::throw_away(StreamSide& side, Direction direction, StreamSink& sink) {
  counters_.thrown_away += side.held_count;
  const std::uint32_t end = side.held->last().end();
  forget_waiting(side);
  skip_gap(side, direction, end, sink);
}

}  // namespace sluice::flow
