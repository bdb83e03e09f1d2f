#include "flow/fragments.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/random_seed.h"
#include "packet/checksum.h"
#include "packet/flow_hash.h"
#include "packet/headers.h"

namespace sluice::flow {
namespace {

using packet::be16;

// With each fragment, which begins one datagram at most: what has run out of time gives its place in time.
constexpr std::uint32_t at_once = 2;
constexpr std::size_t bytes_per_record = 512;  // of pieces
constexpr std::uint32_t most_bytes = 0xffff;   // IPv4's total length, IPv6's payload length
constexpr std::size_t fixed6 = sizeof(packet::Ipv6Header), fragment_header = sizeof(packet::Ipv6Fragment);

std::size_t record_count(std::uint64_t memory) {
  return std::clamp<std::size_t>(memory / bytes_per_record, 16, no_index / 2);
}

}  // namespace

struct Fragments::Piece {
  Piece* next;
  std::uint32_t begin, size;  // in the datagram
  std::uint32_t header;       // of a first one: bytes of headers, before its own
  std::uint32_t link;         // of these, before the IP header

  std::uint32_t end() const { return begin + size; }
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  std::string_view data() { return {bytes() + header, size}; }
};

struct Fragments::Arrived {
  std::string_view data;
  std::uint32_t begin, end;  // in the datagram
  bool last;
  std::uint8_t family;
  std::string_view header;  // of the frame, before the data; of IPv6 before the fragment header
  std::size_t link;
  std::size_t names_next;          // IPv6: where in `header` the fragment header is announced
  std::uint8_t next;               // IPv6: what is to be announced instead
  std::uint32_t unfragmented = 0;  // bytes that count for the datagram's length field besides
};

Fragments::Fragments(const FragmentSettings& settings)
    : settings_(settings),
      pool_(settings.memory),
      buckets_(std::bit_ceil(record_count(settings.memory)), no_index),
      datagram_(most_link + fixed6 + most_bytes) {
  if (settings_.seed == 0) settings_.seed = random_seed();
  settings_.pieces = std::clamp(settings_.pieces, 1U, 255U);
  settings_.remembered = std::max(settings_.remembered, 1U);
  datagrams_.reserve(record_count(settings.memory));
}

// Another free record. False: there are as many as there may be.
bool Fragments::make_record() {
  if (datagrams_.size() == datagrams_.capacity()) return false;
  datagrams_.emplace_back().next = free_;
  free_ = static_cast<std::uint32_t>(datagrams_.size() - 1);
  return true;
}

void Fragments::touch_memory() {
  pool_.touch();
  while (make_record()) {
  }
}

std::uint64_t Fragments::memory_bytes() const {
  return pool_.memory_bytes() + datagrams_.capacity() * sizeof(Datagram) + buckets_.size() * sizeof(std::uint32_t) +
         datagram_.size();
}

std::uint64_t Fragments::memory_bytes(std::uint64_t memory) {
  const std::uint64_t records = record_count(memory);
  return memory + records * sizeof(Datagram) + std::bit_ceil(records) * sizeof(std::uint32_t);
}

// False: no host takes it.
bool Fragments::read(std::string_view frame, const packet::HeaderFacts& facts, Arrived& arrived) {
  const char* const ip = facts.ip_header.data();
  arrived.link = static_cast<std::size_t>(ip - frame.data());
  if (arrived.link > most_link) return false;
  arrived.family = facts.family;
  std::size_t data_at = facts.ip_header.size();
  if (facts.family == 6) {
    // A jumbogram's fragment (RFC 2675 section 3).
    if (packet::header_at<packet::Ipv6Header>(reinterpret_cast<const std::uint8_t*>(ip), 0).payload_length == 0)
      return false;
    if (facts.behind_atomic) return false;
    const std::size_t at = facts.fragment_header;
    arrived.names_next = arrived.link + facts.fragment_named_at;
    arrived.next = facts.fragment_protocol;
    arrived.unfragmented = static_cast<std::uint32_t>(at - fixed6);
    arrived.header = frame.substr(0, arrived.link + at);
    data_at = at + fragment_header;
  } else {
    arrived.unfragmented = static_cast<std::uint32_t>(data_at);
    arrived.header = frame.substr(0, arrived.link + data_at);
  }
  arrived.data = {ip + data_at, facts.ip_length - data_at};
  arrived.begin = facts.fragment_offset * 8U;
  arrived.end = arrived.begin + static_cast<std::uint32_t>(arrived.data.size());
  arrived.last = (facts.fragment_bits & 1) == 0;
  if (arrived.data.empty() || (!arrived.last && arrived.data.size() % 8 != 0)) return false;
  return arrived.unfragmented + arrived.end <= most_bytes;
}

Fragments::Key Fragments::key_of(const packet::HeaderFacts& facts) {
  // Over IPv6 only the first fragment says what the datagram is (RFC 8200 section 4.5).
  return {facts.source.bytes, facts.destination.bytes, facts.ip_id.value_or(0), facts.family,
          facts.family == 4 ? facts.protocol : std::uint8_t{0}};
}

std::uint32_t& Fragments::bucket_of(const Key& key) {
  using packet::detail::multiply_fold;
  const auto word = [&](const std::array<std::uint8_t, 16>& address, std::uint64_t salt) {
    std::uint64_t words[2];
    std::memcpy(words, address.data(), sizeof words);
    return multiply_fold(words[0] ^ settings_.seed, words[1] ^ salt);
  };
  const std::uint64_t rest = std::uint64_t{key.id} << 16 | key.family << 8 | key.protocol;
  const std::uint64_t ends = multiply_fold(word(key.source, 0x589965cc75374cc3U) ^ 0xe7037ed1a0b428dbU,
                                           word(key.destination, 0x1d8e4e27c47d124fU) ^ settings_.seed);
  const std::uint64_t hash = multiply_fold(ends ^ rest, 0x9e3779b97f4a7c15U ^ settings_.seed);
  return buckets_[(hash ^ hash >> 32) & (buckets_.size() - 1)];
}

bool Fragments::over(const Datagram& datagram) const {
  const bool repeats = datagram.state == complete && datagram.key.family == 4;
  return static_cast<std::uint32_t>(now_) - datagram.since >= (repeats ? settings_.repeat : settings_.timeout);
}

// But for what is behind a completed one of the other family.
void Fragments::expire(Milliseconds now, std::uint32_t count) {
  now_ = now;
  for (const List& list : lists_) {
    for (; count > 0 && list.head != no_index && over(datagrams_[list.head]); --count) run_out(datagrams_[list.head]);
  }
}

void Fragments::run_out(Datagram& datagram) {
  if (datagram.state == collecting) ++counters_.incomplete;
  forget(datagram);
}

Fragments::Datagram* Fragments::find(const Key& key) {
  for (std::uint32_t i = bucket_of(key); i != no_index; i = datagrams_[i].same_bucket) {
    Datagram& datagram = datagrams_[i];
    if (datagram.key != key) continue;
    if (!over(datagram)) return &datagram;
    run_out(datagram);
    break;
  }
  return nullptr;
}

Fragments::Datagram* Fragments::make(const Key& key) {
  if (free_ == no_index && !make_record() && lists_[complete].head != no_index)
    forget(datagrams_[lists_[complete].head]);
  if (free_ == no_index) return nullptr;
  Datagram& datagram = datagrams_[free_];
  free_ = datagram.next;
  std::uint32_t& bucket = bucket_of(key);
  datagram = {.key = key,
              .state = collecting,
              .pieces = 0,
              .held = 0,
              .total = unknown,
              .since = static_cast<std::uint32_t>(now_),
              .same_bucket = bucket,
              .next = no_index,
              .previous = no_index,
              .first = nullptr};
  bucket = index_of(datagram);
  enter(datagram, collecting);
  return &datagram;
}

Fragments::Taken Fragments::take(std::string_view frame, const packet::HeaderFacts& facts, Milliseconds now) {
  ++counters_.fragments;
  last_whole_ = no_index;
  datagram_size_ = 0;
  expire(now, at_once);
  Arrived arrived;
  if (!read(frame, facts, arrived)) {
    ++counters_.malformed;
    return refuse();
  }
  const Key key = key_of(facts);
  Datagram* datagram = find(key);
  if (datagram == nullptr) datagram = make(key);
  if (datagram == nullptr) {
    ++counters_.no_memory;
    return refuse();
  }
  if (datagram->state == given_up) return refuse();
  const Fit how = fit(*datagram, arrived);
  if (how == Fit::repeated) return Taken::kept;
  if (how == Fit::conflict) {
    ++counters_.conflicts;
    // Of a completed one over IPv4 it may be the next datagram with this identification.
    if (datagram->state == collecting || key.family == 6) give_up(*datagram);
    return refuse();
  }
  if (!keep(*datagram, arrived)) {
    ++counters_.no_memory;
    give_up(*datagram);
    return refuse();
  }
  if (datagram->held != datagram->total) return Taken::kept;
  if (!put_together(*datagram)) {
    ++counters_.malformed;
    give_up(*datagram);
    return refuse();
  }
  ++counters_.whole;
  last_whole_ = index_of(*datagram);
  move(*datagram, complete);
  return Taken::whole;
}

Fragments::Taken Fragments::refuse() {
  ++counters_.refused;
  return Taken::refused;
}

// With what is there. Where the datagram ends is said by its last fragment, once.
Fragments::Fit Fragments::fit(const Datagram& datagram, const Arrived& arrived) {
  if (datagram.total != unknown) {
    if (arrived.end > datagram.total || arrived.last != (arrived.end == datagram.total)) return Fit::conflict;
    return overlap(datagram, arrived);
  }
  const Fit how = overlap(datagram, arrived);
  if (!arrived.last || how == Fit::conflict) return how;
  for (const Piece* piece = datagram.first; piece != nullptr; piece = piece->next) {
    if (piece->end() >= arrived.end) return Fit::conflict;
  }
  return how;
}

Fragments::Fit Fragments::overlap(const Datagram& datagram, const Arrived& arrived) {
  std::uint32_t same = 0;
  bool exact = false;
  for (Piece* piece = datagram.first; piece != nullptr && piece->begin < arrived.end; piece = piece->next) {
    const std::uint32_t from = std::max(piece->begin, arrived.begin), to = std::min(piece->end(), arrived.end);
    if (from >= to) continue;
    if (piece->data().substr(from - piece->begin, to - from) != arrived.data.substr(from - arrived.begin, to - from)) {
      return Fit::conflict;
    }
    same += to - from;
    exact = piece->begin == arrived.begin && piece->end() == arrived.end;
  }
  if (same == 0) return Fit::fresh;
  // What RFC 8200 section 4.5 lets pass of overlaps.
  return exact || (arrived.family == 4 && same == arrived.data.size()) ? Fit::repeated : Fit::conflict;
}

// False: there is no capacity.
bool Fragments::keep(Datagram& datagram, const Arrived& arrived) {
  if (datagram.pieces == settings_.pieces) return false;
  const std::size_t header = arrived.begin == 0 ? arrived.header.size() : 0;
  Piece* const piece = piece_for(datagram, sizeof(Piece) + header + arrived.data.size());
  if (piece == nullptr) return false;
  Piece** at = &datagram.first;
  while (*at != nullptr && (*at)->begin < arrived.begin) at = &(*at)->next;
  *piece = {*at, arrived.begin, static_cast<std::uint32_t>(arrived.data.size()), static_cast<std::uint32_t>(header),
            static_cast<std::uint32_t>(arrived.link)};
  *at = piece;
  std::memcpy(piece->bytes(), arrived.header.data(), header);
  if (header != 0 && arrived.family == 6) piece->bytes()[arrived.names_next] = static_cast<char>(arrived.next);
  std::memcpy(piece->bytes() + header, arrived.data.data(), arrived.data.size());
  ++datagram.pieces;
  datagram.held += piece->size;
  if (arrived.last) datagram.total = arrived.end;
  return true;
}

// What is remembered goes first, then what has waited longest.
Fragments::Piece* Fragments::piece_for(const Datagram& datagram, std::size_t bytes) {
  for (;;) {
    if (std::uint8_t* const block = pool_.take(bytes)) return reinterpret_cast<Piece*>(block);
    if (lists_[complete].head != no_index) {
      forget(datagrams_[lists_[complete].head]);
      continue;
    }
    std::uint32_t oldest = lists_[collecting].head;
    if (&datagrams_[oldest] == &datagram) oldest = datagram.next;
    if (oldest == no_index) return nullptr;
    if (over(datagrams_[oldest])) {
      run_out(datagrams_[oldest]);
      continue;
    }
    ++counters_.no_memory;
    give_up(datagrams_[oldest]);
  }
}

// False: with the first fragment's headers it is too long.
bool Fragments::put_together(const Datagram& datagram) {
  const Piece& first = *datagram.first;
  const bool v4 = datagram.key.family == 4;
  const std::size_t length = first.header - first.link - (v4 ? 0 : fixed6) + datagram.total;
  if (length > most_bytes) return false;
  std::memcpy(datagram_.data(), datagram.first->bytes(), first.header);
  datagram_size_ = first.header;
  for (Piece* piece = datagram.first; piece != nullptr; piece = piece->next) {
    std::memcpy(datagram_.data() + datagram_size_, piece->data().data(), piece->size);
    datagram_size_ += piece->size;
  }
  auto* const ip = reinterpret_cast<std::uint8_t*>(datagram_.data()) + first.link;
  const std::uint16_t big_endian = be16(static_cast<std::uint16_t>(length));
  if (v4) {
    auto& header = packet::header_at<packet::Ipv4Header>(ip, 0);
    header.total_length = big_endian;
    header.fragment &= be16(packet::ipv4_dont_fragment);
    header.checksum = packet::ipv4_header_checksum(header);
  } else {
    packet::header_at<packet::Ipv6Header>(ip, 0).payload_length = big_endian;
  }
  return true;
}

void Fragments::forbid() {
  if (last_whole_ == no_index) return;
  give_up(datagrams_[last_whole_]);
  last_whole_ = no_index;
}

void Fragments::give_up(Datagram& datagram) {
  free_pieces(datagram);
  move(datagram, given_up);
}

void Fragments::free_pieces(Datagram& datagram) {
  while (datagram.first != nullptr) {
    Piece* const piece = datagram.first;
    datagram.first = piece->next;
    pool_.give(piece);
  }
}

void Fragments::move(Datagram& datagram, State state) {
  leave(datagram);
  datagram.since = static_cast<std::uint32_t>(now_);
  enter(datagram, state);
  if (state == complete && lists_[complete].count > settings_.remembered) forget(datagrams_[lists_[complete].head]);
}

void Fragments::enter(Datagram& datagram, State state) {
  List& list = lists_[state];
  datagram.state = state;
  datagram.next = no_index;
  datagram.previous = list.tail;
  const std::uint32_t index = index_of(datagram);
  (list.tail == no_index ? list.head : datagrams_[list.tail].next) = index;
  list.tail = index;
  ++list.count;
}

void Fragments::leave(Datagram& datagram) {
  List& list = lists_[datagram.state];
  (datagram.previous == no_index ? list.head : datagrams_[datagram.previous].next) = datagram.next;
  (datagram.next == no_index ? list.tail : datagrams_[datagram.next].previous) = datagram.previous;
  --list.count;
}

void Fragments::forget(Datagram& datagram) {
  free_pieces(datagram);
  leave(datagram);
  const std::uint32_t index = index_of(datagram);
  std::uint32_t* at = &bucket_of(datagram.key);
  while (*at != index) at = &datagrams_[*at].same_bucket;
  *at = datagram.same_bucket;
  datagram.next = free_;
  free_ = index;
}

}  // namespace sluice::flow
