#include "engine/compute_helpers.h"

#include <rte_cycles.h>
#include <rte_pause.h>
#include <sys/prctl.h>

#include <chrono>
#include <utility>

#include "engine/placement.h"

namespace sluice::engine {
namespace {
constexpr unsigned spins = 4096;  // idle rounds before a sleep
constexpr auto longest_wait = std::chrono::milliseconds(100);
// A span that took so many times what its jobs cost lately was not computed all the time.
constexpr std::uint64_t beyond_doubt = 8;
}  // namespace

ComputeHelpers::ComputeHelpers(const std::vector<int>& cores, bool busy, Scheduling scheduling)
    : busy_(busy), scheduling_(scheduling) {
  for (const int core : cores) {
    helpers_.push_back(std::make_unique<ComputeHelper>(*this, static_cast<std::uint32_t>(helpers_.size() + 1), core));
  }
}

ComputeShare* ComputeHelpers::add_share() {
  return shares_.emplace_back(std::make_unique<ComputeShare>(*this)).get();
}

void ComputeHelpers::start() {
  for (const auto& helper : helpers_) helper->start();
}

void ComputeHelpers::stop() {
  for (const auto& helper : helpers_) helper->stop();
}

[[gnu::noinline]] void ComputeHelpers::ring_one() {
  for (const auto& helper : helpers_) {
    if (!helper->sleeps()) continue;
    helper->wake();
    return;
  }
}

void ComputeHelper::start() {
  stopping_.store(false);
  running_ = std::thread([this] { run(); });
}

void ComputeHelper::stop() {
  stopping_.store(true);
  if (!running_.joinable()) return;
  bell_.ring();
  running_.join();
}

bool ComputeHelper::help(ComputeShare& share) {
  const std::uint64_t began = rte_rdtsc();
  Span some;
  if (!share.take(some)) return false;
  stalls_.resume(began);
  share.compute(some, thread_);
  share.finish();
  const std::uint64_t now = rte_rdtsc();
  const std::uint64_t took = now - began;
  const std::uint64_t usual = cost_.get() * some.count / FrameCost::scale;
  stalls_.look(now, usual == 0 || took <= beyond_doubt * usual);
  cost_.took(took, some.count);
  spans_.add(1);
  jobs_.add(some.count);
  busy_.add(took);
  return true;
}

// Helpers begin at different shares, so that of several forks each has one of them at once.
bool ComputeHelper::round() {
  bool any = false;
  const std::size_t count = all_.shares_.size();
  for (std::size_t n = 0; n < count; ++n) {
    ComputeShare& share = *all_.shares_[(first_ + n) % count];
    while (help(share)) any = true;
  }
  return any;
}

void ComputeHelper::run() {
  pin_this_thread(core_, "sluice-compute");
  schedule_this_thread(all_.scheduling_);
  prctl(PR_SET_TIMERSLACK, 1000UL);
  first_ = all_.shares_.empty() ? 0 : thread_ % all_.shares_.size();
  unsigned idle = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (round()) {
      idle = 0;
    } else if (all_.busy_ || ++idle < spins) {
      rte_pause();
    } else {
      sleep();
      idle = 0;
    }
  }
}

void ComputeHelper::sleep() {
  bell_.arm();
  sleeps_.store(true, std::memory_order_relaxed);
  all_.asleep_.fetch_add(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (round() || stopping_.load(std::memory_order_relaxed)) {
    bell_.disarm();
  } else {
    pollfd scratch{};
    bell_.wait({&scratch, 1}, longest_wait);
  }
  sleeps_.store(false, std::memory_order_relaxed);
  all_.asleep_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace sluice::engine
