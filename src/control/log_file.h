// The file of [log] file, as a sink of spdlog: appended to, and begun anew where it was deleted or is to be reopened
// (rotation). A full disk is survived: lines that cannot be written are lost, counted, and reported in the file once it
// can be written again.
//
// Thread-safety: any thread; a line is written whole, under a lock. Cost: two system calls a line.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/appended_file.h"
#include "base/error.h"

namespace sluice::control {

class LogFile final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  static Expected<std::shared_ptr<LogFile>> open(const std::string& path);
  ~LogFile() override;

  // At its path, at once; where that cannot be opened the log goes on in the old file, which says so.
  void reopen();
  // "PATH cannot be written: No space left on device", now; empty: none.
  std::string trouble();

 private:
  LogFile(std::string path, int fd);
  static Expected<int> open_path(const std::string& path);
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  void reopen_locked();
  bool report(spdlog::level::level_enum level, const std::string& text);
  void report_lost();
  // Whether all of it was written; errno says why not.
  bool write(std::string_view line);

  const std::string path_;
  int fd_;
  bool torn_ = false;           // the file ends within a line
  bool reopen_failed_ = false;  // it is tried again
  std::uint64_t lost_ = 0;
  std::string trouble_;
  AppendedFile registered_;  // the last: its hooks use all of the above
};

}  // namespace sluice::control
