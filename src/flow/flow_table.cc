#include "flow/flow_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "base/random_seed.h"
#include "flow/tcp_track.h"
#include "packet/flow_hash.h"
#include "packet/headers.h"

namespace sluice::flow {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::ptrdiff_t crowded = 2;    // empty places of a bucket, of eight
constexpr std::uint8_t free_family = 0;  // of a place without a flow

std::uint32_t bucket_count(std::uint32_t capacity) {
  return std::bit_ceil(std::max<std::uint32_t>(capacity / 4, 2));
}

Milliseconds least_of(const FlowTimeouts& times) {
  return std::min({times.tcp_new, times.tcp_established, times.tcp_closed, times.udp_new, times.udp_established,
                   times.other_new, times.other_established});
}

__m128i bytes_of(const std::array<std::uint8_t, 16>& address) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(address.data()));
}

bool is_tcp(const Flow& flow) {
  return flow.protocol == packet::protocol_tcp && !flow.of_fragments();
}

// Whether both pairs are the same.
bool same_addresses(__m128i a, __m128i b, __m128i c, __m128i d) {
  const __m128i differs = _mm_or_si128(_mm_xor_si128(a, b), _mm_xor_si128(c, d));
  return _mm_testz_si128(differs, differs) != 0;
}

}  // namespace

FlowTable::FlowTable(const FlowSettings& settings, FlowEnd* end)
    : settings_(settings),
      least_timeout_(least_of(settings.timeouts)),
      end_(end),
      bucket_mask_(bucket_count(settings.capacity) - 1) {
  settings_.capacity = std::max(settings_.capacity, 1U);
  if (settings_.seed == 0) {
    settings_.seed = random_seed();
  }
  flows_.reset(static_cast<Flow*>(reserve(std::size_t{settings_.capacity} * sizeof(Flow))));
  buckets_.reset(static_cast<Bucket*>(reserve((bucket_mask_ + std::size_t{1}) * sizeof(Bucket))));
  std::fill_n(buckets_.get(), bucket_mask_ + std::size_t{1}, Bucket{});
  for (std::uint32_t i = settings_.capacity; i-- > 0;) {
    flows_[i] = Flow{};  // touches the memory: it is there from the start
    flows_[i].next = free_;
    free_ = i;
  }
}

FlowTable::~FlowTable() = default;

void* FlowTable::reserve(std::size_t bytes) {
  void* const memory = ::operator new[](bytes, std::align_val_t{huge_page});
  madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE);  // speed only: without it, small pages
  return memory;
}

void FlowTable::Release::operator()(void* memory) const {
  ::operator delete[](memory, std::align_val_t{huge_page});
}

std::uint64_t FlowTable::memory_bytes(std::uint32_t capacity) {
  return std::uint64_t{std::max(capacity, 1U)} * sizeof(Flow) + std::uint64_t{bucket_count(capacity)} * sizeof(Bucket);
}

Flow* FlowTable::look_in(std::uint32_t bucket_index, std::uint16_t tag, const Packet& packet, Direction& direction) {
  const Bucket& bucket = buckets_[bucket_index];
  const __m128i source = bytes_of(packet.source), destination = bytes_of(packet.destination);
  const std::uint32_t ports = packet.source_port | std::uint32_t{packet.destination_port} << 16;
  for (std::uint32_t same = bucket.same(tag); same != 0; same &= same - 1) {
    const auto i = static_cast<unsigned>(__builtin_ctz(same));
    Flow& flow = flows_[bucket.flows[i]];
    const __m128i client = bytes_of(flow.client), server = bytes_of(flow.server);
    const std::uint32_t flow_ports = flow.client_port | std::uint32_t{flow.server_port} << 16;
    // Both ways at once, without a branch: which one a packet goes is anybody's guess.
    const bool forth = (flow_ports == ports) & same_addresses(client, source, server, destination);
    const bool back = (flow_ports == std::rotl(ports, 16)) & same_addresses(client, destination, server, source);
    const bool same_kind = (flow.protocol == packet.protocol) & (flow.family == packet.family);
    if (!(same_kind & (forth | back))) [[unlikely]] {
      continue;
    }
    // Fragments have no ports; of others the flow's second cache line is not waited for here.
    if (ports == 0 && flow.of_fragments() != packet.fragment) {
      continue;
    }
    direction = forth ? Direction::to_server : Direction::to_client;
    return &flow;
  }
  return nullptr;
}

Flow* FlowTable::find(const Packet& packet, std::uint32_t hash, Milliseconds now, Direction& direction) {
  Flow* flow = look_in(first_bucket(hash), tag_of(hash), packet, direction);
  if (flow == nullptr) {
    flow = look_in(second_bucket(hash), tag_of(hash), packet, direction);
  }
  return flow != nullptr && flow->state != FlowState::silent && !expired(*flow, now) ? flow : nullptr;
}

Flow* FlowTable::find_or_make(const Packet& packet, std::uint32_t hash, Milliseconds now, Direction& direction) {
  Flow* flow = look_in(first_bucket(hash), tag_of(hash), packet, direction);
  if (flow == nullptr) {
    flow = look_in(second_bucket(hash), tag_of(hash), packet, direction);
  }
  if (flow == nullptr) {
    return make(packet, hash, now, direction);
  }
  if (expired(*flow, now) && end_expired(*flow, now)) {
    return make(packet, hash, now, direction);
  }
  if (packet.protocol == packet::protocol_tcp && (packet.tcp_flags & tcp_syn) != 0) [[unlikely]] {
    return find_or_restart(*flow, packet, now, direction);
  }
  if (flow->state == FlowState::silent && settings_.midstream) [[unlikely]] {
    return take_up(*flow, packet, now, direction);
  }
  return flow;
}

// What a SYN or SYN-ACK belongs to: the flow that is there, or another one in its place.
Flow* FlowTable::find_or_restart(Flow& flow, const Packet& packet, Milliseconds now, Direction& direction) {
  const std::uint32_t hash = flow.hash;
  if (begins_anew(flow, direction, packet)) {
    const bool was_open = flow.has(FlowFlag::was_open) || flow.reset() || flow.state == FlowState::silent;
    free(flow, FlowEndReason::restarted);
    Flow* const anew = make(packet, hash, now, direction);
    if (anew != nullptr && was_open && settings_.remembered != 0) {
      anew->flags |= FlowFlag::was_open;
    }
    return anew;
  }
  if (!answers_new_syn(flow, direction, packet)) {
    return &flow;
  }
  free(flow, FlowEndReason::restarted);
  Flow* const anew = make(syn_of_answer(packet), hash, now, direction);
  direction = Direction::to_client;
  return anew;
}

// A silent conversation goes on, and is one that was found in the middle.
Flow* FlowTable::take_up(Flow& flow, const Packet& packet, Milliseconds now, Direction& direction) {
  const std::uint32_t hash = flow.hash;
  const std::uint16_t user = flow.user;
  free(flow, FlowEndReason::expired);
  Flow* const taken_up = make(packet, hash, now, direction);
  if (taken_up != nullptr) {
    taken_up->user = user;
  }
  return taken_up;
}

Flow* FlowTable::make(const Packet& packet, std::uint32_t hash, Milliseconds now, Direction& direction) {
  const std::uint32_t index = take_place(now);
  if (index == no_index) {
    ++counters_.refused_full;
    return nullptr;
  }
  if (!enter(hash, index) && (!ensure_capacity_in(hash, now) || !enter(hash, index))) {
    flows_[index].next = free_;
    free_ = index;
    ++counters_.refused_bucket;
    return nullptr;
  }
  Flow& flow = flows_[index];
  flow.hash = hash;
  begin(flow, packet, now, direction);
  ++counters_.made;
  ++in_use_;
  link(flow);
  return &flow;
}

void FlowTable::begin(Flow& flow, const Packet& packet, Milliseconds now, Direction& direction) {
  const std::uint32_t hash = flow.hash;
  flow = Flow{};
  flow.hash = hash;
  flow.extra = no_index;
  flow.family = packet.family;
  flow.protocol = packet.protocol;
  flow.began = flow.last_seen = static_cast<std::uint32_t>(now);
  const bool tcp = packet.protocol == packet::protocol_tcp && !packet.fragment;
  direction = tcp ? first_direction(packet) : Direction::to_server;
  const bool from_client = direction == Direction::to_server;
  flow.client = from_client ? packet.source : packet.destination;
  flow.server = from_client ? packet.destination : packet.source;
  flow.client_port = from_client ? packet.source_port : packet.destination_port;
  flow.server_port = from_client ? packet.destination_port : packet.source_port;
  if (packet.fragment) {
    flow.scale[0] = Flow::scale_of_fragments;
  }
  if (tcp) {
    begin_tcp(flow, direction, packet, settings_.midstream);
  }
}

// Into the first bucket, which is looked at first; where that is crowded, into the emptier of the two.
bool FlowTable::enter(std::uint32_t hash, std::uint32_t index) {
  Bucket& first = buckets_[first_bucket(hash)];
  Bucket& second = buckets_[second_bucket(hash)];
  const auto empty = [](const Bucket& bucket) { return std::count(bucket.tags.begin(), bucket.tags.end(), 0); };
  Bucket& bucket = empty(first) > crowded || empty(first) >= empty(second) ? first : second;
  const auto place = std::find(bucket.tags.begin(), bucket.tags.end(), 0);
  if (place == bucket.tags.end()) {
    return false;
  }
  *place = tag_of(hash);
  bucket.flows[static_cast<std::size_t>(place - bucket.tags.begin())] = index;
  return true;
}

// Both buckets are full: the oldest flow in them that may go, goes.
bool FlowTable::ensure_capacity_in(std::uint32_t hash, Milliseconds now) {
  Flow* oldest = nullptr;
  std::uint32_t oldest_age = 0;
  for (const std::uint32_t bucket : {first_bucket(hash), second_bucket(hash)}) {
    for (const std::uint32_t index : buckets_[bucket].flows) {
      Flow& flow = flows_[index];
      const std::uint32_t age = static_cast<std::uint32_t>(now) - flow.began;
      const bool may_go = class_of(flow.state) != 1 || expired(flow, now);
      if (may_go && (oldest == nullptr || age > oldest_age)) {
        oldest = &flow;
        oldest_age = age;
      }
    }
  }
  if (oldest == nullptr) {
    return false;
  }
  if (expired(*oldest, now)) {
    free(*oldest, FlowEndReason::expired);
  } else {
    make_way(*oldest);
  }
  return true;
}

// A place for a new flow; no_index: there is none to be had.
std::uint32_t FlowTable::take_place(Milliseconds now) {
  if (free_ == no_index && !evict_expired(now)) {
    if (lists_[2].head != no_index && class_size_[0] <= settings_.capacity / 2) {
      make_way(flows_[lists_[2].head]);
    } else if (lists_[0].head != no_index) {
      make_way(flows_[lists_[0].head]);
    } else if (!evict_idle(now)) {
      return no_index;
    }
  }
  const std::uint32_t index = free_;
  free_ = flows_[index].next;
  return index;
}

bool FlowTable::evict_expired(Milliseconds now) {
  for (const List& list : lists_) {
    if (list.head != no_index && expired(flows_[list.head], now) && end_expired(flows_[list.head], now)) {
      return true;
    }
  }
  return false;
}

// Two looks and no more: a flood that cannot have a place must not cost a walk for each packet.
bool FlowTable::evict_idle(Milliseconds now) {
  for (int look = 0; look < 2 && lists_[1].head != no_index; ++look) {
    Flow& flow = flows_[lists_[1].head];
    if (static_cast<std::uint32_t>(now) - flow.last_seen >= settings_.evict_idle) {
      free(flow, expired(flow, now) ? FlowEndReason::expired : FlowEndReason::evicted_idle);
      return true;
    }
    requeue(flow);
  }
  return false;
}

void FlowTable::count_end(FlowEndReason reason) {
  switch (reason) {
    case FlowEndReason::expired:
      ++counters_.expired;
      break;
    case FlowEndReason::evicted_closed:
      ++counters_.evicted_closed;
      break;
    case FlowEndReason::evicted_new:
      ++counters_.evicted_new;
      break;
    case FlowEndReason::evicted_idle:
      ++counters_.evicted_idle;
      break;
    case FlowEndReason::restarted:
      ++counters_.restarted;
      break;
    case FlowEndReason::flushed:
      ++counters_.flushed;
      break;
  }
}

// It may go on at its hosts when it has ended here. An RST or a SYN that nobody answered may have reached nobody.
bool FlowTable::is_to_be_remembered(const Flow& flow) const {
  return settings_.remembered != 0 && is_tcp(flow) &&
         (flow.established() || flow.unanswered() ||
          (flow.reset() && (flow.has(FlowFlag::was_open) || !flow.reset_unanswered())));
}

// It has ended; its place stays.
void FlowTable::fall_silent(Flow& flow, FlowEndReason reason) {
  if (end_ != nullptr) {
    end_->flow_ended(flow, reason);
  }
  count_end(reason);
  --in_use_;
  if (!flow.established()) {
    if (flow.unanswered()) flow.new_syn = Flow::nobodys_rst;
    flow.flags |= FlowFlag::fin_both;
  }
  change_state(flow, FlowState::silent);
}

// Of a flow that has expired. False: it is remembered.
bool FlowTable::end_expired(Flow& flow, Milliseconds now) {
  if (is_to_be_remembered(flow)) {
    fall_silent(flow, FlowEndReason::expired);
    if (!expired(flow, now)) {
      return false;
    }
  }
  free(flow, FlowEndReason::expired);
  return true;
}

void FlowTable::free(Flow& flow, FlowEndReason reason) {
  if (flow.state != FlowState::silent) {
    if (end_ != nullptr) {
      end_->flow_ended(flow, reason);
    }
    count_end(reason);
    --in_use_;
  }
  const std::uint32_t index = index_of(flow);
  for (const std::uint32_t number : {first_bucket(flow.hash), second_bucket(flow.hash)}) {
    Bucket& bucket = buckets_[number];
    for (unsigned i = 0; i < bucket.tags.size(); ++i) {
      if (bucket.tags[i] != 0 && bucket.flows[i] == index) {
        bucket.tags[i] = 0;
      }
    }
  }
  unlink(flow);
  flow.family = free_family;
  flow.next = free_;
  free_ = index;
}

TcpCheck FlowTable::track(Flow& flow, Direction direction, const Packet& packet, Milliseconds now,
                          std::optional<std::uint32_t> expected) {
  const auto side = static_cast<unsigned>(direction);
  ++flow.packets[side];
  flow.bytes[side] += packet.ip_length;
  if (packet.protocol == packet::protocol_tcp && !packet.fragment) {
    FlowState next{};
    const TcpCheck check = track_tcp(flow, direction, packet, settings_.midstream, expected, next);
    if (check == TcpCheck::bad) {
      ++counters_.bad_sequence;
      return check;
    }
    flow.last_seen = static_cast<std::uint32_t>(now);
    set_state(flow, next);
    return check;
  }
  flow.last_seen = static_cast<std::uint32_t>(now);
  flow.flags |= side == 0 ? FlowFlag::heard_client : FlowFlag::heard_server;
  if (flow.state == FlowState::fresh && flow.has(FlowFlag::heard_client) && flow.has(FlowFlag::heard_server)) {
    set_state(flow, FlowState::established);
  }
  return TcpCheck::good;
}

void FlowTable::sweep(Milliseconds now, std::uint32_t count) {
  for (count = std::min(count, settings_.capacity); count > 0; --count) {
    Flow& flow = flows_[swept_];
    swept_ = swept_ + 1 == settings_.capacity ? 0 : swept_ + 1;
    if (flow.family != free_family && expired(flow, now)) {
      end_expired(flow, now);
    }
  }
}

void FlowTable::make_way(Flow& flow) {
  free(flow, class_of(flow.state) == 0 ? FlowEndReason::evicted_new : FlowEndReason::evicted_closed);
}

void FlowTable::evict(Flow& flow) {
  if (is_to_be_remembered(flow)) {
    fall_silent(flow, class_of(flow.state) == 0 ? FlowEndReason::evicted_new : FlowEndReason::evicted_closed);
  } else {
    make_way(flow);
  }
}

bool FlowTable::evict_silent(Flow& flow, Milliseconds now, Milliseconds silence) {
  if (!flow.established() || static_cast<std::uint32_t>(now) - flow.last_seen < silence) {
    return false;
  }
  if (settings_.remembered != 0 && is_tcp(flow)) {
    fall_silent(flow, FlowEndReason::evicted_idle);
  } else {
    free(flow, FlowEndReason::evicted_idle);
  }
  return true;
}

void FlowTable::flush() {
  for (const List& list : lists_) {
    while (list.head != no_index) {
      free(flows_[list.head], FlowEndReason::flushed);
    }
  }
}

Milliseconds FlowTable::timeout(const Flow& flow) const {
  const FlowTimeouts& times = settings_.timeouts;
  const bool open = flow.established();
  if (flow.of_fragments()) {
    return open ? times.other_established : times.other_new;
  }
  switch (flow.protocol) {
    case packet::protocol_tcp:
      if (flow.state == FlowState::silent) {
        return times.tcp_established + settings_.remembered;
      }
      return open ? times.tcp_established : class_of(flow.state) == 0 ? times.tcp_new : times.tcp_closed;
    case packet::protocol_udp:
      return open ? times.udp_established : times.udp_new;
    default:
      return open ? times.other_established : times.other_new;
  }
}

unsigned FlowTable::class_of(FlowState state) {
  switch (state) {
    case FlowState::fresh:
    case FlowState::half_open:
      return 0;
    case FlowState::established:
    case FlowState::closing:
      return 1;
    case FlowState::closed:
    case FlowState::silent:
      break;
  }
  return 2;
}

void FlowTable::link(Flow& flow) {
  List& list = lists_[class_of(flow.state)];
  const std::uint32_t index = index_of(flow);
  flow.previous = list.tail;
  flow.next = no_index;
  (list.tail != no_index ? flows_[list.tail].next : list.head) = index;
  list.tail = index;
  ++class_size_[class_of(flow.state)];
}

void FlowTable::unlink(Flow& flow) {
  List& list = lists_[class_of(flow.state)];
  (flow.previous != no_index ? flows_[flow.previous].next : list.head) = flow.next;
  (flow.next != no_index ? flows_[flow.next].previous : list.tail) = flow.previous;
  --class_size_[class_of(flow.state)];
}

void FlowTable::requeue(Flow& flow) {
  unlink(flow);
  link(flow);
}

void FlowTable::change_state(Flow& flow, FlowState state) {
  const bool moves = class_of(state) != class_of(flow.state);
  if (moves) {
    unlink(flow);
  }
  flow.state = state;
  if (state == FlowState::established) {
    flow.flags |= FlowFlag::was_open;
  } else if (state == FlowState::half_open) {
    flow.flags &= static_cast<std::uint8_t>(~FlowFlag::was_open);  // its SYN is answered
  }
  if (moves) {
    link(flow);
  }
}

}  // namespace sluice::flow
