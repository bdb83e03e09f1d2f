#include "function/inspect/line_file.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/text_output.h"

namespace sluice::function {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::size_t much = 64U << 10;
constexpr mode_t mode = 0640;  // payloads are nobody else's business

void add(std::atomic<std::uint64_t>& counter, std::uint64_t count) {
  counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);  // one writer
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return "no regular file";
}

}  // namespace

std::uint64_t steady_now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

std::uint64_t microseconds_since_epoch() {
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() / std::chrono::microseconds(1));
}

Expected<int> LineFile::open_path(const std::string& path) {
  if (path == "-") {
    const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return make_error(std::string("standard output cannot be written: ") + std::strerror(errno));
    reserve_standard_output();
    return fd;
  }
  // A pipe without a reader would be waited for.
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
  if (fd < 0) {
    // ENXIO: what a pipe without a reader, and a socket, answer.
    const bool no_file = errno == ENXIO || errno == EISDIR;
    return make_error(path + ": " + (no_file ? "is no regular file: name one" : std::strerror(errno)) +
                      (errno == ENOENT ? ": make its folder, or name another file" : ""));
  }
  struct stat about {};
  const bool known = fstat(fd, &about) == 0;
  if (!known || !(S_ISREG(about.st_mode) || S_ISCHR(about.st_mode))) {
    close(fd);
    return make_error(path + ": is " + (known ? kind_of(about.st_mode) : "not readable") + ": name a regular file");
  }
  return fd;
}

Expected<std::unique_ptr<LineFile>> LineFile::open(const std::string& path) {
  const auto fd = open_path(path);
  if (!fd) return tl::unexpected(fd.error());
  return std::unique_ptr<LineFile>(new LineFile(path, *fd));
}

LineFile::LineFile(std::string path, int fd)
    : path_(std::move(path)),
      name_(path_ == "-" ? "standard output" : path_),
      fd_(fd),
      registered_({[this] { reopen_soon(); }, [this] { return trouble(); }}) {}

LineFile::~LineFile() {
  finish();
  close(fd_);
}

void LineFile::finish() {
  detached_ = detached_ || deleted();
  if (detached_) open_again();
  if (waiting_.empty() || (!detached_ && write_waiting())) return;
  add(write_errors_, 1);
  const auto lines = static_cast<std::uint64_t>(std::count(waiting_.begin(), waiting_.end(), '\n'));
  add(lost_lines_, lines);
  spdlog::error("{}: cannot be written: its last {} lines are lost", name_, lines);
  waiting_.clear();
}

void LineFile::append(std::string_view line) {
  if (waiting_.size() + line.size() + 1 > most_waiting) {
    add(lost_lines_, 1);
    return;
  }
  waiting_ += line;
  waiting_ += '\n';
  if (waiting_.size() >= much && !failing_ && !detached_ && !deleted() && !write_waiting()) {
    failed(std::string("cannot be written: ") + std::strerror(errno));
  }
}

bool LineFile::write_waiting() {
  std::size_t written = 0;
  while (written < waiting_.size()) {
    const ssize_t count = ::write(fd_, waiting_.data() + written, waiting_.size() - written);
    if (count > 0) {
      written += static_cast<std::size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      break;
    }
  }
  if (written != 0) within_line_ = waiting_[written - 1] != '\n';
  const bool all = written == waiting_.size();
  const int why = errno;
  waiting_.erase(0, written);
  errno = why;
  return all;
}

std::string LineFile::trouble() const {
  const std::lock_guard lock(trouble_mutex_);
  return trouble_;
}

void LineFile::failed(std::string_view what) {
  add(write_errors_, 1);
  {
    const std::lock_guard lock(trouble_mutex_);
    trouble_ = name_ + " " + std::string(what);
  }
  if (!std::exchange(failing_, true)) {
    spdlog::error(
        "{}: {}. It is tried again every second; meanwhile lines wait, up to {} MiB of them, then they are lost "
        "(lost_lines): free some space, or give the path back",
        name_, what, most_waiting >> 20);
  }
}

bool LineFile::deleted() const {
  struct stat about {};
  return fstat(fd_, &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink == 0;
}

void LineFile::open_again() {
  const auto fd = open_path(path_);
  if (!fd) {
    failed("cannot be opened anew (" + fd.error().message + ")");
    return;
  }
  if (within_line_) {  // its beginning is in the other file
    waiting_.erase(0, waiting_.find('\n') + 1);
    add(lost_lines_, 1);
    within_line_ = false;
  }
  close(fd_);
  fd_ = *fd;
  detached_ = false;
  reopen_.store(false, std::memory_order_relaxed);
}

void LineFile::flush(std::uint64_t now) {
  if (failing_ && now < next_try_) return;
  if (!waiting_.empty()) detached_ = detached_ || deleted();
  const std::uint64_t errors = write_errors_.load(std::memory_order_relaxed);
  const bool reopen = reopen_.load(std::memory_order_relaxed) && path_ != "-";
  if (reopen && !detached_) write_waiting();  // what waits was for the file that is open
  if (reopen || detached_) open_again();
  if (!detached_ && !waiting_.empty() && !write_waiting())
    failed(std::string("cannot be written: ") + std::strerror(errno));
  if (write_errors_.load(std::memory_order_relaxed) != errors) {
    next_try_ = now + second;
  } else if (std::exchange(failing_, false)) {
    {
      const std::lock_guard lock(trouble_mutex_);
      trouble_.clear();
    }
    spdlog::info("{}: is written again; {} lines have been lost since the start", name_, counters().lost_lines);
  }
}

}  // namespace sluice::function
