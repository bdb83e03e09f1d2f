// A file that lines are appended to, for as long as the program runs: rotation, a full disk and a folder that vanishes
// are survived, and said.
//
// Lines are kept in memory until flush() writes them. What cannot be written is kept, tried again every second, and
// when `most_waiting` bytes wait, further lines are lost, and counted. A line is never torn: what a full disk cut off
// follows when there is space again. The first failure is logged, then nothing until it works again.
//
// Thread-safety: none, but for reopen_soon(), trouble() and counters(). Nothing here is for a lane: writing may wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/appended_file.h"
#include "base/error.h"

namespace sluice::function {

// The clock of flush(): nanoseconds, never back. And the time that lines have, by the vDSO.
std::uint64_t steady_now();
std::uint64_t microseconds_since_epoch();

class LineFile {
 public:
  static constexpr std::size_t most_waiting = 4U << 20;

  struct Counters {
    std::uint64_t write_errors = 0;  // attempts that failed: of open() and of write()
    std::uint64_t lost_lines = 0;
  };

  // Appends to what is there; made with mode 0640 if it is not. "-": standard output, which is reserved
  // for it (base/text_output.h). An Error names the path and what to do; it is one for a folder, a pipe and a socket,
  // too, none of which is waited for.
  static Expected<std::unique_ptr<LineFile>> open(const std::string& path);
  ~LineFile();  // finish()
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Of one line, without its newline. Writes when much waits.
  void append(std::string_view line);
  // Writes what waits, unless the last try failed less than a second ago. `now`: nanoseconds of a clock that never goes
  // back. A file that has been deleted is made again first.
  void flush(std::uint64_t now);
  // Tries a last time to write what waits; what cannot be is lost, counted and logged.
  void finish();
  // The next flush() writes what waits to the file that is open, and opens the path anew. When that fails, it goes on
  // with the old one, and tries again every second. Any thread.
  void reopen_soon() { reopen_.store(true, std::memory_order_relaxed); }

  Counters counters() const {
    return {write_errors_.load(std::memory_order_relaxed), lost_lines_.load(std::memory_order_relaxed)};
  }
  // What cannot be written now, and why; empty: nothing. Any thread.
  std::string trouble() const;
  // For messages: the path, or "standard output".
  const std::string& name() const { return name_; }

 private:
  LineFile(std::string path, int fd);
  static Expected<int> open_path(const std::string& path);
  bool write_waiting();
  void open_again();
  bool deleted() const;
  void failed(std::string_view what);

  const std::string path_;
  const std::string name_;
  int fd_;
  std::string waiting_;
  bool within_line_ = false;  // the file ends within the line that `waiting_` begins with
  bool detached_ = false;     // the file that is open has no name any more
  bool failing_ = false;
  std::uint64_t next_try_ = 0;
  std::atomic<bool> reopen_{false};
  std::atomic<std::uint64_t> write_errors_{0};
  std::atomic<std::uint64_t> lost_lines_{0};
  mutable std::mutex trouble_mutex_;
  std::string trouble_;
  AppendedFile registered_;  // the last: its hooks use what is above
};

}  // namespace sluice::function
