// A plug-in whose element submits a job for each frame: of a kind of its own, which counts the frame's zeros. An
// answer that is wrong ends the program.
#include <sluice/engine/jobs.h>
#include <sluice/engine/traits.h>
#include <sluice/plugin.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace {

namespace engine = sluice::engine;
using sluice::Expected;

struct Job {
  std::uint8_t bytes[60];
  std::uint32_t zeros;
};

std::uint32_t zeros_of(const std::uint8_t* bytes) {
  return static_cast<std::uint32_t>(std::count(bytes, bytes + sizeof(Job::bytes), 0));
}

class CountingKind final : public engine::JobKind {
 public:
  Shape shape() const override { return {.bytes = sizeof(Job)}; }
  void compute(engine::JobBatch jobs) override {
    for (std::byte* const job : jobs) {
      Job& one = *reinterpret_cast<Job*>(job);
      one.zeros = zeros_of(one.bytes);
    }
  }
};

class Counting final : public engine::Element, public engine::JobUser {
 public:
  ~Counting() override { poll(); }
  void* find_trait(std::string_view name) override { return engine::offer<engine::JobUser>(name, this); }
  std::vector<engine::JobKindType> job_kinds() const override {
    return {{.name = "counting", .text = "counts zeros", .make = []() -> Expected<std::unique_ptr<engine::JobKind>> {
               return std::make_unique<CountingKind>();
             }}};
  }
  Expected<void> use_queues(std::span<engine::JobQueue* const> queues) override {
    client_ = queues[0]->open(256);
    return {};
  }
  void classify(engine::Batch& batch, engine::Span span) override {
    poll();
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      const auto* const frame = reinterpret_cast<const std::uint8_t*>(batch.frame[i]);
      client_->submit(zeros_of(frame), ~std::uint64_t{0},
                      [&](std::byte* job) { std::memcpy(job, frame, sizeof(Job::bytes)); });
    }
  }
  void apply(engine::Batch&, engine::Span, engine::Emitter&) override {}

 private:
  void poll() {
    if (client_ == nullptr) return;
    client_->poll([](const engine::JobAnswer& answer) {
      if (answer.done() && reinterpret_cast<const Job*>(answer.job.data())->zeros != answer.tag) std::abort();
    });
  }
  engine::JobClientHandle client_;
};

}  // namespace

SLUICE_PLUGIN("counting", "1.0", [] {
  const auto make = [](sluice::Settings&, const engine::PortTable&) -> Expected<std::unique_ptr<engine::Element>> {
    return std::make_unique<Counting>();
  };
  return std::vector<engine::ElementType>{{.name = "counting", .text = "counts zeros by jobs", .make = make}};
})
