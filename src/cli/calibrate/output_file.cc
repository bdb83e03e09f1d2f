#include "cli/calibrate/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

namespace sluice::cli {
namespace {

constexpr mode_t usual_mode = 0666;  // less the umask

char half_written[PATH_MAX];  // "": there is none

// No other's file is taken for it. -1: errno says why.
int make_new(const std::string& path) {
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, usual_mode);
  if (fd < 0 || path.empty() || path.size() >= sizeof half_written) return fd;
  // A signal must not find the beginning of the name, which is another file's.
  std::strcpy(half_written + 1, path.c_str() + 1);
  std::atomic_signal_fence(std::memory_order_release);
  half_written[0] = path[0];
  return fd;
}

Error cannot_write(const std::string& name, const std::string& path) {
  if (errno == EEXIST) return {name + ": " + path + ".new is in the way: remove it"};
  return {name + ": cannot be written: " + std::strerror(errno)};
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

void remove_half_written() {
  if (half_written[0] != '\0') unlink(half_written);
  half_written[0] = '\0';
}

Expected<void> check_output(const std::string& name, const std::string& path, const Replaceable& replaceable) {
  std::error_code ignored;
  const auto there = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(there)) return make_error(name + ": is a directory");
  if (std::filesystem::exists(there)) {
    if (!std::filesystem::is_regular_file(there)) return make_error(name + ": is no regular file");
    if (!std::filesystem::is_empty(path, ignored) && !replaceable.is_it(path)) {
      return make_error(name + ": there is a file that is no " + replaceable.what + ": name another one, or remove it");
    }
    if (access(path.c_str(), W_OK) != 0) return tl::unexpected(cannot_write(name, path));
  }
  const int fd = make_new(path + ".new");
  if (fd < 0) return tl::unexpected(cannot_write(name, path));
  close(fd);
  remove_half_written();
  return {};
}

Expected<void> write_output(const std::string& path, const std::string& text) {
  const int fd = make_new(path + ".new");
  if (fd < 0) return tl::unexpected(cannot_write(path, path));
  const bool written = write_all(fd, text);
  const bool done = close(fd) == 0 && written && std::rename((path + ".new").c_str(), path.c_str()) == 0;
  if (!done) {
    const Error why = cannot_write(path, path);
    remove_half_written();
    return tl::unexpected(why);
  }
  half_written[0] = '\0';
  return {};
}

}  // namespace sluice::cli
