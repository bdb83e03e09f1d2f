// The flows of one lane: 5-tuple -> Flow, a fixed number of them, with states, timeouts and an eviction policy that
// a SYN flood cannot turn against established conversations.
//
//   const std::uint32_t hash = table.hash(packet);
//   table.prefetch(hash);                                   // for a whole burst first, then prefetch_flow() for all
//   ...
//   Direction direction;
//   Flow* const flow = table.find_or_make(packet, hash, now, direction);
//   if (flow == nullptr) ...                                // refused, counted: handle the packet without a flow
//   const TcpCheck check = table.track(*flow, direction, packet, now);
//
// Capacity and memory are fixed at start (memory_bytes()): 128 bytes a flow, and 16 of index: buckets of eight entries,
// two buckets for each flow, half full at most. The hash is symmetric and keyed with `seed`, unlike
// packet/flow_hash.h's: who does not know the seed cannot fill one bucket.
//
// A flow that has been silent for its state's timeout has expired: it is not found any more, and sweep() frees it. When
// there is no free flow, find_or_make() makes one, in this order:
//   1. an expired one;
//   2. the closed or silent one that has been so longest, unless half of the table is of the next kind;
//   3. the oldest fresh or half-open one: a flood of SYNs evicts its own, and a handshake survives if it is done before
//      the flood has gone once through the half of the table, or the part of it that established flows leave;
//   4. an established or closing one that has been silent for evict_idle, of the two that have waited longest for a
//      look;
//   5. none: the new flow is refused.
// When both buckets of a new flow are full, the oldest of those of kinds 1 to 3 in them goes, else it is refused.
// Established flows are thus lost only to silence. A flow becomes established by the other side's doing only: a SYN-ACK
// that acknowledges the SYN and an ACK that acknowledges it in turn; without a handshake, packets from both sides. Who
// can send in the name of both sides can play both: such flows, too, hold until they have been silent for evict_idle.
// Every eviction and refusal is counted by kind (FlowCounters) and reported to FlowEnd first.
//
// A conversation of TCP that was established and is silent for its timeout ends (FlowEnd), and may be remembered
// (`remembered`) as long as its place is not needed: its flow is `silent` then, and what goes on in it is no_session to
// track(), but distinguished from what was never seen to begin, with the caller's mark (Flow::user). A SYN alone does
// not begin another one in its place: the server has to answer it, as of an established conversation. With `midstream`
// what goes on is taken up in the middle, with that mark.
//
// Nor, then, is a conversation over for an RST, which its receiver may not have got or taken: when its time as a closed
// one is up, or its record is needed, it is remembered likewise. A SYN in its place begins another one at once, but
// nothing else of that is good (TcpCheck::bad) until it is answered (Flow::unanswered()), and until then it is
// remembered like what was there before.
//
// Thread-safety: none, one lane. Cost: hash 3 ns; find_or_make() and track() a cache miss for the bucket, two for the
// flow, which the prefetches hide; another one where the first bucket is crowded and the flow is in its second. The
// memory asks for transparent huge pages.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "base/prefetch.h"
#include "flow/flow.h"
#include "flow/packet.h"
#include "packet/flow_hash.h"

namespace sluice::flow {

// Silence after which a flow has expired; Suricata's defaults.
struct FlowTimeouts {
  Milliseconds tcp_new = 60'000;           // fresh and half_open
  Milliseconds tcp_established = 600'000;  // and closing: the other side may go on for as long as it likes
  Milliseconds tcp_closed = 60'000;
  Milliseconds udp_new = 30'000;
  Milliseconds udp_established = 300'000;
  Milliseconds other_new = 30'000;  // ICMP too, and fragments, whatever is in them
  Milliseconds other_established = 300'000;
};

struct FlowSettings {
  std::uint32_t capacity = 1U << 20;  // at least 1
  FlowTimeouts timeouts;
  Milliseconds evict_idle = 60'000;  // silence that an established flow may be evicted for when the table is full
  Milliseconds remembered = 0;       // how long a conversation of TCP that has ended here is remembered; 0: not
  bool midstream = false;            // TCP without its handshake becomes established once both sides are heard
  std::uint64_t seed = 0;            // of the hash; 0: random
};

enum class FlowEndReason : std::uint8_t { expired, evicted_closed, evicted_new, evicted_idle, restarted, flushed };

// Notified before a flow is freed, so that its extra record can be freed and its end be reported.
class FlowEnd {
 public:
  virtual void flow_ended(Flow& flow, FlowEndReason reason) = 0;

 protected:
  ~FlowEnd() = default;
};

struct FlowCounters {
  std::uint64_t made = 0;            // = in use + the next six
  std::uint64_t expired = 0;         // after their timeout; those that are remembered are not in use
  std::uint64_t evicted_closed = 0;  // for a new flow, or what they held: closed
  std::uint64_t evicted_new = 0;     // likewise: fresh or half-open
  std::uint64_t evicted_idle = 0;    // likewise: established or closing, silent for evict_idle or evict_silent()
  std::uint64_t restarted = 0;       // a SYN on a closed flow, or on one without a handshake, began a new conversation;
                                     // or a SYN-ACK that answers a later SYN of an established one did
  std::uint64_t flushed = 0;
  std::uint64_t refused_full = 0;    // packets without a flow: the table is full of flows that must stay
  std::uint64_t refused_bucket = 0;  // packets without a flow: both its buckets are
  std::uint64_t bad_sequence = 0;    // TCP packets that do not fit the conversation (TcpCheck)
};

enum class TcpCheck : std::uint8_t {
  good,        // or not TCP
  no_session,  // TCP without a handshake while midstream pickup is off, or silent; or outside the window of what was
               // picked up in the middle: do not reassemble it
  bad,         // RST, SYN, SYN-ACK or data outside what the conversation allows: the end host would ignore it
};

class FlowTable {
 public:
  // `end` may be nullptr; it must outlive the table.
  explicit FlowTable(const FlowSettings& settings, FlowEnd* end = nullptr);
  ~FlowTable();
  FlowTable(const FlowTable&) = delete;
  FlowTable& operator=(const FlowTable&) = delete;

  // The same for both directions of a conversation.
  std::uint32_t hash(const Packet& packet) const {
    const std::uint64_t a = end_word(packet.source, packet.source_port);
    const std::uint64_t b = end_word(packet.destination, packet.destination_port);
    const std::uint64_t mixed =
        packet::detail::multiply_fold(std::min(a, b) ^ 0xe7037ed1a0b428dbU, std::max(a, b) ^ settings_.seed) +
        packet.protocol;
    const std::uint64_t result = packet::detail::multiply_fold(mixed ^ 0x8ebc6af09c88c6e3U, 0x9e3779b97f4a7c15U);
    return static_cast<std::uint32_t>(result ^ result >> 32);
  }
  void prefetch(std::uint32_t hash) const { sluice::prefetch(&buckets_[first_bucket(hash)]); }

  // Where in the index the flow may be, for tests.
  std::array<std::uint32_t, 2> buckets_of(std::uint32_t hash) const {
    return {first_bucket(hash), second_bucket(hash)};
  }
  // Once the bucket is there: the flow itself, or where else it may be. For a burst between prefetch() and
  // find_or_make().
  void prefetch_flow(std::uint32_t hash) const {
    const Bucket& bucket = buckets_[first_bucket(hash)];
    std::uint32_t same = bucket.same(tag_of(hash));
    if (same == 0) sluice::prefetch(&buckets_[second_bucket(hash)]);
    for (; same != 0; same &= same - 1) {
      const char* const flow = reinterpret_cast<const char*>(&flows_[bucket.flows[__builtin_ctz(same)]]);
      sluice::prefetch(flow);
      sluice::prefetch(flow + 64);
    }
  }

  // Once the flow is there, too: most likely that of this hash; nullptr: none, or it is in its second bucket.
  const Flow* peek(std::uint32_t hash) const {
    const Bucket& bucket = buckets_[first_bucket(hash)];
    const std::uint32_t same = bucket.same(tag_of(hash));
    return same == 0 ? nullptr : &flows_[bucket.flows[__builtin_ctz(same)]];
  }

  // The packet's flow, new or not, and which way the packet goes in it; nullptr: refused. `now` never goes back. The
  // address stays the flow's until it is freed, which find_or_make() of another packet may do.
  Flow* find_or_make(const Packet& packet, std::uint32_t hash, Milliseconds now, Direction& direction);
  Flow* find_or_make(const Packet& packet, Milliseconds now, Direction& direction) {
    return find_or_make(packet, hash(packet), now, direction);
  }
  // nullptr: there is none.
  Flow* find(const Packet& packet, std::uint32_t hash, Milliseconds now, Direction& direction);

  // Counts the packet and moves the flow's state on. TCP is checked leniently: a segment may lie up to 64 KiB behind
  // the window's right edge; a FIN in it is none if it lies behind that edge. A SYN-ACK and an RST in answer to a SYN
  // must acknowledge the SYN. Of several SYNs of a side the largest window scale counts. Any other RST must lie exactly
  // where the receiver is (RFC 5961 section 3.2): at `expected`, the next sequence of the direction if the caller knows
  // it, or behind all that was sent, if all of that is acknowledged or `expected` is not known, or else at what is
  // acknowledged. Of a conversation found in the middle a window scale that was not seen is the largest, 14. What was
  // under way in it is not known: data outside the window is no_session, not `bad`, and the window goes on from there,
  // as from an acknowledgment of what was not seen. A packet that is `bad` changes no state; a client's SYN in an
  // established conversation is, and is remembered: a SYN-ACK that answers it makes find_or_make() begin another one.
  TcpCheck track(Flow& flow, Direction direction, const Packet& packet, Milliseconds now,
                 std::optional<std::uint32_t> expected = {});

  // Frees the expired among the next `count` places: a lane calls it now and then, so that the table is gone through
  // every few seconds, and at the least every 20 days (last_seen wraps).
  void sweep(Milliseconds now, std::uint32_t count);
  // Ends a flow for what it holds of others' (FlowEnd): closed, or fresh or half-open. It may be remembered.
  void evict(Flow& flow);
  // The same of an established one, if it has been silent for so long. It is remembered.
  bool evict_silent(Flow& flow, Milliseconds now, Milliseconds silence);
  // Ends all flows.
  void flush();

  Flow& at(std::uint32_t index) { return flows_[index]; }
  std::uint32_t index_of(const Flow& flow) const { return static_cast<std::uint32_t>(&flow - flows_.get()); }

  std::uint32_t capacity() const { return settings_.capacity; }
  std::uint32_t in_use() const { return in_use_; }
  // [0] fresh and half-open, [1] established and closing, [2] closed and silent.
  static unsigned class_of(FlowState state);
  // Flows in these states.
  const std::array<std::uint32_t, 3>& in_class() const { return class_size_; }
  const FlowCounters& counters() const { return counters_; }
  static std::uint64_t memory_bytes(std::uint32_t capacity);

 private:
  struct alignas(64) Bucket {
    std::array<std::uint16_t, 8> tags;   // 0: empty
    std::array<std::uint32_t, 8> flows;  // index
    std::array<std::uint32_t, 4> unused;

    // The places that have the tag, a bit each.
    std::uint32_t same(std::uint16_t tag) const {
      const __m128i equal = _mm_cmpeq_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(tags.data())),
                                            _mm_set1_epi16(static_cast<short>(tag)));
      return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())));
    }
  };
  static_assert(sizeof(Bucket) == 64);
  struct List {
    std::uint32_t head = no_index;
    std::uint32_t tail = no_index;
  };

  std::uint64_t end_word(const std::array<std::uint8_t, 16>& address, std::uint16_t port) const {
    std::uint64_t words[2];
    std::memcpy(words, address.data(), sizeof words);
    return packet::detail::multiply_fold(words[0] ^ settings_.seed,
                                         words[1] ^ (settings_.seed << 32 | port) ^ 0x589965cc75374cc3U);
  }
  static std::uint16_t tag_of(std::uint32_t hash) { return static_cast<std::uint16_t>(hash >> 16 | 1U); }
  std::uint32_t first_bucket(std::uint32_t hash) const { return hash & bucket_mask_; }
  std::uint32_t second_bucket(std::uint32_t hash) const {
    return (hash ^ (tag_of(hash) * 0x5bd1e995U)) >> 7 & bucket_mask_;
  }
  Flow* look_in(std::uint32_t bucket, std::uint16_t tag, const Packet& packet, Direction& direction);
  Flow* make(const Packet& packet, std::uint32_t hash, Milliseconds now, Direction& direction);
  Flow* find_or_restart(Flow& flow, const Packet& packet, Milliseconds now, Direction& direction);
  bool enter(std::uint32_t hash, std::uint32_t index);
  bool ensure_capacity_in(std::uint32_t hash, Milliseconds now);
  std::uint32_t take_place(Milliseconds now);
  bool evict_expired(Milliseconds now);
  bool evict_idle(Milliseconds now);
  void begin(Flow& flow, const Packet& packet, Milliseconds now, Direction& direction);
  void free(Flow& flow, FlowEndReason reason);
  void make_way(Flow& flow);
  bool is_to_be_remembered(const Flow& flow) const;
  void fall_silent(Flow& flow, FlowEndReason reason);
  bool end_expired(Flow& flow, Milliseconds now);
  Flow* take_up(Flow& flow, const Packet& packet, Milliseconds now, Direction& direction);
  void count_end(FlowEndReason reason);

  bool expired(const Flow& flow, Milliseconds now) const {
    const std::uint32_t silent = static_cast<std::uint32_t>(now) - flow.last_seen;
    return silent >= least_timeout_ && silent >= timeout(flow);
  }
  Milliseconds timeout(const Flow& flow) const;
  void link(Flow& flow);
  void unlink(Flow& flow);
  void requeue(Flow& flow);
  void set_state(Flow& flow, FlowState state) {
    if (state != flow.state) change_state(flow, state);
  }
  void change_state(Flow& flow, FlowState state);

  struct Release {
    void operator()(void* memory) const;
  };
  static void* reserve(std::size_t bytes);
  FlowSettings settings_;
  Milliseconds least_timeout_;
  FlowEnd* end_;
  std::unique_ptr<Flow[], Release> flows_;
  std::unique_ptr<Bucket[], Release> buckets_;
  std::uint32_t bucket_mask_;
  std::uint32_t free_ = no_index;  // list through Flow::next
  std::uint32_t in_use_ = 0;
  std::uint32_t swept_ = 0;
  std::array<List, 3> lists_;  // by class_of(), oldest first
  std::array<std::uint32_t, 3> class_size_{};
  FlowCounters counters_;
};

}  // namespace sluice::flow
