#include "bench/progress.h"

#include <atomic>
#include <cstdio>

namespace sluice::cli::bench {
namespace {
std::atomic<bool> one_speaks{false};
}  // namespace

Progress::Progress(std::string what, double seconds, Pace pace)
    : what_(std::move(what)), speaks_(!one_speaks.exchange(true)) {
  if (speaks_) {
    thread_ = std::thread([this, seconds, pace] { speak(seconds, pace); });
  }
}

Progress::~Progress() {
  if (!speaks_) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
  one_speaks = false;
}

void Progress::speak(double seconds, Pace pace) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  auto next = begin + pace.first;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_until(lock, next, [this] { return done_; })) {
    const std::chrono::duration<double> spent = Clock::now() - begin;
    if (seconds > 0) {
      std::fprintf(stderr, "bench: %s: %.0f of %.0f s\n", what_.c_str(), spent.count(), seconds);
    } else {
      std::fprintf(stderr, "bench: %s: %.0f s\n", what_.c_str(), spent.count());
    }
    next += pace.then;
  }
}

}  // namespace sluice::cli::bench
