#include "cli/calibrate/timed_pipeline.h"

#include <rte_cycles.h>

#include "engine/emitter.h"
#include "engine/stall.h"

namespace sluice::cli {

struct TimedPipeline::Shared {
  struct alignas(64) Lane {
    std::uint64_t begin = 0;  // of the batch
    std::uint64_t round = 0;  // of the burst
    engine::Histogram rounds;
    // The forwarder's.
    alignas(64) std::uint64_t forwarding = 0;
    engine::Histogram times, bytes, forwardings;
  };
  explicit Shared(std::unique_ptr<engine::Traffic> brought) : traffic(std::move(brought)) {}

  const std::unique_ptr<engine::Traffic> traffic;
  std::vector<std::unique_ptr<Lane>> lanes;
  const std::uint64_t longest_round = rte_get_tsc_hz() * engine::stall_gap_us / 1'000'000;
};

namespace {

using Shared = TimedPipeline::Shared;

// In front: traffic comes in before any other element looks at the frames.
class Front final : public engine::Element, public engine::Ingress {
 public:
  explicit Front(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  void* find_trait(std::string_view name) override { return engine::offer<engine::Ingress>(name, this); }
  Expected<void> prepare(const engine::Plan& plan) override {
    while (shared_->lanes.size() < plan.lanes) shared_->lanes.push_back(std::make_unique<Shared::Lane>());
    return {};
  }
  void admit(engine::Batch& batch, engine::Span span) override {
    Shared::Lane& lane = *shared_->lanes[batch.lane];
    const std::uint64_t before = rte_rdtsc();
    if (shared_->traffic != nullptr) {
      for (std::uint32_t i = span.first; i < span.end(); ++i) {
        shared_->traffic->write(batch.lane, batch.mbuf[i]);
        batch.length[i] = rte_pktmbuf_data_len(batch.mbuf[i]);
      }
    }
    lane.round = rte_rdtsc();
    lane.begin = span.first == 0 ? lane.round : lane.begin + (lane.round - before);
  }
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& /*out*/) override {
    if (span.first == 0) shared_->lanes[batch.lane]->forwarding = rte_rdtsc();
  }
  Expected<Change> reload(Element& /*fresh*/) override { return Change{}; }

 private:
  std::shared_ptr<Shared> shared_;
};

class Back final : public engine::Element {
 public:
  explicit Back(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  void classify(engine::Batch& batch, engine::Span /*span*/) override {
    Shared::Lane& lane = *shared_->lanes[batch.lane];
    if (const std::uint64_t took = rte_rdtsc() - lane.round; took <= shared_->longest_round) lane.rounds.add(took, 1);
  }
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& /*out*/) override {
    if (span.end() != batch.count) return;
    Shared::Lane& lane = *shared_->lanes[batch.lane];
    const std::uint64_t now = rte_rdtsc();
    lane.forwardings.add(now - lane.forwarding, 1);
    lane.times.add(now - lane.begin, 1);
    lane.bytes.add(batch.bytes, 1);
  }
  Expected<Change> reload(Element& /*fresh*/) override { return Change{}; }

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace

TimedPipeline::TimedPipeline(std::unique_ptr<engine::Pipeline> inner, std::unique_ptr<engine::Traffic> traffic)
    : shared_(std::make_shared<Shared>(std::move(traffic))) {
  std::vector<std::unique_ptr<engine::Element>> elements;
  elements.push_back(std::make_unique<Front>(shared_));
  for (auto& element : inner->take_elements()) elements.push_back(std::move(element));
  elements.push_back(std::make_unique<Back>(shared_));
  around_ = std::make_unique<engine::Pipeline>(std::move(elements));
}

TimedPipeline::~TimedPipeline() = default;

const engine::Traffic* TimedPipeline::traffic() const {
  return shared_->traffic.get();
}

TimedPipeline::Batches TimedPipeline::batches() const {
  Batches all;
  for (const auto& lane : shared_->lanes) {
    all.times.add(lane->times);
    all.bytes.add(lane->bytes);
    all.rounds.add(lane->rounds);
    all.forwardings.add(lane->forwardings);
  }
  return all;
}

}  // namespace sluice::cli
