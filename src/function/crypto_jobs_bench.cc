// Jobs of the kind "crypto": how many a second, and how long one takes from submit() to its answer, where so many are
// submitted at once. On cores, and on a GPU (or the shim) if there is one; both sides' answers are compared first. A
// thread does on its own what the worker and the cores' thread do in an engine.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "device/gpu.h"
#include "engine/job_service.h"
#include "function/crypto_jobs.h"

namespace sluice::function {
namespace {

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

class User final : public engine::Element, public engine::JobUser {
 public:
  void apply(engine::Batch&, engine::Span, engine::Emitter&) override {}
  void* find_trait(std::string_view name) override { return engine::offer<engine::JobUser>(name, this); }
  std::vector<engine::JobKindType> job_kinds() const override {
    return {*engine::find_job_kind(CryptoJobs::kind_name)};
  }
  Expected<void> use_queues(std::span<engine::JobQueue* const>) override { return {}; }
};

class Bed {
 public:
  explicit Bed(bool on_gpu) : text_(1024, 7), clear_(5, 3), nonce_(10, 1) {
    if (on_gpu) {
      if (auto gpu = device::Gpu::open(0, 2)) gpus_.push_back(std::move(*gpu));
      if (gpus_.empty()) return;
    }
    std::vector<std::unique_ptr<engine::Element>> elements;
    elements.push_back(std::make_unique<User>());
    pipeline_ = std::make_unique<engine::Pipeline>(std::move(elements));
    // A slice that leaves the GPU to jobs alone.
    const engine::Timing timing{.cycle = std::chrono::nanoseconds(1),
                                .bound = {},
                                .deadline = {},
                                .overlap = 1,
                                .jobs = std::chrono::seconds(1)};
    service_ = engine::JobService::create(*pipeline_, {.gpus = gpus_,
                                                       .memory = [this](std::size_t bytes) { return memory(bytes); },
                                                       .worker_bells = {},
                                                       .timing = timing,
                                                       .clock = {.now = now_ns, .hz = 1'000'000'000}})
                   .value();
    queue_ = service_->find(CryptoJobs::kind_name);
    client_ = queue_->open(256);
    for (std::size_t g = 0; g < gpus_.size(); ++g) service_->device(g).join();
    queue_->start();
    const std::vector<std::uint8_t> secret(16, 9);
    key_ = CryptoJobs::of(*queue_)
               .keys()
               .install({crypto::Cipher::aes_gcm, crypto::Hash::none, secret, std::span(secret).first(12), {}, 16})
               .value();
  }
  ~Bed() {
    client_.reset();
    service_.reset();
    pipeline_.reset();
    for (void* base : heap_) std::free(base);
  }
  Bed(const Bed&) = delete;
  bool is_there() const { return service_ != nullptr; }

  // Seals `count` and waits for them; the answers, one behind the other, and the longest time of one.
  std::uint64_t seal(std::uint32_t count, std::vector<std::uint8_t>* answers = nullptr) {
    CryptoJobs& crypto = CryptoJobs::of(*queue_);
    for (std::uint32_t i = 0; i < count; ++i) {
      nonce_[0] = static_cast<std::uint8_t>(i);
      const CryptoJobs::Request request{.key = key_, .nonce = nonce_, .clear = clear_, .text = text_};
      const auto refusal = client_->submit(i, ~std::uint64_t{0}, [&](std::byte* job) { crypto.write(request, job); });
      if (refusal != engine::JobRefusal::none) std::abort();
    }
    if (answers != nullptr) answers->resize(count * (text_.size() + 16));
    std::uint64_t longest = 0;
    while (client_->under_way() != 0) {
      if (gpus_.empty()) service_->cores().round();
      for (std::size_t g = 0; g < gpus_.size(); ++g) {
        if (!service_->device(g).work(false)) std::abort();
      }
      client_->poll([&](const engine::JobAnswer& answer) {
        longest = std::max(longest, answer.ticks);
        const CryptoJobs::Result result = CryptoJobs::result(answer.job);
        if (!answer.done() || result.verdict != crypto::Verdict::done) std::abort();
        if (answers == nullptr) return;
        std::uint8_t* const to = answers->data() + answer.tag * (text_.size() + 16);
        std::ranges::copy(result.tag, std::ranges::copy(result.text, to).out);
      });
    }
    return longest;
  }

 private:
  Expected<void*> memory(std::size_t bytes) {
    if (!gpus_.empty()) return gpus_.front()->allocate_host(bytes);
    heap_.push_back(std::aligned_alloc(64, bytes));
    std::memset(heap_.back(), 0, bytes);
    return heap_.back();
  }

  std::vector<std::uint8_t> text_, clear_, nonce_;
  std::vector<std::unique_ptr<device::Gpu>> gpus_;
  std::vector<void*> heap_;
  std::unique_ptr<engine::Pipeline> pipeline_;
  std::unique_ptr<engine::JobService> service_;
  engine::JobQueue* queue_ = nullptr;
  engine::JobClientHandle client_;
  std::uint32_t key_ = 0;
};

void crypto_jobs(benchmark::State& state, bool on_gpu) {
  Bed bed(on_gpu), cores(false);
  if (!bed.is_there()) {
    state.SkipWithError("no GPU");
    return;
  }
  const auto count = static_cast<std::uint32_t>(state.range(0));
  std::vector<std::uint8_t> answers, right;
  for (int i = 0; i < 20; ++i) bed.seal(count, &answers);  // and the pace learns
  cores.seal(count, &right);
  if (answers != right) {
    state.SkipWithError("the answers of the two sides differ");
    return;
  }
  std::vector<std::uint64_t> longest;
  while (state.KeepRunning()) longest.push_back(bed.seal(count));
  state.SetItemsProcessed(state.iterations() * count);
  const auto us = [&](double part) {
    const auto at = longest.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(longest.size() - 1));
    std::ranges::nth_element(longest, at);
    return static_cast<double>(*at) / 1e3;
  };
  state.counters["p50_us"] = us(0.5);
  state.counters["p99_us"] = us(0.99);
}
BENCHMARK_CAPTURE(crypto_jobs, cores, false)->Arg(1)->Arg(16)->Arg(256)->UseRealTime();
BENCHMARK_CAPTURE(crypto_jobs, gpu, true)->Arg(1)->Arg(16)->Arg(256)->UseRealTime();

}  // namespace
}  // namespace sluice::function
