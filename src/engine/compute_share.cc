#include "engine/compute_share.h"

#include <rte_cycles.h>
#include <rte_pause.h>

#include "engine/compute_helpers.h"
#include "engine/options.h"

namespace sluice::engine {

static_assert((batch_range.most + least_span - 1) / least_span <= 0xffff);

bool ComputeShare::take(std::uint32_t& span) {
  std::uint64_t at = cursor_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t next = at >> next_shift & field;
    if (next >= (at & field)) return false;
    if (cursor_.compare_exchange_weak(at, at + (std::uint64_t{1} << next_shift), std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
      span = static_cast<std::uint32_t>(next);
      return true;
    }
  }
}

bool ComputeShare::take(Span& some) {
  std::uint32_t span = 0;
  if (!take(span)) return false;
  some = jobs_of(span);
  return true;
}

std::uint64_t ComputeShare::run(Divisible& element, Batch& batch, std::uint32_t jobs) {
  const std::uint64_t began = rte_rdtsc();
  element_ = &element;
  batch_ = &batch;
  jobs_ = jobs;
  size_ = span_size(jobs, helpers_.count() + 1);
  const std::uint32_t spans = (jobs + size_ - 1) / size_;
  left_.store(spans, std::memory_order_relaxed);
  // The first span is this thread's: it always knows what a job costs.
  cursor_.store(std::uint64_t{++forks_} << fork_shift | std::uint64_t{1} << next_shift | spans,
                std::memory_order_release);
  helpers_.wake_one();
  const std::uint64_t forked = rte_rdtsc();
  std::uint32_t own_jobs = 0, own_spans = 0, span = 0;
  do {
    const Span some = jobs_of(span);
    compute(some, 0);
    own_jobs += some.count;
    ++own_spans;
  } while (take(span));
  const std::uint64_t own = rte_rdtsc() - forked;
  left_.fetch_sub(own_spans, std::memory_order_relaxed);
  while (left_.load(std::memory_order_acquire) != 0) rte_pause();
  const std::uint64_t took = rte_rdtsc() - began;
  const std::uint64_t alone = own * jobs / own_jobs;
  return alone > took ? alone - took : 0;
}

}  // namespace sluice::engine
