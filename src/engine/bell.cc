#include "engine/bell.h"

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace sluice::engine {

Bell::Bell() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Bell::~Bell() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void Bell::wake() {
  if (armed_.exchange(false)) {
    const std::uint64_t one = 1;
    // Without a file descriptor the sleeper still looks again after its time-out.
    [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
  }
}

void Bell::wait(std::span<pollfd> others_and_one, std::chrono::nanoseconds timeout) {
  others_and_one.back() = {fd_, POLLIN, 0};
  const timespec time{timeout.count() / 1'000'000'000, timeout.count() % 1'000'000'000};
  ppoll(others_and_one.data(), others_and_one.size(), &time, nullptr);
  clear();
}

void Bell::clear() {
  disarm();
  std::uint64_t rings = 0;
  [[maybe_unused]] const ssize_t got = read(fd_, &rings, sizeof rings);
}

}  // namespace sluice::engine
