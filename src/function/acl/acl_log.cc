#include "function/acl/acl_log.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "function/inspect/alert_record.h"
#include "function/inspect/eve.h"
#include "match/confirm/packet_facts.h"

namespace sluice::function {
namespace {

constexpr std::chrono::milliseconds pause(20);  // between two looks at the rings

void add_one(std::atomic<std::uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // one writer
}

}  // namespace

Expected<std::unique_ptr<AclLog>> AclLog::open(AclLogSettings settings, std::uint32_t writers) {
  std::unique_ptr<AclLog> log(new AclLog(std::move(settings), writers));
  if (!log->settings_.eve.empty()) {
    auto file = LineFile::open(log->settings_.eve);
    if (!file) return make_error("eve: " + file.error().message);
    log->file_ = std::move(*file);
  }
  log->thread_ = std::thread([raw = log.get()] { raw->run(); });
  return log;
}

AclLog::AclLog(AclLogSettings settings, std::uint32_t writers) : settings_(std::move(settings)) {
  for (std::uint32_t writer = 0; writer < writers; ++writer) rings_.push_back(std::make_unique<Ring>());
}

AclLog::~AclLog() {
  stop();
}

void AclLog::take(std::uint32_t writer, const std::shared_ptr<LoggedRule>& rule, const std::uint8_t* frame,
                  std::uint32_t length, const Event& event) {
  Ring& ring = *rings_[writer];
  if (!rule->limit.take(1, event.tsc)) {
    rule->suppressed.fetch_add(1, std::memory_order_relaxed);
    add_one(ring.suppressed);
    return;
  }
  const std::uint64_t tail = ring.tail.load(std::memory_order_relaxed);
  if (tail - ring.head.load(std::memory_order_acquire) == most_waiting) {
    add_one(ring.full);
    return;
  }
  Record& record = ring.records[tail % most_waiting];
  record.rule = rule;
  record.microseconds = microseconds_since_epoch();
  record.length = length;
  record.in_port = event.in_port;
  record.out_port = event.out_port;
  record.reason = event.reason;
  std::memcpy(record.bytes.data(), frame, std::min(length, kept_bytes));
  ring.tail.store(tail + 1, std::memory_order_release);
}

void AclLog::run() {
  pthread_setname_np(pthread_self(), "sluice-acl-log");
  std::unique_lock lock(stop_mutex_);
  while (!stopping_) {
    lock.unlock();
    pass();
    lock.lock();
    stop_signal_.wait_for(lock, pause, [this] { return stopping_; });
  }
}

void AclLog::pass() {
  for (const auto& ring : rings_) {
    const std::uint64_t tail = ring->tail.load(std::memory_order_acquire);
    for (std::uint64_t head = ring->head.load(std::memory_order_relaxed); head != tail; ++head) {
      Record& record = ring->records[head % most_waiting];
      write(record);
      record.rule.reset();
      ring->head.store(head + 1, std::memory_order_release);
    }
  }
  if (file_) file_->flush(steady_now());
}

void AclLog::write(const Record& record) {
  // As long as it was, so that its lengths hold; what was not kept is payload, and in no line.
  frame_.assign(record.length, 0);
  std::copy_n(record.bytes.begin(), std::min(record.length, kept_bytes), frame_.begin());
  const std::string_view frame(frame_.data(), frame_.size());
  AlertRecord facts;
  facts.kind = AlertRecord::Kind::drop;
  facts.microseconds = record.microseconds;
  facts.has_frame = true;
  take_frame(facts, frame, match::facts_of(frame));
  const auto port = [&](std::uint16_t index) {
    return index < settings_.ports.size() ? std::string_view(settings_.ports[index]) : std::string_view();
  };
  LoggedRule& rule = *record.rule;
  const std::uint64_t suppressed = rule.suppressed.load(std::memory_order_relaxed);
  const AclEvent event{.number = rule.number,
                       .name = rule.name,
                       .comment = rule.comment,
                       .action = rule.action,
                       .verdict = record.reason == packet::no_reason ? "passed" : packet::reason_name(record.reason),
                       .dropped = record.reason != packet::no_reason,
                       .out_iface = port(record.out_port),
                       .suppressed = suppressed - std::exchange(rule.reported, suppressed)};
  written_.fetch_add(1, std::memory_order_relaxed);
  if (file_) {
    file_->append(eve_acl(facts, port(record.in_port), event));
  } else {
    spdlog::info("{}", acl_line(facts, port(record.in_port), event));
  }
}

void AclLog::stop() {
  {
    const std::lock_guard lock(stop_mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  stop_signal_.notify_all();
  if (!thread_.joinable()) return;  // open() failed
  thread_.join();
  pass();
  if (file_) file_->finish();
}

AclLogCounters AclLog::counters() const {
  AclLogCounters all;
  all.written = written_.load(std::memory_order_relaxed);
  for (const auto& ring : rings_) {
    all.suppressed += ring->suppressed.load(std::memory_order_relaxed);
    all.ring_full += ring->full.load(std::memory_order_relaxed);
  }
  if (file_) all.lost_lines = file_->counters().lost_lines;
  return all;
}

std::string AclLog::lost() const {
  const std::uint64_t lines = counters().lost_lines;
  if (lines == 0) return {};
  return std::to_string(lines) + (lines == 1 ? " line" : " lines") + " for " + file_->name() +
         (lines == 1 ? " is" : " are") + " lost: it could not be written";
}

}  // namespace sluice::function
