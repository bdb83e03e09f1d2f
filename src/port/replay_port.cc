#include "port/replay_port.h"

#include <rte_cycles.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <span>
#include <string_view>

#include "packet/builder.h"
#include "packet/frame_mix.h"
#include "packet/headers.h"
#include "port/replay_conversations.h"

namespace sluice::port {
namespace {

constexpr unsigned refresh_bytes = 64;

// Where a frame's index lives while it is in a replay pool: the mbuf's user hash, which nothing else on these ports
// uses.
std::uint32_t& index_of(rte_mbuf* frame) {
  return frame->hash.fdir.hi;
}

packet::IpAddress random_destination(std::mt19937_64& random, int family) {
  std::uint8_t bytes[16];
  const std::uint64_t words[2] = {random(), random()};
  std::memcpy(bytes, words, sizeof bytes);
  if (family == 4) {
    bytes[0] = static_cast<std::uint8_t>(1 + bytes[0] % 223);  // unicast
    if (bytes[0] == 127) {
      bytes[0] = 128;
    }
  } else {
    bytes[0] = 0x20 | (bytes[0] & 0x1f);  // 2000::/3, global unicast
  }
  return packet::IpAddress::from_bytes(family, bytes);
}

packet::IpAddress draw_address(std::mt19937_64& random, const std::vector<packet::IpAddress>& from, int family) {
  return from.empty() ? random_destination(random, family) : from[random() % from.size()];
}

void fill(std::mt19937_64& random, const std::vector<std::string>& pieces, std::span<std::uint8_t> payload) {
  if (pieces.empty()) {
    for (std::uint8_t& byte : payload) {
      byte = static_cast<std::uint8_t>(random());
    }
    return;
  }
  for (std::size_t at = 0; at < payload.size();) {
    const std::string& piece = pieces[random() % pieces.size()];
    const std::size_t size = std::min(piece.size(), payload.size() - at);
    std::memcpy(payload.data() + at, piece.data(), size);
    at += size;
  }
}

std::vector<std::uint8_t> make_frame(std::mt19937_64& random, const ReplayOptions& options,
                                     const ReplayOptions::Flow& flow, const std::string& own_mac, unsigned length) {
  const bool v4 = flow.source.family == 4;
  const bool tcp = options.protocol == ReplayOptions::Protocol::tcp;
  const unsigned headers = 14 + (v4 ? 20 : 40) + (tcp ? 20 : 8);
  std::vector<std::uint8_t> payload(length > headers ? length - headers : 0);
  fill(random, options.pieces, payload);
  packet::PacketBuilder builder;
  builder.eth("02:00:00:00:00:01", own_mac);
  if (v4) {
    builder.ipv4(flow.source.str(), flow.destination.str());
  } else {
    builder.ipv6(flow.source.str(), flow.destination.str());
  }
  if (tcp) {
    builder.tcp(flow.source_port, flow.destination_port).tcp_flags(packet::tcp_ack);
  } else {
    builder.udp(flow.source_port, flow.destination_port);
  }
  return builder.ttl(255).payload(payload).build();
}

// Of frame i, where none are given.
ReplayOptions::Flow own_flow(const ReplayOptions& options, const packet::IpAddress& destination, unsigned i) {
  constexpr std::uint16_t http_port = 80;
  const bool tcp = options.protocol == ReplayOptions::Protocol::tcp;
  return {*packet::IpAddress::parse(destination.family == 4 ? "198.18.0.1" : "2001:2::1"), destination,
          static_cast<std::uint16_t>(1024 + i % 50000), tcp ? http_port : options.udp_port};
}

template <typename Thing, typename FamilyOf>
std::vector<Thing> of_family(const std::vector<Thing>& all, int family, FamilyOf family_of) {
  std::vector<Thing> some;
  std::ranges::copy_if(all, std::back_inserter(some), [&](const Thing& one) { return family_of(one) == family; });
  return some;
}

// The frames of one queue. The same arguments give the same frames, whatever was made before.
Expected<std::vector<std::vector<std::uint8_t>>> make_frames(const ReplayOptions& options, int family,
                                                             const std::string& own_mac, unsigned queue,
                                                             unsigned frame_bytes) {
  auto mix = packet::FrameMix::make(options.mix, options.seed + queue);
  if (!mix) {
    return tl::unexpected(mix.error());
  }
  std::mt19937_64 random(options.seed * 1000003 + queue);
  const auto destinations =
      of_family(options.destinations, family, [](const packet::IpAddress& address) { return address.family; });
  if (destinations.empty() && !options.destinations.empty()) {
    return make_error(no_destination(family));
  }
  const auto flows =
      of_family(options.flows, family, [](const ReplayOptions::Flow& flow) { return flow.source.family; });
  if (flows.empty() && !options.flows.empty()) return make_error(no_flow(family));
  if (mix->largest() > frame_bytes) {
    return make_error("replay: mix '" + options.mix + "' has frames of " + std::to_string(mix->largest()) +
                      " bytes; raise [memory] frame_bytes above " + std::to_string(frame_bytes));
  }
  if (options.protocol >= ReplayOptions::Protocol::streams) {
    ConversationSource source;
    source.http = options.protocol == ReplayOptions::Protocol::http;
    source.family = family;
    source.frames = options.frames;
    source.seed = random();
    source.own_mac = own_mac;
    source.text = options.text;
    source.mix = &*mix;
    source.codings = options.codings;
    source.resets = options.resets;
    if (!options.text && !options.pieces.empty()) source.contents = &options.pieces;
    source.address = [&] { return draw_address(random, destinations, family); };
    source.fill = [&](std::span<std::uint8_t> payload) { fill(random, options.pieces, payload); };
    return make_conversations(source);
  }
  std::vector<std::vector<std::uint8_t>> frames;
  frames.reserve(options.frames);
  for (unsigned i = 0; i < options.frames; ++i) {
    const ReplayOptions::Flow flow = flows.empty() ? own_flow(options, draw_address(random, destinations, family), i)
                                                   : flows[(std::size_t{queue} * options.frames + i) % flows.size()];
    frames.push_back(make_frame(random, options, flow, own_mac, mix->next()));
  }
  return frames;
}

void write_frame(const std::vector<std::uint8_t>& bytes, rte_mbuf* frame) {
  std::memcpy(rte_pktmbuf_mtod(frame, void*), bytes.data(), bytes.size());
  frame->data_len = static_cast<std::uint16_t>(bytes.size());
  frame->pkt_len = static_cast<std::uint32_t>(bytes.size());
}

// Whether one of the `count` frames after the first `handed_out` ones is of a round in which frames are written anew. A
// burst at either end of that round counts as a whole: else its frames would be left out for good, one round later or
// earlier.
bool touches_refresh(std::uint64_t handed_out, unsigned count, unsigned frames, unsigned refresh) {
  const std::uint64_t round = handed_out / frames;
  const std::uint64_t phase = round % refresh;
  const bool reaches_next = handed_out - round * frames + count > frames;
  return phase == refresh - 1 || (reaches_next && phase + 2 == refresh);
}

}  // namespace

Expected<std::unique_ptr<ReplayPort>> ReplayPort::create(const std::string& name, unsigned queues,
                                                         const ReplayOptions& options, unsigned frame_bytes) {
  auto port = std::make_unique<ReplayPort>();
  port->options_ = options;
  port->mac_ = mac_of(name);
  port->frame_bytes_ = frame_bytes;
  port->refresh_ = options.refresh;
  port->frames_ = options.frames;
  port->ring_ = options.ring != 0 ? options.ring : options.frames;
  port->family_.store(options.family, std::memory_order_relaxed);
  for (unsigned q = 0; q < queues; ++q) {
    auto frames = make_frames(options, options.family, port->mac_.str(), q, frame_bytes);
    if (!frames) {
      return tl::unexpected(frames.error());
    }
    auto pool = make_frame_pool("replay-" + name + "-" + std::to_string(q), options.frames, frame_bytes, SOCKET_ID_ANY);
    if (!pool) {
      return tl::unexpected(pool.error());
    }
    auto queue = std::make_unique<Queue>();
    queue->pool = std::move(*pool);
    queue->seen_family = options.family;
    std::vector<rte_mbuf*> all(options.frames);
    if (rte_pktmbuf_alloc_bulk(queue->pool.get(), all.data(), options.frames) != 0) {
      return make_error("replay: the frames of queue " + std::to_string(q) + " could not be taken from their pool");
    }
    std::sort(all.begin(), all.end());
    for (unsigned i = 0; i < options.frames; ++i) {
      write_frame((*frames)[i], all[i]);
      index_of(all[i]) = i;
    }
    queue->pristine[family_at(options.family)] = std::move(*frames);
    if (options.ordered) {
      queue->by_index = all;
      queue->scratch.resize(options.frames);
      queue->present.resize((options.frames + 63) / 64);
    }
    rte_mempool_put_bulk(queue->pool.get(), reinterpret_cast<void**>(all.data()), options.frames);
    queue->last_tsc = rte_rdtsc();
    port->queues_.push_back(std::move(queue));
  }
  port->set_rate(options.rate);
  return port;
}

// FNV-1a over the name; locally administered, unicast.
packet::MacAddress ReplayPort::mac_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  }
  packet::MacAddress mac{{0x02}};
  for (unsigned i = 1; i < mac.bytes.size(); ++i) {
    mac.bytes[i] = static_cast<std::uint8_t>(hash >> (8 * i));
  }
  return mac;
}

Expected<void> ReplayPort::set_family(int family) {
  for (unsigned q = 0; q < queues_.size(); ++q) {
    auto& pristine = queues_[q]->pristine[family_at(family)];
    if (pristine.empty()) {
      auto frames = make_frames(options_, family, mac_.str(), q, frame_bytes_);
      if (!frames) {
        return tl::unexpected(frames.error());
      }
      pristine = std::move(*frames);
    }
  }
  family_.store(family, std::memory_order_release);
  return {};
}

void ReplayPort::set_rate(double frames_per_second) {
  for (auto& queue : queues_) {
    queue->rate_per_tsc.store(frames_per_second / static_cast<double>(rte_get_tsc_hz()), std::memory_order_relaxed);
  }
}

// Credits the frames of another `ticks`; those that the ring has no capacity for are lost.
void ReplayPort::Queue::fall_due(double ticks, unsigned capacity) {
  credit += ticks * seen_rate;
  if (credit < capacity + 1.0) {
    return;
  }
  const double lost = std::floor(credit - capacity);
  missed.store(missed.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(lost), std::memory_order_relaxed);
  credit -= lost;
  gap_ticks += lost / seen_rate;
  if (gap_count == gaps.size()) {
    // Joined with the last one, which makes the frames between the two a little older than they are.
    Gap& last = gaps[(first_gap + gap_count - 1) % gaps.size()];
    last = {taken + capacity, last.ticks + lost / seen_rate};
  } else {
    gaps[(first_gap + gap_count++) % gaps.size()] = {taken + capacity, lost / seen_rate};
  }
}

// How long the first frame in the ring has been due.
double ReplayPort::Queue::head_waited() const {
  return std::max(0.0, credit - 1) / seen_rate + gap_ticks;
}

// As they have come back.
std::uint16_t ReplayPort::Queue::take(rte_mbuf** frames, std::uint16_t count) {
  count = static_cast<std::uint16_t>(std::min<unsigned>(count, rte_mempool_avail_count(pool.get())));
  return rte_mempool_get_bulk(pool.get(), reinterpret_cast<void**>(frames), count) == 0 ? count : 0;
}

// All that has come back is taken out of the pool, and so many of those that are there are handed out, from
// `next_index` on.
std::uint16_t ReplayPort::Queue::take_in_order(rte_mbuf** frames, std::uint16_t count) {
  const unsigned back = rte_mempool_avail_count(pool.get());
  if (back != 0 && rte_mempool_get_bulk(pool.get(), reinterpret_cast<void**>(scratch.data()), back) == 0) {
    for (unsigned i = 0; i < back; ++i) {
      const std::uint32_t index = frame_index(scratch[i]);
      present[index / 64] |= std::uint64_t{1} << index % 64;
    }
    here += back;
  }
  const auto all = static_cast<std::uint32_t>(by_index.size());
  count = static_cast<std::uint16_t>(std::min<unsigned>(count, here));
  for (std::uint16_t placed = 0; placed < count;) {
    std::uint64_t& word = present[next_index / 64];
    const std::uint64_t there = word >> next_index % 64;
    if (there == 0) {
      next_index = (next_index / 64 + 1) * 64 % (present.size() * 64);
      continue;
    }
    next_index += static_cast<std::uint32_t>(std::countr_zero(there));
    word &= ~(std::uint64_t{1} << next_index % 64);
    frames[placed++] = by_index[next_index];
    next_index = next_index + 1 == all ? 0 : next_index + 1;
  }
  here -= count;
  return count;
}

std::uint16_t ReplayPort::rx_burst(std::uint16_t q, rte_mbuf** frames, std::uint16_t count) {
  Queue& queue = *queues_[q];
  const double rate = queue.rate_per_tsc.load(std::memory_order_relaxed);
  if (rate > 0) {
    const std::uint64_t now = rte_rdtsc();
    if (rate != queue.seen_rate) {
      queue.seen_rate = rate;
      queue.credit = 0;
      queue.last_tsc = now;
      queue.gap_count = 0;
      queue.gap_ticks = 0;
    }
    queue.fall_due(static_cast<double>(now - queue.last_tsc), ring_);
    queue.last_tsc = now;
    queue.waited = static_cast<std::uint64_t>(queue.head_waited());
    count = static_cast<std::uint16_t>(std::min<double>(count, queue.credit));
  } else {
    queue.seen_rate = 0;
    queue.waited = 0;
  }
  count = queue.by_index.empty() ? queue.take(frames, count) : queue.take_in_order(frames, count);
  if (count == 0) {
    return 0;
  }
  if (rate > 0) {
    queue.credit -= count;
    queue.taken += count;
    for (; queue.gap_count != 0 && queue.gaps[queue.first_gap].before <= queue.taken; --queue.gap_count) {
      queue.gap_ticks -= queue.gaps[queue.first_gap].ticks;
      queue.first_gap = (queue.first_gap + 1) % queue.gaps.size();
    }
  }
  if (const int family = family_.load(std::memory_order_acquire); family != queue.seen_family) {
    queue.seen_family = family;
    queue.to_rewrite = 2ULL * frames_;  // a frame that is out may miss its turn in the first round
  }
  const auto& pristine = queue.pristine[family_at(queue.seen_family)];
  if (queue.to_rewrite != 0) {
    for (unsigned i = 0; i < count; ++i) {
      write_frame(pristine[index_of(frames[i])], frames[i]);
    }
    queue.to_rewrite -= std::min<std::uint64_t>(queue.to_rewrite, count);
  } else if (refresh_ != 0 && touches_refresh(queue.handed_out, count, frames_, refresh_)) {
    for (unsigned i = 0; i < count; ++i) {
      const auto& bytes = pristine[index_of(frames[i])];
      std::memcpy(rte_pktmbuf_mtod(frames[i], void*), bytes.data(), std::min<std::size_t>(bytes.size(), refresh_bytes));
    }
  }
  queue.handed_out += count;
  return count;
}

std::uint16_t ReplayPort::tx_burst(rte_mbuf** frames, std::uint16_t count) {
  if (observer_) {
    for (unsigned i = 0; i < count; ++i) {
      observer_(frames[i]);
    }
  }
  // Runs of frames of one pool; nearly always the whole burst.
  for (unsigned first = 0; first < count;) {
    rte_mempool* pool = frames[first]->pool;
    unsigned end = first + 1;
    while (end < count && frames[end]->pool == pool) {
      ++end;
    }
    rte_mempool_put_bulk(pool, reinterpret_cast<void**>(frames + first), end - first);
    first = end;
  }
  return count;
}

std::uint64_t ReplayPort::missed() const {
  std::uint64_t sum = 0;
  for (const auto& queue : queues_) {
    sum += queue->missed.load(std::memory_order_relaxed);
  }
  return sum;
}

std::uint32_t ReplayPort::frame_index(const rte_mbuf* frame) {
  return frame->hash.fdir.hi;
}

}  // namespace sluice::port
