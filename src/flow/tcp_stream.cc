#include "flow/tcp_stream.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/prefetch.h"
#include "flow/tcp_held.h"
#include "flow/tcp_track.h"

namespace sluice::flow {

namespace {

constexpr std::size_t given_back = 4;  // blocks with each packet: more than one brings

bool refused(Taken taken) {
  return taken == Taken::conflict || taken == Taken::no_capacity;
}

}  // namespace

Reassembler::Reassembler(const StreamSettings& settings, BlockPool& pool)
    : settings_(settings), pool_(pool), guarded_(settings.drop_conflicts || settings.drop_without_capacity) {
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
  side.from_syn = syn;
  side.next = side.acked = packet.sequence + (syn ? 1 : 0);
  return true;
}

void Reassembler::begin(TcpStream& stream, Direction direction, std::uint32_t first) {
  StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
  side.open = side.from_syn = true;
  side.next = side.acked = first;
}

void Reassembler::end_without_data(TcpStream& stream, Direction direction) {
  StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
  side.closed = side.fin_seen = side.open;
  side.fin = side.next;
}

std::optional<std::uint32_t> Reassembler::expected(const TcpStream& stream, Direction direction) {
  const StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
  const bool delivered = side.open && !side.closed && !side.depth_reached;
  return delivered ? std::optional(side.next) : std::nullopt;
}

Taken Reassembler::begin_again(TcpStream& stream, Direction direction, std::uint32_t first, bool settled,
                               StreamSink& sink) {
  StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
  const std::uint32_t begun = side.next - static_cast<std::uint32_t>(side.offset);
  if (!side.open || first == begun) {
    return Taken::all;
  }
  const bool taken = side.offset != 0 || side.held != nullptr || side.closed;
  if (settings_.drop_conflicts && taken && (!settled || first - begun <= side.offset)) {
    conflict(side);
    ++counters_.refused;
    ++counters_.not_taken;
    return Taken::conflict;
  }
  if (taken) {
    give_waiting(side, direction, sink);
    sink.restarted(direction);
    ++counters_.restarted;
  }
  release(side);
  begin(stream, direction, first);
  return Taken::all;
}

Taken Reassembler::feed(TcpStream& stream, Direction direction, const Packet& packet, StreamSink& sink) {
  Taken taken = packet.payload.empty() ? Taken::all : Taken::part;
  if (thrown_away_ != nullptr) [[unlikely]] {
    give_back(given_back);
  }
  if ((packet.tcp_flags & tcp_rst) != 0) {
    finish(stream, sink);
  } else if (!open(stream, direction, packet)) {
    ++counters_.unopened;
  } else {
    StreamSide& other = stream.sides[static_cast<unsigned>(opposite(direction))];
    const bool acknowledges = (packet.tcp_flags & tcp_ack) != 0 && other.open;
    if (acknowledges) {
      take_acknowledgment(other, packet.acknowledgment);
    }
    taken = feed_side(stream.sides[static_cast<unsigned>(direction)], direction, packet, sink);
    if (acknowledges) {
      acknowledged(other, opposite(direction), packet.acknowledgment, sink);
    }
  }
  counters_.not_taken += taken == Taken::all ? 0 : 1;
  return taken;
}

Waiting Reassembler::may_release(const TcpStream& stream, Direction direction, const Packet& packet) {
  const StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
  const StreamSide& other = stream.sides[static_cast<unsigned>(opposite(direction))];
  Waiting waiting;
  const auto add = [&](const StreamSide& released) {
    waiting.segments += released.held_count;
    waiting.bytes += released.held_bytes;
  };
  const std::uint32_t first = packet.sequence + ((packet.tcp_flags & tcp_syn) != 0 ? 1 : 0);
  const std::uint32_t end = first + static_cast<std::uint32_t>(packet.payload.size());
  const std::uint32_t reached = later(side.next, side.acked);
  if (side.held != nullptr && !sequence_after(first, reached) && !sequence_before(end, side.held->first().sequence)) {
    add(side);
  }
  const bool acknowledges = (packet.tcp_flags & tcp_ack) != 0;
  if (other.held != nullptr && acknowledges && sequence_after(packet.acknowledgment, other.held->first().sequence)) {
    add(other);
  }
  return waiting;
}

std::string_view Reassembler::kept(const TcpStream& stream, Direction direction) const {
  const StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
  const std::uint32_t count = std::min(side.history_size, settings_.window);
  const std::uint8_t* const end = side.history + side.history_begin + side.history_size;
  return {reinterpret_cast<const char*>(end) - count, count};
}

const std::uint8_t* Reassembler::place_of(const TcpStream& stream, Direction direction, std::size_t bytes) {
  const StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
  const std::size_t used = std::size_t{side.history_begin} + side.history_size;
  const bool goes_on = side.open && !side.closed && !side.depth_reached;
  return goes_on && used + bytes <= side.history_capacity ? side.history + used : nullptr;
}

Taken Reassembler::feed_side(StreamSide& side, Direction direction, const Packet& packet, StreamSink& sink) {
  const bool syn = (packet.tcp_flags & tcp_syn) != 0;
  if (syn && side.offset == 0 && side.held_count == 0 && !side.closed) {
    side.next = side.acked = packet.sequence + 1;  // a SYN again, perhaps with another sequence
  }
  const std::uint32_t first = packet.sequence + (syn ? 1 : 0);
  Taken taken = Taken::all;
  if (!packet.payload.empty()) {
    ++counters_.segments;
    if (lies_behind_acknowledged_hole(side, first)) [[unlikely]] {
      skip_gap(side, direction, first, sink);
    }
    if (guarded_ && !is_plain(side, first, packet.payload.size())) {
      taken = admit(side, first, packet.payload);
    }
    if (!refused(taken)) {
      taken = take(side, direction, first, packet.payload, sink);
    }
    if (refused(taken)) {
      ++counters_.refused;
      return taken;
    }
  }
  if ((packet.tcp_flags & tcp_fin) != 0) {
    take_fin(side, first + static_cast<std::uint32_t>(packet.payload.size()));
  }
  close_at_fin(side, direction, sink);
  return taken;
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

// The receiver has what is missing before this segment, which need not wait for it: of a conversation found in the
// middle that is what was under way. Only who forwards sees data before it is acknowledged, whatever else is out of
// order.
bool Reassembler::lies_behind_acknowledged_hole(const StreamSide& side, std::uint32_t sequence) const {
  return settings_.drop_without_capacity && sequence_after(side.acked, side.next) && sequence != side.next &&
         sequence - side.next <= side.acked - side.next && !side.closed && !side.depth_reached &&
         (side.held == nullptr || !sequence_before(side.held->first().sequence, sequence));
}

// In order, with nothing to compare it with, and its bytes can be kept: as most segments.
bool Reassembler::is_plain(const StreamSide& side, std::uint32_t sequence, std::size_t length) const {
  return sequence == side.next && side.held == nullptr && !side.fin_seen &&
         std::size_t{side.history_begin} + side.history_size + length <= side.history_capacity;
}

// One segment: what is new of it is delivered or held.
Taken Reassembler::take(StreamSide& side, Direction direction, std::uint32_t sequence, std::string_view bytes,
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
      return Taken::part;
    }
    anything_new = true;
    if (sequence != side.next) {
      const Taken held = hold(side, direction, sequence, bytes, sink);
      return held == Taken::all && !all ? Taken::part : held;
    }
    // What waits was there first: the bytes before it are taken now, then it, then what lies behind it.
    const std::size_t part = side.held == nullptr
                                 ? bytes.size()
                                 : std::min<std::size_t>(side.held->first().sequence - sequence, bytes.size());
    all &= deliver(side, direction, bytes.substr(0, part), sink);
    sequence += static_cast<std::uint32_t>(part);
    bytes.remove_prefix(part);
    drain(side, direction, sink);
  }
  counters_.retransmitted += anything_new ? 0 : 1;
  return all ? Taken::all : Taken::part;
}

void Reassembler::conflict(StreamSide& side) {
  side.conflict = true;
  ++counters_.conflicts;
}

// Bytes that have been delivered, against what is left of them. Whether they are the same, or do not matter: what was
// delivered and is acknowledged is not taken again.
bool Reassembler::compare_old(StreamSide& side, std::uint32_t sequence, std::string_view bytes) {
  const std::uint32_t begin = side.next - side.history_size;
  bool known = true;
  if (sequence_before(sequence, begin)) {
    const std::size_t gone = std::min<std::size_t>(begin - sequence, bytes.size());
    known = !side.gap && side.next - sequence <= side.offset &&
            !sequence_after(sequence + static_cast<std::uint32_t>(gone), side.acked);
    bytes.remove_prefix(gone);
    sequence = begin;
  }
  if (!bytes.empty() &&
      std::memcmp(side.history + side.history_begin + (sequence - begin), bytes.data(), bytes.size()) != 0) {
    conflict(side);
    return false;
  }
  return known;
}

// The bytes before `to` will not come: delivery goes on there.
void Reassembler::skip_gap(StreamSide& side, Direction direction, std::uint32_t to, StreamSink& sink) {
  const std::uint32_t missing = to - side.next;
  if (missing != 0) {
    side.gap = true;
    side.next = to;
    side.offset += missing;
    side.history_begin = side.history_size = 0;
    if (!side.closed && !side.depth_reached) {
      ++counters_.gaps;
      counters_.gap_bytes += missing;
      sink.gap(direction, missing);
    }
  }
  drain(side, direction, sink);
}

// Delivers what waits and is next.
void Reassembler::drain(StreamSide& side, Direction direction, StreamSink& sink) {
  while (side.held != nullptr && !sequence_after(side.held->first().sequence, side.next)) {
    const Held first = side.held->first();
    if (side.depth_reached) {
      forget_waiting(side);
      break;
    }
    if (!sink.takes_waiting(direction, first.length)) {
      throw_away(side, direction, sink);
      break;
    }
    if (side.held_count > 1) {
      prefetch((*side.held)[1].bytes, (*side.held)[1].length);
    }
    mark_ = static_cast<std::uint8_t>(first.mark);
    deliver(side, direction, first.view(), sink);
    mark_ = 0;
    remove_held(side, 0);
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
  const std::string_view window = remember(side, bytes);
  const StreamData data{window.substr(window.size() - bytes.size()), window, bytes.data(), side.offset, mark_};
  side.next += static_cast<std::uint32_t>(bytes.size());
  side.offset += bytes.size();
  counters_.delivered += bytes.size();
  sink.data(direction, data);
}

// New bytes to those that are kept; both together, as far as `window` goes. `next` is still before the new ones.
std::string_view Reassembler::remember(StreamSide& side, std::string_view bytes) {
  if (settings_.window == 0 && !settings_.drop_conflicts) {
    return bytes;
  }
  if (std::size_t{side.history_begin} + side.history_size + bytes.size() > side.history_capacity &&
      !ensure_capacity(side, bytes.size())) {
    return remember_apart(side, bytes);
  }
  std::uint8_t* const end = side.history + side.history_begin + side.history_size;
  std::memcpy(end, bytes.data(), bytes.size());
  const std::uint32_t before = std::min(side.history_size, settings_.window);
  side.history_size += static_cast<std::uint32_t>(bytes.size());
  return {reinterpret_cast<const char*>(end) - before, before + bytes.size()};
}

// Where both do not fit into the block: side by side elsewhere, and then the last of them into the block.
std::string_view Reassembler::remember_apart(StreamSide& side, std::string_view bytes) {
  const std::uint32_t before = std::min(side.history_size, settings_.window);
  if (side.history == nullptr) {
    ++counters_.history_lost;
    return bytes;
  }
  std::memcpy(scratch_.data(), side.history + side.history_begin + side.history_size - before, before);
  std::memcpy(scratch_.data() + before, bytes.data(), bytes.size());
  const std::string_view window(scratch_.data(), before + bytes.size());
  side.history_begin = 0;
  side.history_size = static_cast<std::uint32_t>(std::min<std::size_t>(window.size(), side.history_capacity));
  std::memcpy(side.history, window.data() + window.size() - side.history_size, side.history_size);
  return window;
}

// Capacity for so many bytes behind those that have to be kept. Small blocks are used up before there is a larger one;
// of a larger one a quarter stays free, so that what is kept is not moved with each segment.
bool Reassembler::ensure_capacity(StreamSide& side, std::size_t fresh) {
  const std::uint32_t usual = std::max(2 * settings_.window, 512U);
  const std::size_t keep =
      std::max(settings_.drop_conflicts ? unacknowledged(side) : 0, std::min(side.history_size, settings_.window));
  const std::size_t need = keep + fresh, capacity = side.history_capacity;
  if (!settings_.drop_conflicts) {  // the window and no more
    return (capacity != 0 || move_to(side, settings_.window, 0)) && need <= side.history_capacity &&
           move_to(side, side.history_capacity, keep);
  }
  if (need <= (capacity <= usual ? capacity : capacity - capacity / 4)) {
    return move_to(side, capacity, keep);
  }
  const std::size_t larger = capacity == 0   ? BlockPool::block_size(need)
                             : need <= usual ? usual
                                             : std::min(std::bit_ceil(need + need / 3), BlockPool::largest);
  const bool allowed = larger <= usual || pool_.in_use() + larger <= pool_.capacity() / 8 * 7;
  return (need <= larger && allowed && move_to(side, larger, keep)) ||
         (need <= capacity && move_to(side, capacity, keep));
}

// What is kept to the beginning of the block, or of another one of that size. False: there is none.
bool Reassembler::move_to(StreamSide& side, std::size_t size, std::size_t keep) {
  std::uint8_t* to = side.history;
  if (size != side.history_capacity && (to = block_of(size)) == nullptr) {
    return false;
  }
  if (keep != 0) {
    std::memmove(to, side.history + side.history_begin + side.history_size - keep, keep);
  }
  if (to != side.history) {
    pool_.give(side.history);
  }
  side.history = to;
  side.history_capacity = static_cast<std::uint32_t>(size);
  side.history_begin = 0;
  side.history_size = static_cast<std::uint32_t>(keep);
  return true;
}

// Behind all bytes, and the FIN, that have come.
std::uint32_t Reassembler::end_of_all(const StreamSide& side) {
  const std::uint32_t bytes = side.held == nullptr ? side.next : later(side.next, side.held->last().end());
  return side.fin_seen ? later(bytes, side.fin + 1) : bytes;
}

// Before anything of the packet is delivered: the sink's views of what came before hold no more.
void Reassembler::take_acknowledgment(StreamSide& side, std::uint32_t acknowledgment) {
  if (side.from_syn && sequence_after(acknowledgment, end_of_all(side))) {
    acknowledgment = end_of_all(side);
  }
  if (!sequence_after(acknowledgment, side.acked)) {
    return;
  }
  side.acked = acknowledgment;
  if (settings_.drop_conflicts && side.history != nullptr && !sequence_before(acknowledgment, side.next)) {
    settle(side);
  }
}

// All is acknowledged: memory beyond what the window needs is given back.
void Reassembler::settle(StreamSide& side) {
  if (side.closed || side.depth_reached) {
    pool_.give(side.history);
    side.history = nullptr;
    side.history_capacity = side.history_begin = side.history_size = 0;
  } else if (side.history_capacity > std::max(2 * settings_.window, 512U)) {
    move_to(side, std::max(2 * settings_.window, 512U), std::min(side.history_size, settings_.window));
  }
}

// The receiver has everything before `acknowledgment`: what is missing of it before what waits, or altogether when it
// is out of reach, will not come.
void Reassembler::acknowledged(StreamSide& side, Direction direction, std::uint32_t acknowledgment, StreamSink& sink) {
  while (side.held != nullptr && !side.closed && sequence_after(acknowledgment, side.held->first().sequence)) {
    skip_gap(side, direction, side.held->first().sequence, sink);
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
  forget_waiting(side);
}

void Reassembler::close_at_fin(StreamSide& side, Direction direction, StreamSink& sink) {
  if (!side.fin_seen || side.closed || (!side.depth_reached && sequence_before(side.next, side.fin))) {
    return;
  }
  const bool something_waits = side.held != nullptr && !side.depth_reached;
  // A gap may end behind it: at its own place at most, if the receiver has acknowledged it and no more.
  if (something_waits || sequence_after(side.next, side.fin + 1)) {
    side.fin_seen = false;  // what waits, or what the receiver has, lies behind it
    return;
  }
  close(side, direction, sink);
}

// With gaps before it.
void Reassembler::give_waiting(StreamSide& side, Direction direction, StreamSink& sink) {
  while (side.held != nullptr && !side.closed) {
    skip_gap(side, direction, side.held->first().sequence, sink);
  }
}

void Reassembler::finish(TcpStream& stream, StreamSink& sink) {
  for (const Direction direction : {Direction::to_server, Direction::to_client}) {
    StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
    give_waiting(side, direction, sink);
    close(side, direction, sink);
  }
}

void Reassembler::release(TcpStream& stream) {
  for (StreamSide& side : stream.sides) {
    release(side);
  }
}

void Reassembler::release(StreamSide& side) {
  forget_waiting(side);
  pool_.give(side.history);
  side = StreamSide{};
}

}  // namespace sluice::flow
