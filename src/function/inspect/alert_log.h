// The output of the inspect function: alerts from lanes to files, by a thread of its own, so that no flood of alerts
// and no slow disk can stall a lane.
//
//   auto log = AlertLog::open({.eve = "/var/log/eve.json"}, lanes);   // an Error: a path that cannot be written
//   Inspection inspection(rules, settings, (*log)->lane(0));          // the lane's sink
//   (*log)->lane(0).set_port(2); inspection.frame(...);
//   AppendedFile::reopen_all();                                       // after rotation
//   (*log)->stop();                                                   // all that is queued is written
//
// No alert is lost without being counted: what AlertSink::alert() took is, in the end, in exactly one of `alerts`,
// `ring_full` and `rate_limited`; lines of `alerts` that a file could not take are in `lost_lines`. What was suppressed
// is reported right behind the lines that were written, at most once a second: by an EVE `stats` event, and by a line
// of the program's log at most every ten seconds. Limits are about lines only: what is dropped does not depend on them.
//
// Alerts of a lane are in the order in which they came; those of several lanes are not sorted by time. They are in the
// file some 10 ms after they came. docs/alerts.md: what the lines say.
//
// Memory: AlertLog::memory_bytes(); taken at open().
// Thread-safety: a lane's AlertLane is its lane's; all else from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/token_bucket.h"
#include "function/inspect/alert_record.h"
#include "function/inspect/eve.h"
#include "function/inspect/inspection.h"
#include "function/inspect/line_file.h"

namespace sluice::function {

struct AlertLogSettings {
  std::string eve = {};   // path of the EVE JSON lines; "-": standard output; empty: none
  std::string fast = {};  // of fast.log
  // Over all lanes, and as many at once after a pause. 0: no limit (a capture, which has no other way to be slow).
  std::uint32_t alerts_per_second = 1000;
  std::uint32_t ring = 4096;           // records of each lane, rounded up to a power of two
  std::uint32_t payload_bytes = 1500;  // kept of each payload
  EveOptions fields = {};
  std::uint32_t stats_seconds = 8;      // between EVE `stats` events; 0: none but those about what was suppressed
  std::vector<std::string> ports = {};  // names for in_iface, by AlertLane::set_port()
  // A lane waits for capacity in its ring: for a capture, where no time is lost by it. Never set it for a gateway.
  bool wait_for_capacity = false;
  bool forwards = true;  // false: what a rule drops would have been dropped, and there are no `drop` events
  std::function<std::uint64_t()> clock = {};  // nanoseconds, never back; empty: the steady clock
};

struct AlertCounters {
  std::uint64_t alerts = 0;         // given to the files
  std::uint64_t drops = 0;          // `drop` events given to the file
  std::uint64_t ring_full = 0;      // alerts that found no capacity in their lane's ring
  std::uint64_t rate_limited = 0;   // alerts over alerts_per_second
  std::uint64_t drops_skipped = 0;  // `drop` events for one of these two reasons
  std::uint64_t write_errors = 0;   // attempts to write that failed
  std::uint64_t lost_lines = 0;     // of those given to the files
};

// One lane's sink. No call allocates, locks or makes a system call, and none waits (but for wait_for_capacity). Cost:
// about 0.2 us and the copy of the payload.
class AlertLane final : public AlertSink {
 public:
  // Frames come from settings.ports[port] from now on; no_port: from no interface. An alert without a frame, of a flow
  // that has ended, is of none: its packets may have come by others.
  void set_port(std::uint16_t port) { port_ = port; }

  // The frame's first alert of a rule that drops it makes a `drop` event, too, where something is forwarded.
  void alert(const Alert& alert) override;
  // A `drop` event, where there is an EVE file, for a frame that no alert has made one for. These events may fill half
  // of the ring, and a lane makes no more of them than alerts_per_second, by the frames' time: beyond that a frame
  // costs a few ns. Those that the budget was too small for are said in the program's log, too.
  void dropped(const DroppedFrame& frame) override;
  // Said in the program's log alone.
  void unseen() override;

 private:
  friend class AlertLog;
  AlertLane(const AlertLogSettings& settings, const std::atomic<bool>& ended);
  AlertRecord* claim(std::uint32_t most);
  bool is_reported(std::string_view frame, std::uint64_t microseconds) const {
    return reported_ == frame.data() && reported_at_ == microseconds;
  }

  AlertRing ring_;
  const std::atomic<bool>& ended_;
  const bool waits_;
  const bool forwards_;
  const bool reports_drops_;
  const bool limits_drops_;
  engine::TokenBucket drop_limit_;  // in nanoseconds
  std::uint16_t port_ = no_port;
  const char* reported_ = nullptr;  // the frame that an alert has made a `drop` event for
  std::uint64_t reported_at_ = 0;
  std::atomic<std::uint64_t> ring_full_{0};
  std::atomic<std::uint64_t> drops_skipped_{0};
  std::atomic<std::uint64_t> over_budget_{0}, unseen_{0};
};

class AlertLog {
 public:
  // Whether lines for both would go to one place.
  static bool are_one_file(const std::string& one, const std::string& other);
  static Expected<std::unique_ptr<AlertLog>> open(AlertLogSettings settings, std::uint32_t lanes);
  ~AlertLog();  // stop()
  AlertLog(const AlertLog&) = delete;
  AlertLog& operator=(const AlertLog&) = delete;

  AlertLane& lane(std::uint32_t i) { return *lanes_[i]; }

  // What `stats` events say besides this log's own counters and `uptime`; runs on the log's thread until it is replaced
  // (by {}: nothing) or stop() is through.
  void set_stats(std::function<nlohmann::ordered_json()> stats);
  // Called with the clock's nanoseconds some 100 times a second, and once by stop(), likewise.
  void set_watch(std::function<void(std::uint64_t now)> watch);
  // Returns when all that was queued before has been written, or could not be.
  void flush();
  // Writes what is queued, and ends the thread. Lanes may not alert any more; what they still do is counted as
  // ring_full once their rings are full. Again: nothing.
  void stop();

  AlertCounters counters() const;
  // "12 lines for /var/log/sluice/eve.json are lost: it could not be written", of both files; empty: none is. All of
  // them once stop() is through.
  std::string lost() const;
  std::uint64_t memory_bytes() const;
  // Of such as these, before it is taken.
  static std::uint64_t memory_bytes(const AlertLogSettings& settings, std::uint32_t lanes) {
    return std::uint64_t{lanes} * AlertRing::memory_bytes(settings.ring, settings.payload_bytes);
  }

 private:
  explicit AlertLog(AlertLogSettings settings);
  void run();
  bool pass();  // whether there was an alert
  void write(const AlertRecord& record, std::string_view payload, const char* http);
  void report_suppressed();
  struct FramesLogged {
    std::uint64_t count = 0, next = 0;
  };
  void report_over_budget(bool now);
  void log_frames(FramesLogged& logged, std::uint64_t all, bool now, std::string_view what);
  void log_suppressed(const AlertCounters& counters);
  void write_stats();
  nlohmann::ordered_json stats() const;
  void flush_files();
  std::string_view port_name(std::uint16_t port) const;
  std::uint64_t suppressed(const AlertCounters& counters) const {
    return counters.ring_full + counters.rate_limited + counters.drops_skipped;
  }

  const AlertLogSettings settings_;
  std::unique_ptr<LineFile> eve_, fast_;
  std::vector<std::unique_ptr<AlertLane>> lanes_;
  std::atomic<bool> ended_{false};
  engine::TokenBucket alert_limit_, drop_limit_;  // in nanoseconds

  // The writer's.
  std::uint64_t began_ = 0, now_ = 0;  // of the clock
  std::uint64_t next_stats_ = 0, next_report_ = 0, next_log_ = 0;
  std::uint64_t reported_ = 0, logged_ = 0;  // of suppressed()
  FramesLogged over_budget_logged_, unseen_logged_;
  std::atomic<std::uint64_t> alerts_{0}, drops_{0}, rate_limited_{0}, drops_limited_{0};

  std::mutex pass_mutex_;  // one pass at a time: the thread's, or flush()'s
  mutable std::mutex stats_mutex_;
  std::function<nlohmann::ordered_json()> stats_;
  std::function<void(std::uint64_t)> watch_;
  std::mutex stop_mutex_;
  std::condition_variable stop_signal_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sluice::function
