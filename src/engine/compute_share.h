// A thread of lanes shares the jobs of its batches with helpers on other cores (traits.h, Divisible): fork and join.
//
//   the lane's thread:  run()   cuts the jobs into spans, publishes them, does spans itself, waits for the last one
//   a helper:           take(), compute(), finish()   of a span that nobody has taken yet
//
// A span is taken by a step of a cursor. The cursor has the number of the fork, so that a helper that comes late takes
// none of the next fork's by mistake. The thread goes on when all spans are finished: nothing that follows sees whether
// a batch was shared. A helper that the machine does not run while it has a span delays the batch.
//
// Thread-safety: run() one thread; take(), compute() and finish() any. Cost: a fork and its join take 0.1 us, and 1 to
// 2 where a helper that sleeps is waked (compute_share_bench.cc).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/batch.h"
#include "engine/traits.h"

namespace sluice::engine {

class ComputeHelpers;

// A span has at least so many jobs: as many as intel-ipsec-mb works on at once (crypto/cpu.h). Fewer cost it the same
// time.
inline constexpr std::uint32_t least_span = 16;
// Of larger ones the last to be finished would keep the others waiting.
inline constexpr std::uint32_t most_span = 64;
// A batch with fewer jobs is not shared: it would be one span. With so many of 50 ns each it takes 0.9 us instead
// of 1.6 (AMD EPYC, two cores).
inline constexpr std::uint32_t least_shared = 2 * least_span;

// Two spans for each thread, so that one which is slower, or comes late, keeps the others waiting for half of its
// share.
constexpr std::uint32_t span_size(std::uint32_t jobs, std::uint32_t threads) {
  const std::uint32_t even = (jobs + 2 * threads - 1) / (2 * threads);
  return std::clamp((even + least_span - 1) / least_span * least_span, least_span, most_span);
}

class ComputeShare {
 public:
  explicit ComputeShare(ComputeHelpers& helpers) : helpers_(helpers) {}

  // Does jobs [0, jobs) of the batch, at least `least_shared`. Returns how much longer they would have taken this
  // thread alone, in ticks, by what it has done itself.
  std::uint64_t run(Divisible& element, Batch& batch, std::uint32_t jobs);

  // Of `some`, which nobody else has. False: there is none.
  bool take(Span& some);
  void compute(Span some, std::uint32_t thread) { element_->compute_jobs(*batch_, some, thread); }
  void finish() { left_.fetch_sub(1, std::memory_order_release); }

 private:
  static constexpr unsigned next_shift = 16, fork_shift = 32;
  static constexpr std::uint64_t field = 0xffff;
  bool take(std::uint32_t& span);
  Span jobs_of(std::uint32_t span) const { return {span * size_, std::min(size_, jobs_ - span * size_)}; }

  // Fork's number, the next span and how many there are.
  alignas(64) std::atomic<std::uint64_t> cursor_{0};
  // Written before the cursor is; read by who has a span.
  Divisible* element_ = nullptr;
  Batch* batch_ = nullptr;
  std::uint32_t jobs_ = 0, size_ = 0;
  alignas(64) std::atomic<std::uint32_t> left_{0};  // spans that are not finished
  alignas(64) ComputeHelpers& helpers_;
  std::uint32_t forks_ = 0;
};

}  // namespace sluice::engine
