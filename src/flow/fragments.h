// Fragments of IP datagrams, put together for who inspects: each fragment passes on as it comes, a copy of its bytes
// stays, and the one that completes its datagram brings the whole of it (RFC 791 and 815; RFC 8200 section 4.5).
//
//   Fragments fragments(settings);
//   switch (fragments.take(frame, facts, now)) {           // facts.fragment() && facts.whole
//     case Fragments::Taken::whole: ... fragments.datagram()
//     case Fragments::Taken::kept: ...                     // let it pass: the receiver cannot have all yet
//     case Fragments::Taken::refused: ...                  // what the receiver makes of it is not known
//   }
//
// A receiver gets no datagram that nobody saw as long as what is refused is dropped, and so is the fragment whose
// datagram is not let pass (forbid()). Therefore
//   - of two fragments that overlap, neither target's policy is guessed: but for an exact repetition, the datagram is
//     given up, as RFC 5722 asks for IPv6 and Linux does for both families (of IPv4 a repetition may be cut otherwise);
//   - what is given up is not forgotten: its key is refused until `timeout` is over;
//   - a place is not taken from a datagram that is incomplete, or given up: new ones are refused (Linux does so at
//     ipfrag_high_thresh; Suricata takes the place of another). Bytes are: that datagram is given up then;
//   - a completed datagram is remembered, so that no second version of one of its fragments passes: over IPv6 until
//     `timeout`, over IPv4, whose identifications repeat soon (RFC 4963, RFC 6864), for `repeat`; and no longer than
//     memory lasts, which incomplete ones get first. Repetitions of what it is made of pass.
// Refused by themselves are fragments that no host takes: without bytes, not the last and no multiple of eight long,
// beyond 65,535 bytes, behind a second IPv6 fragment header, or behind link headers of more than `most_link` bytes.
// However small a first fragment is (RFC 1858, RFC 3128), what is inspected is the datagram.
//
// The key is that of the standards: addresses, identification and, for IPv4, protocol. VLAN tags are no part of it.
// An atomic fragment (RFC 6946) is none: HeaderFacts::fragment() says so.
//
// Not seen: whether a fragment reaches the receiver. One that completes a datagram here and expires on its way leaves
// the receiver with the others, which a second version completes, once the key is not remembered any more.
//
// Memory: `memory` bytes for pieces, and memory_bytes() in all: 84 bytes of record and index
// for each 512 of `memory`. Thread-safety: none, one lane. No allocation after construction. Cost: 100 to 200 ns and a
// copy of the bytes; a second copy for the one that completes; some 80 ns for each datagram that has run out of time,
// of which a take() forgets two; nothing for frames that are none.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "flow/block_pool.h"
#include "flow/flow.h"
#include "packet/header_facts.h"

namespace sluice::flow {

struct FragmentSettings {
  std::uint64_t memory = 4U << 20;  // bytes of pieces, in blocks of 2^n
  // Of a datagram that is not complete, from its first fragment on: as RFC 8200 and Suricata have it, and no shorter
  // than hosts wait (RFC 1122 section 3.3.2; Linux' 30 s for IPv4), or a late fragment would complete it there alone.
  Milliseconds timeout = 60'000;
  Milliseconds repeat = 2'000;          // IPv4: after which a sender may use an identification again
  std::uint32_t pieces = 128;           // of a datagram: 45 fill 65,535 bytes over Ethernet
  std::uint32_t remembered = 1U << 14;  // completed datagrams, well below IPv4's 65,536 identifications
  std::uint64_t seed = 0;               // of the hash; 0: random
};

struct FragmentCounters {
  std::uint64_t fragments = 0;
  std::uint64_t whole = 0;       // datagrams
  std::uint64_t refused = 0;     // fragments, for whichever reason
  std::uint64_t malformed = 0;   // of these: as the header says, by themselves
  std::uint64_t conflicts = 0;   // of these: with bytes that are there already, or an end that does not fit
  std::uint64_t no_memory = 0;   // datagrams refused or given up because records, memory or pieces were used up
  std::uint64_t incomplete = 0;  // datagrams whose time ran out
};

class Fragments {
 public:
  static constexpr std::size_t most_link = 64;

  enum class Taken : std::uint8_t { kept, whole, refused };

  explicit Fragments(const FragmentSettings& settings);

  // `frame` from its Ethernet header on, and what read_headers() says of it. `now` never goes back.
  Taken take(std::string_view frame, const packet::HeaderFacts& facts, Milliseconds now);
  // What the last take() made whole, as a frame: the first fragment's headers, without the fragment header of IPv6 or
  // what IPv4's says of fragments. Until the next take().
  std::string_view datagram() const { return {datagram_.data(), datagram_size_}; }
  // The datagram that the last take() made whole does not pass: what comes with its key is refused.
  void forbid();
  // Forgets what has run out of time, `count` datagrams at most: for counters that are true when no fragments come.
  // What is not forgotten yet is not found either, and gives its place and its bytes to who needs them.
  void expire(Milliseconds now, std::uint32_t count);

  // Datagrams that are incomplete, those among them that have run out of time and are not forgotten yet.
  std::uint32_t waiting() const { return lists_[collecting].count; }
  const FragmentCounters& counters() const { return counters_; }
  const BlockPool& pool() const { return pool_; }
  std::uint64_t memory_bytes() const;
  void touch_memory();
  // Of all that is taken for so many bytes of pieces.
  static std::uint64_t memory_bytes(std::uint64_t memory);

 private:
  enum State : std::uint8_t { collecting, complete, given_up, states };
  static constexpr std::uint32_t unknown = ~std::uint32_t{0};
  struct Piece;
  struct Key {
    std::array<std::uint8_t, 16> source, destination;
    std::uint32_t id;
    std::uint8_t family, protocol;
    bool operator==(const Key&) const = default;
  };
  struct Datagram {
    Key key;
    State state;
    std::uint8_t pieces;
    std::uint32_t held;   // bytes
    std::uint32_t total;  // unknown: no last fragment yet
    std::uint32_t since;  // the low bits of Milliseconds: of its first fragment, of its completion
    std::uint32_t same_bucket;
    std::uint32_t next, previous;  // of its state, oldest first; `next` of the free ones
    Piece* first;                  // by place
  };
  static_assert(sizeof(Datagram) == 80);
  struct Arrived;  // a fragment
  struct List {
    std::uint32_t head = no_index, tail = no_index, count = 0;
  };

  static bool read(std::string_view frame, const packet::HeaderFacts& facts, Arrived& arrived);
  enum class Fit : std::uint8_t { fresh, repeated, conflict };
  static Fit fit(const Datagram& datagram, const Arrived& arrived);
  static Fit overlap(const Datagram& datagram, const Arrived& arrived);
  static Key key_of(const packet::HeaderFacts& facts);
  std::uint32_t& bucket_of(const Key& key);
  Datagram* find(const Key& key);
  Datagram* make(const Key& key);
  bool keep(Datagram& datagram, const Arrived& arrived);
  Piece* piece_for(const Datagram& datagram, std::size_t bytes);
  bool put_together(const Datagram& datagram);
  Taken refuse();
  void give_up(Datagram& datagram);
  void move(Datagram& datagram, State state);
  void enter(Datagram& datagram, State state);
  void leave(Datagram& datagram);
  void forget(Datagram& datagram);
  void run_out(Datagram& datagram);
  bool make_record();
  void free_pieces(Datagram& datagram);
  bool over(const Datagram& datagram) const;
  std::uint32_t index_of(const Datagram& datagram) const {
    return static_cast<std::uint32_t>(&datagram - datagrams_.data());
  }

  FragmentSettings settings_;
  BlockPool pool_;
  std::vector<Datagram> datagrams_;  // made as they are needed, for which there is capacity from the start
  std::vector<std::uint32_t> buckets_;
  std::array<List, states> lists_;
  std::uint32_t free_ = no_index;
  std::uint32_t last_whole_ = no_index;
  Milliseconds now_ = 0;
  std::vector<char> datagram_;
  std::size_t datagram_size_ = 0;
  FragmentCounters counters_;
};

}  // namespace sluice::flow
