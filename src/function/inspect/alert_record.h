// What a lane keeps of an alert until its line is written, and the ring that carries it to the writer.
//
// AlertRing: one producer (the lane), one consumer (the writer). All memory is taken by the constructor; no call waits,
// locks, allocates or makes a system call. Records are made once and used again: `rules` is let go of by the consumer,
// so that a rule set that was replaced is freed there, and never on a lane.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "flow/flow.h"
#include "function/inspect/alert_http.h"
#include "function/inspect/inspection.h"

namespace sluice::function {

inline constexpr std::uint16_t no_port = 0xffff;

struct AlertRecord {
  enum class Kind : std::uint8_t { alert, drop };
  Kind kind = Kind::alert;
  bool blocked = false;     // alert: its rule drops, and the frame is dropped
  bool would_drop = false;  // alert: its rule drops, but nothing is forwarded
  bool drop_too = false;    // alert: a drop event follows it
  bool stream = false;      // alert
  bool has_frame = false;   // `packet` and what was read of the frame count
  bool has_flow = false;
  DropReason reason = DropReason::rules;
  flow::Direction direction = flow::Direction::to_server;
  std::uint16_t port = no_port;
  std::uint32_t rule = 0;                        // of rules->detector().rules().rules
  std::shared_ptr<const InspectionRules> rules;  // null: a drop that no rule is named for
  std::uint64_t microseconds = 0;                // since the epoch
  match::PacketFacts packet;                     // without its views
  flow::Flow flow;                               // as it was then
  // What PacketFacts does not say.
  std::uint8_t vlans = 0;
  std::array<std::uint16_t, 3> vlan{};  // ids, outermost first
  std::uint32_t ip_length = 0;          // IPv4 total length, IPv6 payload length
  std::uint32_t flow_label = 0;         // IPv6
  std::uint16_t tcp_urgent = 0;
  std::uint8_t tcp_reserved = 0;
  std::uint16_t udp_length = 0;
  std::uint32_t payload_size = 0;
  TunnelEnds tunnel;  // that the packet was in; of depth 0: none
  AlertHttp http;     // alert
};

// Of the frame, whose facts these are: all but the flow.
void take_frame(AlertRecord& record, std::string_view frame, const match::PacketFacts& packet);

class AlertRing {
 public:
  // `records`: rounded up to a power of two.
  AlertRing(std::uint32_t records, std::uint32_t payload_bytes)
      : records_(rounded(records)),
        payload_bytes_(payload_bytes),
        texts_(std::make_unique_for_overwrite<char[]>(records_.size() * capacity_bytes())) {}

  std::uint32_t capacity() const { return static_cast<std::uint32_t>(records_.size()); }
  std::size_t memory_bytes() const { return memory_bytes(capacity(), payload_bytes_); }
  static std::size_t memory_bytes(std::uint32_t records, std::uint32_t payload_bytes) {
    return std::size_t{rounded(records)} * (sizeof(AlertRecord) + capacity_bytes(payload_bytes));
  }

  // The producer: a record to fill in, then push(); nullptr: `most` records or more wait already.
  AlertRecord* next(std::uint32_t most) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - seen_head_ >= most) {
      seen_head_ = head_.load(std::memory_order_acquire);
      if (tail - seen_head_ >= most) return nullptr;
    }
    return &records_[index(tail)];
  }
  // AlertHttp::most_bytes for the text of the record that next() gave.
  char* next_http() { return slot(tail_.load(std::memory_order_relaxed)) + payload_bytes_; }
  // Keeps as much of `payload` as there is capacity for, and makes the record visible.
  void push(std::string_view payload) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    AlertRecord& record = records_[index(tail)];
    record.payload_size = static_cast<std::uint32_t>(std::min<std::size_t>(payload.size(), payload_bytes_));
    if (record.payload_size != 0) std::memcpy(slot(tail), payload.data(), record.payload_size);
    tail_.store(tail + 1, std::memory_order_release);
  }

  // The consumer: the oldest record, then pop(); nullptr: none.
  AlertRecord* front() {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    return head == tail_.load(std::memory_order_acquire) ? nullptr : &records_[index(head)];
  }
  std::string_view front_payload() const {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    return {slot(head), records_[index(head)].payload_size};
  }
  const char* front_http() const { return slot(head_.load(std::memory_order_relaxed)) + payload_bytes_; }
  void pop() {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    records_[index(head)].rules.reset();
    head_.store(head + 1, std::memory_order_release);
  }

 private:
  std::size_t index(std::uint64_t count) const { return count & (records_.size() - 1); }
  static std::uint32_t rounded(std::uint32_t records) { return std::bit_ceil(std::max(records, 2U)); }
  static std::size_t capacity_bytes(std::uint32_t payload_bytes) {
    return std::size_t{payload_bytes} + AlertHttp::most_bytes;
  }
  std::size_t capacity_bytes() const { return capacity_bytes(payload_bytes_); }
  char* slot(std::uint64_t count) const { return texts_.get() + index(count) * capacity_bytes(); }

  std::vector<AlertRecord> records_;
  std::uint32_t payload_bytes_;
  std::unique_ptr<char[]> texts_;                   // of each record the payload, and behind it HTTP's text
  alignas(64) std::atomic<std::uint64_t> tail_{0};  // the producer's
  std::uint64_t seen_head_ = 0;
  alignas(64) std::atomic<std::uint64_t> head_{0};  // the consumer's
};

}  // namespace sluice::function
