#include "flow/tcp_stream.h"

#include <algorithm>
#include <cstring>

#include "flow/tcp_track.h"

namespace sluice::flow {

// A segment that waits: this header and its bytes in one block.
struct Held {
  Held* next;
  std::uint32_t sequence;
  std::uint32_t length;
  std::uint32_t end() const { return sequence + length; }
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  std::string_view view() { return {bytes(), length}; }
};

namespace {

constexpr std::uint32_t most_in_block = BlockPool::largest - sizeof(Held);

}  // namespace

Reassembler::Reassembler(const StreamSettings& settings, BlockPool& pool) : settings_(settings), pool_(pool) {
  settings_.window = std::min(settings_.window, 65536U);
  settings_.piece = std::max(settings_.piece, 1U);
  scratch_.resize(std::size_t{settings_.window} + settings_.piece);
}

// Whether the direction has begun, or begins with this packet.
bool Reassembler::open(TcpStream& stream, Direction direction, const Packet& packet) {
  StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
  if (side.open) {
    return true;
  }
  const bool syn = (packet.tcp_flags & tcp_syn) != 0;
  const bool other = stream.sides[static_cast<unsigned>(opposite(direction))].open;
  if (!syn && !settings_.midstream && !other) {
    return false;
  }
  side.open = true;
  side.next = packet.sequence + (syn ? 1 : 0);
  return true;
}

void Reassembler::begin(TcpStream& stream, Direction direction, std::uint32_t first) {
  StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
  side.open = true;
  side.next = first;
}

std::optional<std::uint32_t> Reassembler::expected(const TcpStream& stream, Direction direction) {
  const StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
  const bool delivered = side.open && !side.closed && !side.depth_reached;
  return delivered ? std::optional(side.next) : std::nullopt;
}

bool Reassembler::feed(TcpStream& stream, Direction direction, const Packet& packet, StreamSink& sink) {
  bool all = packet.payload.empty();
  if ((packet.tcp_flags & tcp_rst) != 0) {
    finish(stream, sink);
  } else if (!open(stream, direction, packet)) {
    ++counters_.unopened;
  } else {
    all = feed_side(stream.sides[static_cast<unsigned>(direction)], direction, packet, sink);
    StreamSide& other = stream.sides[static_cast<unsigned>(opposite(direction))];
    if ((packet.tcp_flags & tcp_ack) != 0 && other.open) {
      acknowledged(other, opposite(direction), packet.acknowledgment, sink);
    }
  }
  counters_.not_taken += all ? 0 : 1;
  return all;
}

bool Reassembler::feed_side(StreamSide& side, Direction direction, const Packet& packet, StreamSink& sink) {
  const bool syn = (packet.tcp_flags & tcp_syn) != 0;
  if (syn && side.offset == 0 && side.held_count == 0 && !side.closed) {
    side.next = packet.sequence + 1;  // a SYN again, perhaps with another sequence
  }
  const std::uint32_t first = packet.sequence + (syn ? 1 : 0);
  bool all = true;
  if (!packet.payload.empty()) {
    ++counters_.segments;
    all = take(side, direction, first, packet.payload, sink);
  }
  if ((packet.tcp_flags & tcp_fin) != 0) {
    take_fin(side, first + static_cast<std::uint32_t>(packet.payload.size()));
  }
  close_at_fin(side, direction, sink);
  return all;
}

// Of several FINs the one that is in order counts, else the last: until then none of them excludes anything.
void Reassembler::take_fin(StreamSide& side, std::uint32_t place) {
  if (side.closed || sequence_before(place, side.next)) {
    return;
  }
  if (!side.fin_seen || place == side.next || sequence_after(place, side.fin)) {
    side.fin_seen = true;
    side.fin = place;
  }
}

// One segment: what is new of it is delivered or held. False: not all of it, nor has it been before.
bool Reassembler::take(StreamSide& side, Direction direction, std::uint32_t sequence, std::string_view bytes,
                       StreamSink& sink) {
  const std::uint32_t end = sequence + static_cast<std::uint32_t>(bytes.size());
  if (side.fin_seen && sequence_after(end, side.fin)) {
    ++counters_.behind_fin;
    side.fin_seen = side.closed;  // a FIN that is not in order was perhaps not the sender's
  }
  // A keep-alive repeats the last byte, with anything in it (RFC 9293 section 3.8.4).
  const bool keep_alive = bytes.size() == 1 && sequence + 1 == side.next;
  bool anything_new = false, all = true;
  while (!bytes.empty()) {
    if (sequence_before(sequence, side.next)) {
      const auto old = std::min<std::size_t>(side.next - sequence, bytes.size());
      if (!keep_alive) {
        all &= compare_old(side, sequence, bytes.substr(0, old));
      }
      sequence += static_cast<std::uint32_t>(old);
      bytes.remove_prefix(old);
      continue;
    }
    if (side.closed || side.depth_reached) {
      return false;
    }
    anything_new = true;
    if (sequence != side.next) {
      return hold(side, direction, sequence, bytes, sink) && all;
    }
    // What waits was there first: the bytes before it are taken now, then it, then what lies behind it.
    const std::size_t room =
        side.held == nullptr ? bytes.size() : std::min<std::size_t>(side.held->sequence - sequence, bytes.size());
    all &= deliver(side, direction, bytes.substr(0, room), sink);
    sequence += static_cast<std::uint32_t>(room);
    bytes.remove_prefix(room);
    drain(side, direction, sink);
  }
  counters_.retransmitted += anything_new ? 0 : 1;
  return all;
}

void Reassembler::conflict(StreamSide& side) {
  side.conflict = true;
  ++counters_.conflicts;
}

// Bytes that have been delivered, against what is left of them. Whether they are the same.
bool Reassembler::compare_old(StreamSide& side, std::uint32_t sequence, std::string_view bytes) {
  const std::uint32_t begin = side.next - side.history_size;
  const bool all_left = side.history != nullptr && !sequence_before(sequence, begin);
  if (sequence_before(sequence, begin)) {
    const std::uint32_t gone = begin - sequence;
    if (gone >= bytes.size()) {
      return false;
    }
    bytes.remove_prefix(gone);
    sequence = begin;
  }
  if (side.history == nullptr) {
    return false;
  }
  if (std::memcmp(side.history + (sequence - begin), bytes.data(), bytes.size()) != 0) {
    conflict(side);
    return false;
  }
  return all_left;
}

bool Reassembler::insert(StreamSide& side, Held** at, std::uint32_t sequence, std::string_view bytes) {
  std::uint8_t* const block = pool_.take(sizeof(Held) + bytes.size());
  if (block == nullptr) {
    return false;
  }
  auto* const held = reinterpret_cast<Held*>(block);
  *held = {*at, sequence, static_cast<std::uint32_t>(bytes.size())};
  std::memcpy(held->bytes(), bytes.data(), bytes.size());
  *at = held;
  side.held_bytes += held->length;
  ++side.held_count;
  return true;
}

bool Reassembler::hold(StreamSide& side, Direction direction, std::uint32_t sequence, std::string_view bytes,
                       StreamSink& sink) {
  if (sequence - side.next > settings_.ahead) {
    ++counters_.too_far;
    return false;
  }
  ++counters_.out_of_order;
  // What waits behind `depth` will not be delivered.
  bool same = settings_.depth == 0 || side.offset + (sequence - side.next) + bytes.size() <= settings_.depth;
  Held** at = &side.held;
  bool kept = true;
  while (!bytes.empty() && kept) {
    while (*at != nullptr && !sequence_after((*at)->end(), sequence)) {
      at = &(*at)->next;
    }
    std::uint32_t room = std::min(static_cast<std::uint32_t>(bytes.size()), most_in_block);
    if (*at != nullptr && !sequence_before(sequence, (*at)->sequence)) {  // overlaps what waits: that stays
      room = std::min(room, (*at)->end() - sequence);
      if (std::memcmp((*at)->bytes() + (sequence - (*at)->sequence), bytes.data(), room) != 0) {
        conflict(side);
        same = false;
      }
    } else {
      if (*at != nullptr) {
        room = std::min(room, (*at)->sequence - sequence);
      }
      kept = insert(side, at, sequence, bytes.substr(0, room));
    }
    sequence += room;
    bytes.remove_prefix(room);
  }
  if (!kept) {
    counters_.not_held += side.held == nullptr ? 1 : 0;
  }
  if (side.held != nullptr &&
      (!kept || side.held_bytes > settings_.held_bytes || side.held_count > settings_.held_segments)) {
    ++counters_.gaps_for_space;
    skip_gap(side, direction, side.held->sequence, sink);
  }
  return same && kept;
}

// The bytes before `to` will not come: delivery goes on there.
void Reassembler::skip_gap(StreamSide& side, Direction direction, std::uint32_t to, StreamSink& sink) {
  const std::uint32_t missing = to - side.next;
  if (missing != 0) {
    ++counters_.gaps;
    counters_.gap_bytes += missing;
    side.gap = true;
    side.next = to;
    side.offset += missing;
    side.history_size = 0;
    if (!side.closed && !side.depth_reached) {
      sink.gap(direction, missing);
    }
  }
  drain(side, direction, sink);
}

void Reassembler::drop_first(StreamSide& side) {
  Held* const first = side.held;
  side.held = first->next;
  side.held_bytes -= first->length;
  --side.held_count;
  pool_.give(first);
}

// Delivers what waits and is next.
void Reassembler::drain(StreamSide& side, Direction direction, StreamSink& sink) {
  while (side.held != nullptr && !sequence_after(side.held->sequence, side.next)) {
    deliver(side, direction, side.held->view(), sink);
    drop_first(side);
  }
  close_at_fin(side, direction, sink);
}

// False: not all of it, for `depth`.
bool Reassembler::deliver(StreamSide& side, Direction direction, std::string_view bytes, StreamSink& sink) {
  while (!bytes.empty()) {
    if (settings_.depth != 0 && side.offset >= settings_.depth) {
      counters_.depth_reached += side.depth_reached ? 0 : 1;
      side.depth_reached = true;
      return false;
    }
    std::size_t count = std::min<std::size_t>(bytes.size(), settings_.piece);
    if (settings_.depth != 0) {
      count = std::min<std::uint64_t>(count, settings_.depth - side.offset);
    }
    deliver_piece(side, direction, bytes.substr(0, count), sink);
    bytes.remove_prefix(count);
  }
  return true;
}

void Reassembler::deliver_piece(StreamSide& side, Direction direction, std::string_view bytes, StreamSink& sink) {
  std::string_view window = bytes;
  if (side.history_size != 0) {
    std::memcpy(scratch_.data(), side.history, side.history_size);
    std::memcpy(scratch_.data() + side.history_size, bytes.data(), bytes.size());
    window = {scratch_.data(), side.history_size + bytes.size()};
  }
  const StreamData data{window.substr(window.size() - bytes.size()), window, bytes.data(), side.offset};
  side.next += static_cast<std::uint32_t>(bytes.size());
  side.offset += bytes.size();
  counters_.delivered += bytes.size();
  sink.data(direction, data);
  keep_history(side, window);
}

void Reassembler::keep_history(StreamSide& side, std::string_view window) {
  if (settings_.window == 0) {
    return;
  }
  if (side.history == nullptr && (side.history = pool_.take(settings_.window)) == nullptr) {
    ++counters_.history_lost;
    return;
  }
  side.history_size = static_cast<std::uint32_t>(std::min<std::size_t>(window.size(), settings_.window));
  std::memcpy(side.history, window.data() + window.size() - side.history_size, side.history_size);
}

// The receiver has everything before `acknowledgment`: what is missing of it before what waits, or altogether when it
// is out of reach, will not come.
void Reassembler::acknowledged(StreamSide& side, Direction direction, std::uint32_t acknowledgment, StreamSink& sink) {
  while (side.held != nullptr && !side.closed && sequence_after(acknowledgment, side.held->sequence)) {
    skip_gap(side, direction, side.held->sequence, sink);
  }
  const std::uint32_t beyond = acknowledgment - side.next;
  if (!side.closed && sequence_after(acknowledgment, side.next) && beyond > settings_.ahead) {
    skip_gap(side, direction, acknowledgment, sink);
  }
}

void Reassembler::close(StreamSide& side, Direction direction, StreamSink& sink) {
  if (side.open && !side.closed) {
    side.closed = true;
    sink.closed(direction);
  }
  while (side.held != nullptr) {
    drop_first(side);
  }
}

void Reassembler::close_at_fin(StreamSide& side, Direction direction, StreamSink& sink) {
  if (!side.fin_seen || side.closed || (!side.depth_reached && sequence_before(side.next, side.fin))) {
    return;
  }
  if (side.held != nullptr && !side.depth_reached) {
    side.fin_seen = false;  // what waits lies behind it
    return;
  }
  close(side, direction, sink);
}

void Reassembler::finish(TcpStream& stream, StreamSink& sink) {
  for (const Direction direction : {Direction::to_server, Direction::to_client}) {
    StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
    while (side.held != nullptr && !side.closed) {
      skip_gap(side, direction, side.held->sequence, sink);
    }
    close(side, direction, sink);
  }
}

void Reassembler::release(TcpStream& stream) {
  for (StreamSide& side : stream.sides) {
    while (side.held != nullptr) {
      drop_first(side);
    }
    pool_.give(side.history);
    side = StreamSide{};
  }
}

}  // namespace sluice::flow
