// TCP reassembly: the bytes of each direction of a conversation, in order, each once (RFC 9293 section 3.4).
//
//   Reassembler reassembler(settings, pool);
//   reassembler.feed(stream, direction, packet, sink);   // a packet that FlowTable::track() called good
//   ...
//   reassembler.finish(stream, sink);                     // RST, timeout, eviction: what is held goes out, with gaps
//
// A direction begins with its SYN; without one it begins at the first segment seen, if `midstream` or if the other
// side's SYN was seen (its SYN-ACK was missed). Bytes that come too early wait in blocks of the lane's pool; bytes that
// have been delivered or wait already are not taken again, so of two different contents for one place the FIRST counts.
// That is what Windows and BSD do for the front of a segment. Linux prefers the newer for some overlaps, so that an
// attacker who knows the target can show it something else (Ptacek and Newsham, 1998), or send first what does not
// reach it. Such an overlap with different bytes is counted and marked (`conflict`). Urgent data is delivered in line;
// timestamps (PAWS, RFC 7323) are not looked at.
//
// For who forwards, what the receiver gets can be kept to what the sink has seen:
//   - `drop_conflicts`: bytes are kept until the receiver has acknowledged them, and a segment that has others for
//     one of these places, or data behind the direction's FIN, is refused (Taken::conflict). What is acknowledged no
//     receiver takes again: other bytes there, a keep-alive's for instance, are harmless.
//   - `drop_without_capacity`: a segment that would have to wait and for which there is no capacity (`held_bytes`,
//     `held_segments`, half of the pool), that lies more than `ahead` beyond what is next, but not behind `depth`, or
//     whose bytes could not be kept beside others that are not acknowledged yet, is refused (Taken::no_capacity): TCP
//     sends it again, when the hole is filled or the others are acknowledged. What is next is always taken when nothing
//     before it is unacknowledged. Bytes that were not kept for want of memory cannot be compared with what comes again
//     in their place: that is refused, too (`not_compared`).
// Of a refused segment nothing is taken, nor its FIN; its acknowledgment counts.
//
// Bytes are missing for good, a gap, when
//   - the receiver has acknowledged them and what waits behind them: it has them, they did not pass here; with
//     `drop_without_capacity` also when a segment comes up to whose beginning all is acknowledged. Of a direction that
//     began with a SYN an acknowledgment counts as far as something has come: a forged one that lies ahead makes no
//     gap;
//   - more waits than `held_bytes` or `held_segments` of a direction, or the pool has no block;
//   - the conversation ends.
// Then gap() says how many, and delivery goes on behind them. Segments more than `ahead` bytes beyond the next
// expected one are not held (`too_far`), unless the receiver has acknowledged as much.
// After `depth` bytes of a direction nothing more of it is delivered (`depth_reached`): as Suricata's
// stream.reassembly.depth.
//
// What the sink sees. data() gives `fresh`, the new bytes, and `window`, one run of memory that ends with them and
// begins with the last `window` settings' bytes delivered before. Whoever matches raw content looks at `window` and
// thereby finds what lies across segments, up to that length, and takes as new only matches that end within `fresh`.
// Suricata inspects its stream in chunks of toserver-chunk-size (2,560) that overlap in the same way, inline a sliding
// window around each packet. After a gap the window begins anew. A delivery has at most `piece` fresh bytes. When the
// pool has no block for the history, it is lost for this once, counted (`history_lost`). closed() comes once for a
// direction: after the last byte before its FIN, or from finish(). A FIN counts once everything before it is there, and
// only if nothing is there that lies behind it: one that comes too early hides nothing.
//
// What has to wait is reported (waits()) as its packet comes, and what the sink says of it, a mark, comes back with the
// bytes. One packet may release all that waits. The sink is asked before each delivery of it (takes_waiting()). Where
// it has no time for more, what still waits in the direction is a gap (`thrown_away`). may_release() says ahead how
// much that may be. The memory of what is thrown away is given back with the packets that follow, some blocks with
// each, so that it is at no packet's cost.
//
// feed() says whether all bytes of the packet are or will be seen by the sink. Not so are bytes behind `depth`, behind
// a FIN, too far ahead, or without capacity to wait. Nor are those that lie before what was delivered and differ from
// it, or cannot be compared any more: they may be a retransmission from beyond the history that is not acknowledged, or
// fill a gap too late. The caller then looks at the packet by itself.
//
// Thread-safety: none, one lane; nothing is allocated after construction, but from the pool. Cost: a copy of the
// segment with its history, about 50 ns for 1,460 bytes, less where bytes are kept until they are acknowledged: they
// lie side by side then. Memory: 64 bytes of state a direction, and once it has data `window` bytes of the pool. Where
// bytes are kept, a block for those not acknowledged and `window` more, twice `window` mostly, and at most 7/8 of the
// pool for larger ones.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "flow/block_pool.h"
#include "flow/packet.h"

namespace sluice::flow {

struct StreamSettings {
  std::uint64_t depth = 1U << 20;       // bytes of a direction; 0: no limit
  std::uint32_t window = 2048;          // history, at most 65,536; 0: none
  std::uint32_t piece = 16384;          // most fresh bytes of a delivery, at least 1
  std::uint32_t held_bytes = 1U << 18;  // that may wait, a direction
  std::uint32_t held_segments = 256;
  std::uint32_t ahead = 1U << 20;
  bool midstream = false;
  bool drop_conflicts = false;  // for who forwards: see above
  bool drop_without_capacity = false;
};

// What became of a packet's bytes. Reassembler says the first four.
enum class Taken : std::uint8_t {
  all,          // the sink sees all of them, or has
  part,         // there are some that it does not see
  conflict,     // refused: nothing is taken, and it must not reach the receiver
  no_capacity,  // likewise
  outside,      // likewise: the conversation does not allow it (TcpCheck::bad)
  silent,       // likewise: the conversation was silent for its timeout, and is inspected no more
};

struct StreamData {
  std::string_view fresh;
  std::string_view window;   // ends with `fresh`
  const char* origin;        // where fresh's bytes came from: the packet that is fed, or what waited
  std::uint64_t offset = 0;  // of fresh[0] in the direction, gaps included
  std::uint8_t mark = 0;     // what waits() said of bytes that have waited; 0 of others
};

class StreamSink {
 public:
  virtual void data(Direction direction, const StreamData& data) = 0;
  // The packet that is fed has bytes that will wait: a mark that comes with them (StreamData).
  virtual std::uint8_t waits(Direction /*direction*/) { return 0; }
  // So many bytes that have waited come next. False: they do not, nor what else waits in the direction, but a gap does.
  virtual bool takes_waiting(Direction /*direction*/, std::size_t /*bytes*/) { return true; }
  virtual void gap(Direction direction, std::uint64_t bytes) = 0;
  virtual void closed(Direction direction) = 0;
  // What came of the direction was another SYN's: it begins anew, at offset 0, with nothing before it.
  virtual void restarted(Direction direction) = 0;

 protected:
  ~StreamSink() = default;
};

struct StreamCounters {
  std::uint64_t segments = 0;       // with data
  std::uint64_t delivered = 0;      // bytes
  std::uint64_t out_of_order = 0;   // segments that had to wait
  std::uint64_t retransmitted = 0;  // segments without anything new
  std::uint64_t conflicts = 0;      // overlaps with other bytes; SYNs of which it is not known which counts
  std::uint64_t gaps = 0;
  std::uint64_t gap_bytes = 0;
  std::uint64_t gaps_for_space = 0;  // of `gaps`: held_bytes or held_segments was reached, or the pool was empty
  std::uint64_t not_held = 0;     // segments lost, for the pool had no block even then; or refused for want of capacity
  std::uint64_t thrown_away = 0;  // segments that waited, and that the sink did not take: part of a gap
  std::uint64_t too_far = 0;      // segments
  std::uint64_t behind_fin = 0;   // segments with data behind a FIN
  std::uint64_t not_taken = 0;    // packets of which feed() did not take all
  std::uint64_t refused = 0;      // of these, refused: Taken::conflict and no_capacity
  std::uint64_t not_compared = 0;   // `drop_conflicts`: segments sent again whose first bytes were not kept
  std::uint64_t depth_reached = 0;  // directions
  std::uint64_t history_lost = 0;   // deliveries whose bytes were not kept for the next window
  std::uint64_t unopened = 0;       // segments of a direction that has not begun and may not
  std::uint64_t restarted = 0;      // directions that began anew behind another SYN
};

// Of one direction.
struct StreamSide {
  std::uint32_t next = 0;   // sequence expected
  std::uint32_t fin = 0;    // sequence of the FIN, if fin_seen
  std::uint32_t acked = 0;  // by the receiver; at the least where the direction begins
  std::uint64_t offset = 0;
  struct HeldList* held = nullptr;     // null: nothing waits
  std::uint8_t* history = nullptr;     // a block; what is kept lies behind history_begin, and ends before `next`
  std::uint32_t history_capacity = 0;  // the block's size
  std::uint32_t history_begin = 0;
  std::uint32_t history_size = 0;
  std::uint32_t held_bytes = 0;
  std::uint16_t held_count = 0;
  bool open = false;
  bool from_syn = false;  // begun by one, so that all that the receiver may have has come by here
  bool fin_seen = false;
  bool closed = false;
  bool depth_reached = false;
  bool gap = false;       // there has been one
  bool conflict = false;  // an overlap with other bytes
};

struct TcpStream {
  std::array<StreamSide, 2> sides;  // by Direction
};

struct Waiting {
  std::uint32_t segments = 0, bytes = 0;
};

class Reassembler {
 public:
  // `pool` is the lane's, and outlives the reassembler.
  Reassembler(const StreamSettings& settings, BlockPool& pool);

  // The direction's first byte has this sequence number: for a stream that is made after its handshake.
  static void begin(TcpStream& stream, Direction direction, std::uint32_t first);
  // Of a stream that begin() has begun, and that has ended since: it takes nothing.
  static void end_without_data(TcpStream& stream, Direction direction);
  // The same as begin() for one that may have begun behind another SYN: then it begins anew, and what waits goes out
  // first. With `drop_conflicts` it does not, and the packet that says so is to be refused, where what has been taken
  // may be what the receiver has: if `first` lies within it, or, but for `settled`, anything has been taken.
  Taken begin_again(TcpStream& stream, Direction direction, std::uint32_t first, bool settled, StreamSink& sink);
  Taken feed(TcpStream& stream, Direction direction, const Packet& packet, StreamSink& sink);
  // The sequence that the receiver waits for, as far as it is known: of a direction that is delivered.
  static std::optional<std::uint32_t> expected(const TcpStream& stream, Direction direction);
  // Where the next so many bytes in order will be copied to, behind those that are kept; nullptr: not known before they
  // come.
  static const std::uint8_t* place_of(const TcpStream& stream, Direction direction, std::size_t bytes);
  // The last bytes delivered, as far as they are kept and `window` goes: until the next packet is fed.
  std::string_view kept(const TcpStream& stream, Direction direction) const;
  static bool something_waits(const TcpStream& stream) {
    return stream.sides[0].held != nullptr || stream.sides[1].held != nullptr;
  }
  // Whether the sink may still get bytes of the direction: it has not ended, nor come to its depth.
  bool goes_on(const TcpStream& stream, Direction direction) const {
    const StreamSide& side = stream.sides[static_cast<unsigned>(direction)];
    return !side.closed && !side.depth_reached && (settings_.depth == 0 || side.offset < settings_.depth);
  }
  // What feed() would release of what waits, at most; of a packet without RST, and with `drop_without_capacity`: else
  // one that has to wait and has no capacity releases what waits before it, too.
  static Waiting may_release(const TcpStream& stream, Direction direction, const Packet& packet);
  // Delivers what waits, with gaps, and closes both directions that have begun.
  void finish(TcpStream& stream, StreamSink& sink);
  // Without a word to anyone; the stream may then be used anew. Of the memory of what still waits, see give_back().
  void release(TcpStream& stream);
  // To the pool, at most so many blocks of what was thrown away: feed() does so with a few.
  void give_back(std::size_t blocks);

  const StreamSettings& settings() const { return settings_; }
  // Something may be refused.
  bool is_guarded() const { return guarded_; }
  const StreamCounters& counters() const { return counters_; }

 private:
  bool open(TcpStream& stream, Direction direction, const Packet& packet);
  Taken feed_side(StreamSide& side, Direction direction, const Packet& packet, StreamSink& sink);
  void take_fin(StreamSide& side, std::uint32_t place);
  bool lies_behind_acknowledged_hole(const StreamSide& side, std::uint32_t sequence) const;
  bool is_plain(const StreamSide& side, std::uint32_t sequence, std::size_t length) const;
  Taken admit(StreamSide& side, std::uint32_t sequence, std::string_view bytes);
  Taken admit_old(StreamSide& side, std::uint32_t sequence, std::string_view bytes);
  Taken admit_held(StreamSide& side, std::uint32_t sequence, std::string_view bytes, std::size_t& fresh);
  Taken admit_new(StreamSide& side, std::uint32_t sequence, std::size_t length, std::size_t fresh);
  Taken take(StreamSide& side, Direction direction, std::uint32_t sequence, std::string_view bytes, StreamSink& sink);
  Taken hold(StreamSide& side, Direction direction, std::uint32_t sequence, std::string_view bytes, StreamSink& sink);
  bool keep(StreamSide& side, std::uint32_t sequence, std::string_view bytes, std::uint8_t mark, bool& same);
  bool insert(StreamSide& side, std::size_t at, std::uint32_t sequence, std::string_view bytes, std::uint8_t mark);
  bool ensure_capacity_to_wait(StreamSide& side);
  void remove_held(StreamSide& side, std::size_t at);
  bool deliver(StreamSide& side, Direction direction, std::string_view bytes, StreamSink& sink);
  void deliver_piece(StreamSide& side, Direction direction, std::string_view bytes, StreamSink& sink);
  std::string_view remember(StreamSide& side, std::string_view bytes);
  std::string_view remember_apart(StreamSide& side, std::string_view bytes);
  bool ensure_capacity(StreamSide& side, std::size_t fresh);
  bool move_to(StreamSide& side, std::size_t size, std::size_t keep);
  static std::uint32_t end_of_all(const StreamSide& side);
  void take_acknowledgment(StreamSide& side, std::uint32_t acknowledgment);
  void settle(StreamSide& side);
  void drain(StreamSide& side, Direction direction, StreamSink& sink);
  void skip_gap(StreamSide& side, Direction direction, std::uint32_t to, StreamSink& sink);
  void acknowledged(StreamSide& side, Direction direction, std::uint32_t acknowledgment, StreamSink& sink);
  void give_waiting(StreamSide& side, Direction direction, StreamSink& sink);
  void release(StreamSide& side);
  void close(StreamSide& side, Direction direction, StreamSink& sink);
  void close_at_fin(StreamSide& side, Direction direction, StreamSink& sink);
  bool compare_old(StreamSide& side, std::uint32_t sequence, std::string_view bytes);
  void conflict(StreamSide& side);
  void throw_away(StreamSide& side, Direction direction, StreamSink& sink);
  void forget_waiting(StreamSide& side);
  std::uint8_t* block_of(std::size_t bytes);

  StreamSettings settings_;
  BlockPool& pool_;
  const bool guarded_;       // something may be refused
  std::size_t waiting_ = 0;  // of the pool, for segments that wait, or did and are not given back
  HeldList* thrown_away_ = nullptr;
  std::uint8_t mark_ = 0;      // of what is delivered
  std::vector<char> scratch_;  // history and fresh bytes side by side, where the block has no capacity for both
  StreamCounters counters_;
};

}  // namespace sluice::flow
