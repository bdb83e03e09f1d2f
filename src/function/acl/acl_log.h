// Lines about frames that rules with `log = true` decide: from lanes to a file of EVE JSON, or to the program's log, by
// a thread of its own, so that no slow disk can stall a lane.
//
// Each such rule has `log_per_second` lines, and as many at once after a pause, over all lanes. What was suppressed is
// counted, by the rule, whose next line says how many frames it stands for besides. No line is lost without being
// counted: what a rule decides is, in the end, in exactly one of `written`, `suppressed` and `ring_full`; lines of
// `written` that the file could not take are in `lost_lines`. docs/acl.md: what the lines say.
//
// Memory: most_waiting records of 256 bytes for each writer. Thread-safety: take() by one thread for each writer, all
// else any thread. No call of a lane allocates, locks, waits or makes a system call. Cost: a frame that is reported
// some 100 ns, one that is suppressed some ns.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "function/inspect/line_file.h"
#include "function/policer.h"
#include "packet/reason.h"

namespace sluice::function {

struct AclLogSettings {
  std::string eve = {};  // path of the EVE JSON lines; "-": standard output; empty: the program's log
  std::uint32_t per_second = 10;
  std::vector<std::string> ports = {};  // names, by index
  bool operator==(const AclLogSettings&) const = default;
};

// What lines say of a rule, and its limit. Lives as long as a list or a record names it.
struct LoggedRule {
  LoggedRule(std::uint32_t per_second, std::uint64_t tsc_hz)
      : limit(std::uint64_t{8} * per_second, per_second, tsc_hz) {}
  std::uint64_t number = 0;  // its place in match order, from 1
  std::string name, comment, action, match;
  Policer limit;  // of lines, a byte each
  std::atomic<std::uint64_t> suppressed{0};
  std::uint64_t reported = 0;  // of `suppressed`; the log's thread's
};

struct AclLogCounters {
  std::uint64_t written = 0;     // lines, given to the file or the program's log
  std::uint64_t suppressed = 0;  // frames over a rule's limit
  std::uint64_t ring_full = 0;   // frames that found no capacity in their lane's ring
  std::uint64_t lost_lines = 0;  // of `written`
  AclLogCounters& operator+=(const AclLogCounters& other) {
    written += other.written;
    suppressed += other.suppressed;
    ring_full += other.ring_full;
    lost_lines += other.lost_lines;
    return *this;
  }
};

class AclLog {
 public:
  static constexpr std::uint32_t most_waiting = 512;
  static constexpr std::uint32_t kept_bytes = 160;  // of a frame: its headers

  // An Error: a path that cannot be written.
  static Expected<std::unique_ptr<AclLog>> open(AclLogSettings settings, std::uint32_t writers);
  ~AclLog();  // stop()
  AclLog(const AclLog&) = delete;
  AclLog& operator=(const AclLog&) = delete;

  struct Event {
    std::uint64_t tsc = 0;                              // now
    std::uint16_t in_port = 0xffff, out_port = 0xffff;  // 0xffff: not known
    packet::Reason reason = packet::no_reason;          // why it is dropped
  };
  void take(std::uint32_t writer, const std::shared_ptr<LoggedRule>& rule, const std::uint8_t* frame,
            std::uint32_t length, const Event& event);

  // Writes what is queued, and ends the thread. Again: nothing.
  void stop();
  AclLogCounters counters() const;
  // "12 lines for acl.json are lost: it could not be written"; empty: none is.
  std::string lost() const;
  const AclLogSettings& settings() const { return settings_; }

 private:
  struct Record {
    std::shared_ptr<LoggedRule> rule;
    std::uint64_t microseconds;
    std::uint32_t length;
    std::uint16_t in_port, out_port;
    packet::Reason reason;
    std::array<char, kept_bytes> bytes;
  };
  // One producer, one consumer.
  struct Ring {
    std::vector<Record> records{most_waiting};
    alignas(64) std::atomic<std::uint64_t> tail{0};
    std::atomic<std::uint64_t> full{0}, suppressed{0};
    alignas(64) std::atomic<std::uint64_t> head{0};
  };

  AclLog(AclLogSettings settings, std::uint32_t writers);
  void run();
  void pass();
  void write(const Record& record);

  const AclLogSettings settings_;
  std::unique_ptr<LineFile> file_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::vector<char> frame_;  // the thread's: a frame as long as it was
  std::atomic<std::uint64_t> written_{0};
  std::mutex stop_mutex_;
  std::condition_variable stop_signal_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sluice::function
