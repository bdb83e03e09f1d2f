// Which segments may reach the receiver (docs/flows.md, "What the receiver gets"): no other bytes than were inspected,
// and none that cannot be.
#include <cstring>

#include "flow/tcp_held.h"
#include "flow/tcp_stream.h"

namespace sluice::flow {

// Whether a segment may reach the receiver; nothing is taken of it yet.
Taken Reassembler::admit(StreamSide& side, std::uint32_t sequence, std::string_view bytes) {
  const std::uint32_t end = sequence + static_cast<std::uint32_t>(bytes.size());
  if (settings_.drop_conflicts && side.closed && side.fin_seen && sequence_after(end, side.fin)) {
    ++counters_.behind_fin;
    conflict(side);
    return Taken::conflict;
  }
  if (const Taken old = admit_old(side, sequence, bytes); old != Taken::all) {
    return old;
  }
  if (!sequence_after(end, side.next) || side.closed || side.depth_reached) {
    return Taken::all;
  }
  const std::uint32_t begin = later(sequence, side.next);
  std::size_t fresh = 0;
  if (const Taken held = admit_held(side, begin, bytes.substr(begin - sequence), fresh); held != Taken::all) {
    return held;
  }
  return admit_new(side, begin, end - begin, fresh);
}

// What has been delivered, as far as the receiver may not have it. By distances from `next`: comparisons of sequences
// that are made up, modulo 2^32, need not agree with each other.
Taken Reassembler::admit_old(StreamSide& side, std::uint32_t sequence, std::string_view bytes) {
  const auto distance = [&](std::uint32_t place) { return std::int64_t{static_cast<std::int32_t>(place - side.next)}; };
  const std::int64_t begin = distance(sequence);
  const std::int64_t to = std::min<std::int64_t>(begin + static_cast<std::int64_t>(bytes.size()), 0);
  const std::int64_t from = std::max(begin, distance(side.acked));
  if (!settings_.drop_conflicts || from >= to) {
    return Taken::all;
  }
  const std::int64_t kept = std::max(from, -std::int64_t{side.history_size});
  if (kept < to && std::memcmp(side.history + side.history_begin + side.history_size + kept,
                               bytes.data() + (kept - begin), static_cast<std::size_t>(to - kept)) != 0) {
    conflict(side);
    return Taken::conflict;
  }
  if (kept == from) {
    return Taken::all;
  }
  ++counters_.not_compared;
  return settings_.drop_without_capacity ? Taken::no_capacity : Taken::all;
}

// What waits already. `fresh`: the bytes that do not.
Taken Reassembler::admit_held(StreamSide& side, std::uint32_t sequence, std::string_view bytes, std::size_t& fresh) {
  const std::uint32_t end = sequence + static_cast<std::uint32_t>(bytes.size());
  fresh = bytes.size();
  if (side.held == nullptr) {
    return Taken::all;
  }
  for (std::size_t h = side.held->find(sequence); h < side.held->count; ++h) {
    const Held* const held = &(*side.held)[h];
    if (!sequence_before(held->sequence, end)) {
      break;
    }
    const std::uint32_t from = later(sequence, held->sequence);
    const std::uint32_t to = sequence_before(end, held->end()) ? end : held->end();
    fresh -= to - from;
    if (settings_.drop_conflicts &&
        std::memcmp(held->bytes + (from - held->sequence), bytes.data() + (from - sequence), to - from) != 0) {
      conflict(side);
      return Taken::conflict;
    }
  }
  return Taken::all;
}

// Whether there is capacity for what is new of a segment.
Taken Reassembler::admit_new(StreamSide& side, std::uint32_t sequence, std::size_t length, std::size_t fresh) {
  if (!settings_.drop_without_capacity || fresh == 0) {
    return Taken::all;
  }
  if (sequence == side.next) {
    const bool kept = !settings_.drop_conflicts || ensure_capacity(side, length) || unacknowledged(side) == 0;
    return kept ? Taken::all : Taken::no_capacity;
  }
  const std::uint32_t ahead = sequence - side.next;
  if (settings_.depth != 0 && side.offset + ahead >= settings_.depth) {
    return Taken::all;  // it will not wait
  }
  if (ahead > settings_.ahead) {
    ++counters_.too_far;
    return Taken::no_capacity;
  }
  const bool fits = side.held_bytes + fresh <= settings_.held_bytes && side.held_count < settings_.held_segments &&
                    waiting_ + BlockPool::block_size(fresh) <= pool_.capacity() / 2;
  counters_.not_held += fits ? 0 : 1;
  return fits ? Taken::all : Taken::no_capacity;
}

}  // namespace sluice::flow
