#include "control/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice::control {
namespace {

constexpr mode_t mode = 0644;

}  // namespace

Expected<int> LogFile::open_path(const std::string& path) {
  // A pipe without a reader would be waited for.
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
  if (fd < 0) return make_error(std::strerror(errno));
  return fd;
}

Expected<std::shared_ptr<LogFile>> LogFile::open(const std::string& path) {
  const auto fd = open_path(path);
  if (!fd) return tl::unexpected(fd.error());
  return std::shared_ptr<LogFile>(new LogFile(path, *fd));
}

LogFile::LogFile(std::string path, int fd)
    : path_(std::move(path)), fd_(fd), registered_({[this] { reopen(); }, [this] { return trouble(); }}) {}

LogFile::~LogFile() {
  close(fd_);
}

// Tried again first: the next line may be hours away.
std::string LogFile::trouble() {
  const std::lock_guard lock(mutex_);
  if (reopen_failed_) reopen_locked();
  if (lost_ != 0) report_lost();
  return trouble_;
}

void LogFile::reopen() {
  const std::lock_guard lock(mutex_);
  reopen_locked();
}

void LogFile::reopen_locked() {
  const auto fd = open_path(path_);
  if (!fd) {
    trouble_ = path_ + " cannot be opened anew: " + fd.error().message;
    if (!std::exchange(reopen_failed_, true)) {
      report(spdlog::level::err, "log: " + trouble_ + "; it goes on in this file until it can");
    }
    return;
  }
  close(std::exchange(fd_, *fd));
  torn_ = reopen_failed_ = false;
  if (lost_ == 0) trouble_.clear();
}

bool LogFile::write(std::string_view line) {
  std::string text = torn_ ? "\n" : "";
  text += line;
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(fd_, text.data() + written, text.size() - written);
    if (count > 0) {
      written += static_cast<std::size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      break;
    }
  }
  if (written != 0) torn_ = text[written - 1] != '\n';
  return written == text.size();
}

// Of the log itself, in the format of its other lines.
bool LogFile::report(spdlog::level::level_enum level, const std::string& text) {
  spdlog::memory_buf_t line;
  formatter_->format(spdlog::details::log_msg("sluice", level, text), line);
  return write({line.data(), line.size()});
}

void LogFile::report_lost() {
  if (!report(spdlog::level::warn, "log: " + std::to_string(lost_) + (lost_ == 1 ? " line" : " lines") +
                                       " before this one could not be written")) {
    return;
  }
  lost_ = 0;
  if (!reopen_failed_) trouble_.clear();
}

void LogFile::sink_it_(const spdlog::details::log_msg& message) {
  struct stat about {};
  const bool deleted = fstat(fd_, &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink == 0;
  if (deleted || reopen_failed_) reopen_locked();
  if (lost_ != 0) report_lost();
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  if (!write({line.data(), line.size()})) {
    ++lost_;
    trouble_ = path_ + " cannot be written: " + std::strerror(errno);
  }
}

}  // namespace sluice::control
