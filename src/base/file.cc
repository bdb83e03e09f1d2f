#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/units.h"

namespace sluice {
namespace {

constexpr std::size_t least_step = 64 << 10;
constexpr std::size_t largest_step = 64 << 20;

struct Opened {
  int fd = -1;
  std::size_t bytes = 0;  // as the file system says, which for files of /proc is nothing

  explicit Opened(int descriptor) : fd(descriptor) {}
  Opened(Opened&& other) noexcept : fd(other.fd), bytes(other.bytes) { other.fd = -1; }
  Opened& operator=(Opened&&) = delete;
  ~Opened() {
    if (fd >= 0) close(fd);
  }
};

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no regular file";
}

Expected<Opened> open_regular(const std::string& path) {
  // A pipe without a writer would be waited for.
  Opened file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat about {};
  if (file.fd < 0 || fstat(file.fd, &about) != 0) {
    // What a socket answers to open().
    return make_error(path + ": " + (errno == ENXIO ? "is no regular file: name one" : std::strerror(errno)));
  }
  if (!S_ISREG(about.st_mode)) {
    return make_error(path + ": is " + kind_of(about.st_mode) + ": name a regular file");
  }
  file.bytes = static_cast<std::size_t>(about.st_size);
  return file;
}

tl::unexpected<Error> too_large(const std::string& name, std::size_t largest) {
  return make_error(name + ": is larger than " + bytes_text(largest) + ", the most that is read");
}

// `likely`: how many bytes there seem to be.
Expected<std::string> read_all(int fd, const std::string& name, std::size_t likely, std::size_t largest) {
  std::string text;
  text.reserve(likely + 1);  // one more shows that it has not grown meanwhile
  while (text.size() <= largest) {
    const std::size_t had = text.size();
    const std::size_t capacity = std::max(least_step, text.capacity() - had);
    text.resize(had + std::min({capacity, largest_step, largest + 1 - had}));
    const ssize_t count = read(fd, text.data() + had, text.size() - had);
    if (count < 0 && errno != EINTR) {
      return make_error(name + ": cannot be read: " + std::strerror(errno));
    }
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) {
      return text;
    }
  }
  return too_large(name, largest);
}

}  // namespace

Expected<std::string> read_regular_file(const std::string& path, std::size_t largest) {
  const auto file = open_regular(path);
  if (!file) {
    return tl::unexpected(file.error());
  }
  if (file->bytes > largest) {
    return too_large(path, largest);
  }
  return read_all(file->fd, path, file->bytes, largest);
}

Expected<std::string> read_descriptor(int fd, const std::string& name, std::size_t largest) {
  return read_all(fd, name, 0, largest);
}

bool same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  struct stat of_a {};
  struct stat of_b {};
  const bool a_is_there = stat(a.c_str(), &of_a) == 0;
  const bool b_is_there = stat(b.c_str(), &of_b) == 0;
  if (a_is_there && b_is_there) {
    return S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
  }
  return a_is_there == b_is_there && same_path(a, b);
}

bool same_path(const std::string& a, const std::string& b) {
  std::error_code ec;
  // Absolute first: of what is not there, "file" would stay as it is, where "./file" does not.
  const auto place_of = [&ec](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path), ec);
  };
  const std::filesystem::path one = place_of(a);
  return !ec && one == place_of(b) && !ec;
}

Expected<void> check_regular_file(const std::string& path) {
  const auto file = open_regular(path);
  return file ? Expected<void>() : tl::unexpected(file.error());
}

}  // namespace sluice
