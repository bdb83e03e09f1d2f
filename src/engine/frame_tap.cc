#include "engine/frame_tap.h"

#include <pcap/pcap.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace sluice::engine {
namespace {

constexpr std::uint32_t unfiltered_length = 262144;
constexpr std::size_t longest_frame = 16384;  // [memory] frame_bytes at most

// A ring of records, by address, in memory of its own: rte_ring_create() would name it for the whole process.
class RecordRing {
 public:
  explicit RecordRing(std::uint32_t records) {
    const ssize_t bytes = rte_ring_get_memsize(records);
    memory_ = bytes > 0 ? std::aligned_alloc(64, (static_cast<std::size_t>(bytes) + 63) / 64 * 64) : nullptr;
    if (memory_ != nullptr) rte_ring_init(ring(), "tap", records, 0);
  }
  ~RecordRing() { std::free(memory_); }
  RecordRing(const RecordRing&) = delete;
  RecordRing& operator=(const RecordRing&) = delete;
  bool made() const { return memory_ != nullptr; }
  void put(TapRecord* record) { rte_ring_mp_enqueue(ring(), record); }  // there is a place for each record
  TapRecord* get() {
    void* record = nullptr;
    return rte_ring_mc_dequeue(ring(), &record) == 0 ? static_cast<TapRecord*>(record) : nullptr;
  }

 private:
  rte_ring* ring() { return static_cast<rte_ring*>(memory_); }
  void* memory_ = nullptr;
};

// libpcap's filter for Ethernet.
class Filter {
 public:
  static Expected<Filter> compile(const std::string& text, std::uint32_t snapshot) {
    Filter filter;
    if (text.empty()) return filter;
    const std::unique_ptr<pcap_t, decltype(&pcap_close)> dead(
        pcap_open_dead(DLT_EN10MB, static_cast<int>(std::max(snapshot, unfiltered_length))), &pcap_close);
    bpf_program program{};
    if (pcap_compile(dead.get(), &program, text.c_str(), 1, PCAP_NETMASK_UNKNOWN) != 0) {
      return make_error("filter '" + text + "': " + pcap_geterr(dead.get()));
    }
    filter.code_.assign(program.bf_insns, program.bf_insns + program.bf_len);
    pcap_freecode(&program);
    return filter;
  }
  bool takes(const std::uint8_t* bytes, std::uint32_t there, std::uint32_t length) const {
    return code_.empty() || bpf_filter(code_.data(), bytes, length, there) != 0;
  }

 private:
  std::vector<bpf_insn> code_;
};

// Which frames are under way that were copied when they came. Of two whose places are one the later is followed.
struct Followed {
  std::atomic<const rte_mbuf*> frame{nullptr};
  std::atomic<std::uint64_t> id{0};
};
constexpr std::size_t followed_places = 1 << 16;

}  // namespace

struct TapSession::State {
  State(TapRequest asked, Filter compiled)
      : request(std::move(asked)),
        filter(std::move(compiled)),
        records(request.records),
        free(std::bit_ceil(request.records + 1)),  // a ring keeps one place empty
        full(std::bit_ceil(request.records + 1)),
        followed(followed_places) {
    if (!made()) return;
    for (TapRecord& record : records) {
      record.bytes.reserve(reserved());
      free.put(&record);
    }
  }
  bool made() const { return free.made() && full.made(); }
  // As much as a frame has: lanes allocate nothing.
  std::size_t reserved() const { return std::min<std::size_t>(request.snapshot, longest_frame); }
  Followed& place(const rte_mbuf* frame) {
    constexpr std::uint64_t spread = 0x9e3779b97f4a7c15;
    return followed[(reinterpret_cast<std::uintptr_t>(frame) >> 6) * spread >> 48];
  }

  const TapRequest request;
  const Filter filter;
  std::vector<TapRecord> records;
  RecordRing free, full;
  std::vector<Followed> followed;
};

TapSession::TapSession(FrameTap& tap, unsigned slot, std::uint64_t born, std::unique_ptr<State> state)
    : tap_(tap), slot_(slot), born_(born), state_(std::move(state)) {}

TapSession::~TapSession() {
  tap_.close(slot_);
}

bool TapSession::take(TapRecord& record) {
  TapRecord* const taken = state_->full.get();
  if (taken == nullptr) return false;
  std::swap(record, *taken);
  taken->bytes.reserve(state_->reserved());
  state_->free.put(taken);
  return true;
}

bool TapSession::wants(std::uint16_t port, std::uint32_t lane) const {
  const TapRequest& request = state_->request;
  return port < TapRequest::most_ports && request.ports[port] && (!request.lane || *request.lane == lane);
}

// A record that is not published yet; null: the filter does not take the frame, or none is free.
TapRecord* TapSession::copy(const rte_mbuf* frame, TapEvent event, std::uint16_t port, std::uint32_t lane,
                            std::uint64_t tsc) {
  const std::uint32_t length = rte_pktmbuf_pkt_len(frame);
  const auto* const first = rte_pktmbuf_mtod(frame, const std::uint8_t*);
  if (!state_->filter.takes(first, rte_pktmbuf_data_len(frame), length)) return nullptr;
  TapRecord* const record = state_->free.get();
  if (record == nullptr) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  const std::uint32_t size = std::min(length, state_->request.snapshot);
  record->bytes.resize(size);
  const void* const bytes = rte_pktmbuf_read(frame, 0, size, record->bytes.data());
  if (bytes != nullptr && bytes != record->bytes.data()) std::memcpy(record->bytes.data(), bytes, size);
  record->id = tap_.last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
  record->tsc = tsc;
  record->length = length;
  record->lane = lane;
  record->port = port;
  record->verdict_port = 0;
  record->event = event;
  record->verdict = TapVerdict::none;
  record->reason = packet::no_reason;
  return record;
}

void TapSession::publish(TapRecord* record) {
  state_->full.put(record);
}

void TapSession::follow(const rte_mbuf* frame, std::uint64_t id) {
  Followed& place = state_->place(frame);
  place.id.store(id, std::memory_order_relaxed);
  place.frame.store(frame, std::memory_order_release);
}

// The id of the frame, which is followed no more; 0: it was not.
std::uint64_t TapSession::claim(const rte_mbuf* frame) {
  Followed& place = state_->place(frame);
  if (place.frame.load(std::memory_order_acquire) != frame) return 0;
  const std::uint64_t id = place.id.load(std::memory_order_relaxed);
  const rte_mbuf* expected = frame;
  return place.frame.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel) ? id : 0;
}

void TapSession::settle(std::uint64_t id, TapVerdict verdict, std::uint16_t port, packet::Reason reason) {
  TapRecord* const record = gave(id) ? state_->free.get() : nullptr;
  if (record == nullptr) return;  // its frame is there, without what became of it
  record->id = id;
  record->event = TapEvent::settled;
  record->verdict = verdict;
  record->verdict_port = port;
  record->reason = reason;
  record->bytes.clear();
  publish(record);
}

Expected<std::unique_ptr<TapSession>> FrameTap::open(const TapRequest& request) {
  auto filter = Filter::compile(request.filter, request.snapshot);
  if (!filter) return tl::unexpected(filter.error());
  auto state = std::make_unique<TapSession::State>(request, std::move(*filter));
  if (!state->made()) return make_error("no memory for " + std::to_string(request.records) + " frames");
  const std::lock_guard lock(opening_);
  for (unsigned slot = 0; slot < most_sessions; ++slot) {
    if (slots_[slot].session.load() != nullptr) continue;
    std::unique_ptr<TapSession> session(new TapSession(*this, slot, last_id_.load(), std::move(state)));
    slots_[slot].session.store(session.get());
    open_.fetch_or(1U << slot);
    return session;
  }
  return make_error(std::to_string(most_sessions) + " captures run already, which is the most: end one first");
}

void FrameTap::close(unsigned slot) {
  const std::lock_guard lock(opening_);
  open_.fetch_and(~(1U << slot));
  slots_[slot].session.store(nullptr);
  // Whoever comes in from now on does not see it.
  while (slots_[slot].inside.load() != 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

template <typename F>
void FrameTap::each(const F& f) {
  for (unsigned slot = 0; slot < most_sessions; ++slot) {
    Slot& one = slots_[slot];
    if (one.session.load(std::memory_order_relaxed) == nullptr) continue;
    one.inside.fetch_add(1);
    if (TapSession* const session = one.session.load()) f(slot, *session);
    one.inside.fetch_sub(1);
  }
}

void FrameTap::received(std::uint32_t lane, std::uint16_t port, std::span<rte_mbuf* const> frames, std::uint64_t tsc) {
  each([&](unsigned, TapSession& session) {
    const TapRequest& request = session.state_->request;
    if (request.drops || !request.in || !session.wants(port, lane)) return;
    for (const rte_mbuf* const frame : frames) {
      if (TapRecord* const record = session.copy(frame, TapEvent::received, port, lane, tsc)) {
        session.follow(frame, record->id);
        session.publish(record);
      } else {
        session.claim(frame);  // what its buffer held before is not under way any more
      }
    }
  });
}

void FrameTap::dropped(std::uint32_t lane, std::uint16_t port, const rte_mbuf* frame, packet::Reason reason) {
  each([&](unsigned, TapSession& session) {
    const TapRequest& request = session.state_->request;
    if (!request.drops) {
      session.settle(session.claim(frame), TapVerdict::dropped, port, reason);
    } else if (session.wants(port, lane) && (request.reason == packet::no_reason || request.reason == reason)) {
      if (TapRecord* const record = session.copy(frame, TapEvent::dropped, port, lane, rte_rdtsc())) {
        record->verdict = TapVerdict::dropped;
        record->reason = reason;
        session.publish(record);
      }
    }
  });
}

void FrameTap::answered(const rte_mbuf* frame, packet::Reason reason) {
  each([&](unsigned /*slot*/, TapSession& session) {
    session.settle(session.claim(frame), TapVerdict::answered, 0, reason);
  });
}

FrameTap::Claim FrameTap::claim(const rte_mbuf* frame) {
  Claim claim{};
  each([&](unsigned slot, TapSession& session) { claim[slot] = session.claim(frame); });
  return claim;
}

void FrameTap::punted(const Claim& claim, const rte_mbuf* frame, bool taken) {
  if (taken) {
    settle(claim, TapVerdict::to_host, 0);
  } else {
    unclaim(claim, frame);
  }
}

void FrameTap::settle(const Claim& claim, TapVerdict verdict, std::uint16_t port) {
  each([&](unsigned slot, TapSession& session) { session.settle(claim[slot], verdict, port, packet::no_reason); });
}

void FrameTap::unclaim(const Claim& claim, const rte_mbuf* frame) {
  each([&](unsigned slot, TapSession& session) {
    if (session.gave(claim[slot])) session.follow(frame, claim[slot]);
  });
}

void FrameTap::Sending::begin(FrameTap& tap, std::uint32_t lane, std::uint16_t port,
                              std::span<rte_mbuf* const> frames) {
  tap_ = &tap;
  port_ = port;
  count_ = 0;
  const std::uint64_t now = rte_rdtsc();
  for (const rte_mbuf* const frame : frames) {
    Frame& one = frames_[count_++];
    one = {frame, tap.claim(frame), {}};
    tap.each([&](unsigned slot, TapSession& session) {
      const TapRequest& request = session.state_->request;
      if (request.drops || !request.out || !session.wants(port, lane)) return;
      if (TapRecord* const record = session.copy(frame, TapEvent::sent, port, lane, now)) {
        one.copies[slot] = {record, record->id};
      }
    });
  }
}

void FrameTap::Sending::end(unsigned sent) {
  for (unsigned i = 0; i < count_; ++i) {
    const Frame& one = frames_[i];
    const bool left = i < sent;
    if (left) {
      tap_->settle(one.claim, TapVerdict::forwarded, port_);
    } else {
      tap_->unclaim(one.claim, one.frame);
    }
    tap_->each([&](unsigned slot, TapSession& session) {
      // A session that was opened meanwhile has records of its own.
      const Copy& copy = one.copies[slot];
      if (!session.gave(copy.id)) return;
      if (left) {
        session.publish(copy.record);
      } else {
        session.state_->free.put(copy.record);
      }
    });
  }
  count_ = 0;
}

}  // namespace sluice::engine
