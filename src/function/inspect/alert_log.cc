#include "function/inspect/alert_log.h"

#include <pthread.h>
#include <sched.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "packet/headers.h"
#include "packet/metadata.h"

namespace sluice::function {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::chrono::milliseconds pause(10);  // between two looks at the rings
constexpr std::uint64_t report_interval = second, log_interval = 10 * second;

void add_one(std::atomic<std::uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // one writer
}

std::uint16_t be16_at(std::string_view bytes, std::size_t at) {
  return at + 2 > bytes.size() ? std::uint16_t{0}
                               : static_cast<std::uint16_t>(static_cast<std::uint8_t>(bytes[at]) << 8 |
                                                            static_cast<std::uint8_t>(bytes[at + 1]));
}

void take_tags(AlertRecord& record, std::string_view frame) {
  packet::Metadata meta;
  packet::read_metadata(reinterpret_cast<const std::uint8_t*>(frame.data()), static_cast<std::uint32_t>(frame.size()),
                        packet::Depth::link, meta);
  record.vlans = static_cast<std::uint8_t>(std::min<std::size_t>(meta.tags, record.vlan.size()));
  for (std::size_t i = 0; i < record.vlans; ++i) {
    record.vlan[i] = be16_at(frame, sizeof(packet::EthernetHeader) + i * sizeof(packet::VlanHeader)) & 0x0fff;
  }
}

}  // namespace

// What PacketFacts does not say of the frame, and the facts without their views. Of a packet that did not come (of the
// frame's flow, in the other direction) only the frame's tags are known.
void take_frame(AlertRecord& record, std::string_view frame, const match::PacketFacts& packet) {
  record.packet = packet;
  take_tags(record, frame);
  const bool is_v4 = packet.family == 4;
  record.ip_length = be16_at(packet.ip_header, is_v4 ? 2 : 4);
  record.flow_label =
      is_v4 ? 0 : std::uint32_t{be16_at(packet.ip_header, 0) & 0x0fU} << 16 | be16_at(packet.ip_header, 2);
  if (packet.has_tcp) {
    record.tcp_reserved = be16_at(packet.transport_header, 12) >> 8 & 0x0f;
    record.tcp_urgent = be16_at(packet.transport_header, 18);
  }
  record.udp_length = be16_at(packet.transport_header, 4);
  record.packet.ip_header = record.packet.ip_options = record.packet.transport_header = record.packet.payload = {};
}

namespace {

void take(AlertRecord& record, std::uint64_t microseconds, std::string_view frame, const match::PacketFacts& packet,
          flow::Direction direction, const flow::Flow* flow, const TunnelEnds* tunnel) {
  record.microseconds = microseconds;
  record.direction = direction;
  record.has_frame = !frame.empty();
  if (record.has_frame) take_frame(record, frame, packet);
  record.tunnel = tunnel != nullptr ? *tunnel : TunnelEnds();
  record.has_flow = flow != nullptr;
  if (record.has_flow) record.flow = *flow;
}

engine::TokenBucket bucket(std::uint32_t per_second) {
  return {per_second == 0 ? 1 : std::max<std::uint64_t>(second / per_second, 1), std::max(per_second, 1U)};
}

}  // namespace

AlertLane::AlertLane(const AlertLogSettings& settings, const std::atomic<bool>& ended)
    : ring_(settings.ring, settings.payload_bytes),
      ended_(ended),
      waits_(settings.wait_for_capacity),
      forwards_(settings.forwards),
      reports_drops_(!settings.eve.empty() && settings.forwards),
      limits_drops_(settings.alerts_per_second != 0),
      drop_limit_(bucket(settings.alerts_per_second)) {}

AlertRecord* AlertLane::claim(std::uint32_t most) {
  AlertRecord* record = ring_.next(most);
  while (record == nullptr && waits_ && !ended_.load(std::memory_order_relaxed)) {
    sched_yield();
    record = ring_.next(most);
  }
  return record;
}

void AlertLane::alert(const Alert& alert) {
  AlertRecord* const record = claim(ring_.capacity());
  if (record == nullptr) {
    add_one(ring_full_);
    return;
  }
  const match::Action action = alert.rules->detector().rules().rules[alert.rule].action;
  const bool drops = alert.blocked && match::blocks(action);
  record->kind = AlertRecord::Kind::alert;
  record->rules = alert.rules->shared_from_this();
  record->rule = alert.rule;
  record->blocked = drops && forwards_;
  record->would_drop = drops && !forwards_;
  record->stream = alert.stream && alert.packet->has_tcp;
  record->reason = DropReason::rules;
  record->port = alert.frame.empty() ? no_port : port_;
  take(*record, alert.microseconds, alert.frame, *alert.packet, alert.direction, alert.flow, alert.tunnel);
  record->http.take(alert.transaction, ring_.next_http());
  record->drop_too = record->blocked && record->has_frame && !is_reported(alert.frame, alert.microseconds);
  if (record->drop_too) {
    reported_ = alert.frame.data();
    reported_at_ = alert.microseconds;
  }
  // Of a message that is no piece of the stream, what came last; at the end of a capture there is no packet any more.
  const bool packet_holds = alert.payload.empty() && record->has_frame;
  ring_.push(packet_holds ? alert.packet->payload : alert.payload);
}

void AlertLane::dropped(const DroppedFrame& frame) {
  if (frame.reason == DropReason::budget) add_one(over_budget_);
  if (!reports_drops_) return;
  if (is_reported(frame.frame, frame.microseconds)) {
    reported_ = nullptr;  // the next frame may lie there, and be of the same time
    return;
  }
  const bool limited = limits_drops_ && !drop_limit_.take(frame.microseconds * 1000);
  AlertRecord* const record = limited ? nullptr : claim(ring_.capacity() / 2);
  if (record == nullptr) {
    add_one(drops_skipped_);
    return;
  }
  record->kind = AlertRecord::Kind::drop;
  record->drop_too = false;
  record->rules = frame.rules == nullptr ? nullptr : frame.rules->shared_from_this();
  record->rule = frame.rule;
  record->reason = frame.reason;
  record->port = port_;
  take(*record, frame.microseconds, frame.frame, *frame.packet, frame.direction, frame.flow, frame.tunnel);
  ring_.push({});
}

void AlertLane::unseen() {
  add_one(unseen_);
}

bool AlertLog::are_one_file(const std::string& one, const std::string& other) {
  if (one.empty() || other.empty() || one == "-" || other == "-") return one == other && !one.empty();
  return same_file(one, other) || same_path(one, other);
}

Expected<std::unique_ptr<AlertLog>> AlertLog::open(AlertLogSettings settings, std::uint32_t lanes) {
  if (are_one_file(settings.eve, settings.fast)) {
    return make_error(settings.eve + ": is named for both EVE and fast.log: name two files");
  }
  if (!settings.clock) settings.clock = steady_now;
  std::unique_ptr<AlertLog> log(new AlertLog(std::move(settings)));
  const auto open_one = [](const char* key, const std::string& path,
                           std::unique_ptr<LineFile>& file) -> Expected<void> {
    if (path.empty()) return {};
    auto opened = LineFile::open(path);
    if (!opened) return make_error(std::string(key) + ": " + opened.error().message);
    file = std::move(*opened);
    return {};
  };
  if (auto ok = open_one("eve", log->settings_.eve, log->eve_); !ok) return tl::unexpected(ok.error());
  if (auto ok = open_one("fast", log->settings_.fast, log->fast_); !ok) return tl::unexpected(ok.error());
  for (std::uint32_t i = 0; i < lanes; ++i) {
    log->lanes_.emplace_back(new AlertLane(log->settings_, log->ended_));
  }
  log->thread_ = std::thread([raw = log.get()] { raw->run(); });
  return log;
}

AlertLog::AlertLog(AlertLogSettings settings)
    : settings_(std::move(settings)),
      alert_limit_(bucket(settings_.alerts_per_second)),
      drop_limit_(bucket(settings_.alerts_per_second)),
      began_(settings_.clock()),
      now_(began_),
      next_stats_(began_ + settings_.stats_seconds * second) {}

AlertLog::~AlertLog() {
  stop();
}

void AlertLog::set_stats(std::function<nlohmann::ordered_json()> stats) {
  const std::lock_guard lock(stats_mutex_);
  stats_ = std::move(stats);
}

void AlertLog::set_watch(std::function<void(std::uint64_t)> watch) {
  const std::lock_guard lock(stats_mutex_);
  watch_ = std::move(watch);
}

void AlertLog::flush() {
  pass();
}

void AlertLog::stop() {
  {
    const std::lock_guard lock(stop_mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  stop_signal_.notify_all();
  if (!thread_.joinable()) return;  // open() failed
  thread_.join();
  pass();
  ended_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(pass_mutex_);
  const AlertCounters now = counters();
  if (settings_.stats_seconds != 0 || suppressed(now) != reported_) write_stats();
  if (suppressed(now) != logged_) log_suppressed(now);
  report_over_budget(true);
  if (eve_) eve_->finish();
  if (fast_) fast_->finish();
}

void AlertLog::run() {
  pthread_setname_np(pthread_self(), "sluice-alerts");
  std::unique_lock lock(stop_mutex_);
  while (!stopping_) {
    lock.unlock();
    const bool some = pass();
    lock.lock();
    if (some && settings_.wait_for_capacity) continue;  // a lane may be waiting
    stop_signal_.wait_for(lock, pause, [this] { return stopping_; });
  }
}

bool AlertLog::pass() {
  const std::lock_guard lock(pass_mutex_);
  now_ = settings_.clock();
  bool some = false;
  for (const auto& lane : lanes_) {
    // A ring at a time, so that a lane in a flood does not keep the others waiting.
    for (std::uint32_t i = 0; i < lane->ring_.capacity(); ++i) {
      const AlertRecord* const record = lane->ring_.front();
      if (record == nullptr) break;
      write(*record, lane->ring_.front_payload(), lane->ring_.front_http());
      lane->ring_.pop();
      some = true;
    }
  }
  report_suppressed();
  report_over_budget(false);
  {
    const std::lock_guard lock(stats_mutex_);
    if (watch_) watch_(now_);
  }
  if (settings_.stats_seconds != 0 && now_ >= next_stats_) {
    next_stats_ = now_ + settings_.stats_seconds * second;
    write_stats();
  }
  flush_files();
  return some;
}

std::string_view AlertLog::port_name(std::uint16_t port) const {
  return port < settings_.ports.size() ? std::string_view(settings_.ports[port]) : std::string_view();
}

void AlertLog::write(const AlertRecord& record, std::string_view payload, const char* http) {
  const bool is_alert = record.kind == AlertRecord::Kind::alert;
  if (settings_.alerts_per_second != 0 && !(is_alert ? alert_limit_ : drop_limit_).take(now_)) {
    add_one(is_alert ? rate_limited_ : drops_limited_);
    if (record.drop_too) add_one(drops_limited_);
    return;
  }
  const std::string_view in_iface = port_name(record.port);
  if (is_alert) {
    add_one(alerts_);
    if (eve_) eve_->append(eve_alert(record, payload, http, in_iface, settings_.fields));
    if (fast_) fast_->append(fast_line(record));
  }
  if (!is_alert || record.drop_too) {
    add_one(drops_);
    if (eve_) eve_->append(eve_drop(record, in_iface));
  }
}

void AlertLog::report_suppressed() {
  const AlertCounters now = counters();
  const std::uint64_t all = suppressed(now);
  if (all != reported_ && now_ >= next_report_) {
    reported_ = all;
    next_report_ = now_ + report_interval;
    write_stats();
  }
  if (all != logged_ && now_ >= next_log_) log_suppressed(now);
}

// What is cut without a rule's word, or goes on unseen, has to be found by who runs the gateway.
void AlertLog::report_over_budget(bool now) {
  std::uint64_t over_budget = 0, unseen = 0;
  for (const auto& lane : lanes_) {
    over_budget += lane->over_budget_.load(std::memory_order_relaxed);
    unseen += lane->unseen_.load(std::memory_order_relaxed);
  }
  log_frames(over_budget_logged_, over_budget, now,
             "were dropped because a rule that drops might hold for them, and the time for looking was used up "
             "(inspect_overload); [inspect] budget and candidates bound it, and on_overload says what becomes of them");
  log_frames(
      unseen_logged_, unseen, now,
      "went on though they were not looked at to the end (of inspect_overloaded_frames), because what looking may "
      "cost was used up, which [inspect] budget and candidates bound, and for one pattern PCRE2's own limit "
      "(inspect_given_up): on_overload is \"pass\", or only rules that drop nothing were left, or nothing is "
      "forwarded");
}

void AlertLog::log_frames(FramesLogged& logged, std::uint64_t all, bool now, std::string_view what) {
  if (all == logged.count || (!now && now_ < logged.next)) return;
  spdlog::warn("inspect: {} frames, and {} since the start, {}", all - logged.count, all, what);
  logged = {all, now_ + log_interval};
}

void AlertLog::log_suppressed(const AlertCounters& now) {
  spdlog::warn(
      "alerts: {} lines suppressed since this was last said; since the start {} alerts over the {} a second, {} that a "
      "lane's ring had no capacity for, and {} drop events",
      suppressed(now) - logged_, now.rate_limited, settings_.alerts_per_second, now.ring_full, now.drops_skipped);
  logged_ = suppressed(now);
  next_log_ = now_ + log_interval;
}

nlohmann::ordered_json AlertLog::stats() const {
  nlohmann::ordered_json all;
  all["uptime"] = (now_ - began_) / second;
  {
    const std::lock_guard lock(stats_mutex_);
    if (stats_) all.update(stats_());
  }
  const AlertCounters now = counters();
  // Suricata's names for the same.
  all["detect"]["alert_queue_overflow"] = now.ring_full;
  all["detect"]["alerts_suppressed"] = now.rate_limited;
  all["alert_log"] = {{"alerts", now.alerts},
                      {"drops", now.drops},
                      {"ring_full", now.ring_full},
                      {"rate_limited", now.rate_limited},
                      {"drops_skipped", now.drops_skipped},
                      {"write_errors", now.write_errors},
                      {"lost_lines", now.lost_lines}};
  return all;
}

void AlertLog::write_stats() {
  if (eve_) eve_->append(eve_stats(microseconds_since_epoch(), stats()));
}

void AlertLog::flush_files() {
  if (eve_) eve_->flush(now_);
  if (fast_) fast_->flush(now_);
}

AlertCounters AlertLog::counters() const {
  AlertCounters all;
  all.alerts = alerts_.load(std::memory_order_relaxed);
  all.drops = drops_.load(std::memory_order_relaxed);
  all.rate_limited = rate_limited_.load(std::memory_order_relaxed);
  all.drops_skipped = drops_limited_.load(std::memory_order_relaxed);
  for (const auto& lane : lanes_) {
    all.ring_full += lane->ring_full_.load(std::memory_order_relaxed);
    all.drops_skipped += lane->drops_skipped_.load(std::memory_order_relaxed);
  }
  for (const LineFile* const file : {eve_.get(), fast_.get()}) {
    if (file == nullptr) continue;
    all.write_errors += file->counters().write_errors;
    all.lost_lines += file->counters().lost_lines;
  }
  return all;
}

std::string AlertLog::lost() const {
  std::string text;
  for (const LineFile* const file : {eve_.get(), fast_.get()}) {
    const std::uint64_t lines = file == nullptr ? 0 : file->counters().lost_lines;
    if (lines == 0) continue;
    text += (text.empty() ? "" : "; ") + std::to_string(lines) + (lines == 1 ? " line" : " lines") + " for " +
            file->name() + (lines == 1 ? " is" : " are") + " lost: it could not be written";
  }
  return text;
}

std::uint64_t AlertLog::memory_bytes() const {
  std::uint64_t all = 0;
  for (const auto& lane : lanes_) all += lane->ring_.memory_bytes();
  return all;
}

}  // namespace sluice::function
