#include "function/chain/chain.h"

#include <rte_cycles.h>

#include <algorithm>
#include <array>

#include "engine/batch_writer.h"
#include "engine/burst.h"
#include "engine/emitter.h"
#include "function/capsule/capsule.h"

namespace sluice::function {
namespace {

// An area begins at a multiple of `alignment`, whatever lies before it: one byte a frame is as much in the smallest
// batch that there is.
constexpr std::uint32_t slack_per_frame = 1;

// Puts the stages between the last function and the kernel, which would forward what it is handed.
class TransitGuard final : public engine::Burst::Guard {
 public:
  TransitGuard(const std::vector<std::unique_ptr<engine::Stage>>& stages, std::uint32_t lane)
      : stages_(stages), lane_(lane) {}
  packet::Reason judge(std::uint8_t* frame, std::uint32_t length) override {
    const std::uint64_t now = rte_rdtsc();
    asked_ = true;
    packet::Reason reason = packet::no_reason;
    for (std::size_t s = 0; s < stages_.size() && reason == packet::no_reason; ++s) {
      reason = stages_[s]->judge_transit(lane_, frame, length, now);
    }
    return reason;
  }
  // The burst has been looked at.
  void end() {
    if (!asked_) return;
    for (const auto& stage : stages_) stage->judged_transit(lane_);
  }

 private:
  const std::vector<std::unique_ptr<engine::Stage>>& stages_;
  std::uint32_t lane_;
  bool asked_ = false;
};

}  // namespace

Chain::Chain(std::vector<std::unique_ptr<engine::Stage>> stages, std::unique_ptr<engine::Function> last, bool fused)
    : stages_(std::move(stages)), last_(std::move(last)), fused_(fused) {
  const bool is_alone = std::ranges::any_of(stages_, [](const auto& stage) { return stage->launches_alone(); });
  fused_ = fused && !is_alone;
  together_ = fused_              ? engine::Together::of_any_lane
              : fused && is_alone ? engine::Together::of_one_lane
                                  : engine::Together::no;
  std::uint32_t bytes = last_->layout().extra_bytes_per_frame;
  for (const auto& stage : stages_) {
    stage->stands_before(*last_);
    bytes_before_.push_back(bytes);
    bytes += slack_per_frame + stage->bytes_per_frame();
    if (engine::Tables* const tables = stage->tables()) tables_.parts.push_back(tables);
  }
  if (engine::Tables* const tables = last_->tables()) tables_.parts.push_back(tables);
}

Chain::~Chain() = default;

engine::BatchLayout Chain::layout() const {
  const std::uint32_t before = bytes_before_.empty() ? last_->layout().extra_bytes_per_frame : bytes_before_.back();
  return {stages_.empty() ? before : before + slack_per_frame + stages_.back()->bytes_per_frame()};
}

std::byte* Chain::area(const engine::Batch& batch, std::size_t stage) const {
  const std::size_t before = std::size_t{bytes_before_[stage]} * batch.capacity;
  return batch.extra + (before + alignment - 1) / alignment * alignment;
}

Expected<void> Chain::check_memory(const engine::LanePlan& plan) const {
  for (const auto& stage : stages_) {
    if (auto ok = stage->check_memory(plan); !ok) return ok;
  }
  return last_->check_memory(plan);
}

Expected<void> Chain::prepare_lanes(const engine::LanePlan& plan) {
  engine::LanePlan of_stages = plan;
  of_stages.forwards = last_->forwards();
  for (const auto& stage : stages_) {
    if (auto ok = stage->prepare(of_stages); !ok) return ok;
  }
  return last_->prepare_lanes(plan);
}

Expected<void> Chain::attach(device::Gpu& gpu, const engine::DevicePlan& plan) {
  for (const auto& stage : stages_) {
    if (auto ok = stage->attach(gpu, plan); !ok) return ok;
  }
  return last_->attach(gpu, plan);
}

void Chain::collect(engine::Burst& burst, engine::BatchWriter& writer) {
  const engine::Batch& batch = writer.batch();
  const std::uint32_t first = batch.count;
  TransitGuard guard(stages_, batch.lane);
  burst.set_guard(&guard);
  last_->collect(burst, writer);
  burst.set_guard(nullptr);
  guard.end();
  if (batch.count == first) return;
  for (std::size_t s = 0; s < stages_.size(); ++s) stages_[s]->describe(batch, area(batch, s), first);
}

// Whether there is work for one kernel.
bool Chain::gather(const engine::Batch& batch, CapsuleWork& work) {
  work.count = batch.count;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (!stages_[s]->join(batch, area(batch, s), work)) return false;
  }
  return last_->join(batch, work) && work.parts() >= 2;
}

Expected<void> Chain::launch(engine::Batch& batch, device::GpuStream& stream) {
  if (CapsuleWork work; fused_ && gather(batch, work)) return launch_capsule(work, stream);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (auto ok = stages_[s]->launch(batch, area(batch, s), stream); !ok) return ok;
  }
  return last_->launch(batch, stream);
}

Expected<void> Chain::launch_together(std::span<engine::Batch* const> batches, device::GpuStream& stream) {
  static_assert(engine::most_together <= most_works);
  CapsuleWork works[most_works];
  std::size_t gathered = 0;
  while (fused_ && gathered < batches.size() && gather(*batches[gathered], works[gathered])) ++gathered;
  if (gathered == batches.size()) return launch_capsule({works, gathered}, stream);
  std::array<const engine::Batch*, engine::most_together> of_stage{};
  std::array<std::byte*, engine::most_together> areas{};
  std::ranges::copy(batches, of_stage.begin());
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (std::size_t b = 0; b < batches.size(); ++b) areas[b] = area(*batches[b], s);
    if (auto ok =
            stages_[s]->launch_together({of_stage.data(), batches.size()}, {areas.data(), batches.size()}, stream);
        !ok) {
      return ok;
    }
  }
  for (engine::Batch* const batch : batches) {
    if (auto ok = last_->launch(*batch, stream); !ok) return ok;
  }
  return {};
}

void Chain::compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) {
  for (std::size_t s = 0; s < stages_.size(); ++s) stages_[s]->compute(batch, area(batch, s), first, count);
  last_->compute(batch, first, count);
}

// What nothing can be computed of again is dropped by the engine: nobody is asked about a frame of it.
void Chain::lost(engine::Batch& batch) {
  for (std::size_t s = 0; s < stages_.size(); ++s) stages_[s]->lost(batch, area(batch, s));
  last_->lost(batch);
  if (last_->recomputable()) return;
  for (std::size_t s = 0; s < stages_.size(); ++s) stages_[s]->judged(batch, area(batch, s));
}

void Chain::forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) {
  const std::uint64_t now = rte_rdtsc();
  std::uint32_t passed = first;  // frames [passed, i) go on
  for (std::uint32_t i = first; i < first + count; ++i) {
    packet::Reason reason = packet::no_reason;
    std::size_t s = 0;
    for (; s < stages_.size(); ++s) {
      reason = stages_[s]->judge(batch, area(batch, s), i, now);
      if (reason != packet::no_reason) break;
    }
    if (reason == packet::no_reason) continue;
    if (i != passed) last_->forward(batch, passed, i - passed, out);
    passed = i + 1;
    if (reason == engine::to_host) {
      if ((reason = judge_rest(batch, s, i, now)) == packet::no_reason) {
        out.punt(batch, i, true);
        continue;
      }
    }
    const engine::Answer answer = stages_[s]->answer(batch, area(batch, s), i, reason, out);
    if (answer.length == 0) {
      out.drop(batch, i, reason);
    } else if (answer.onward && last_->forwards()) {
      out.note_answer(batch, i, reason);
      batch.length[i] = static_cast<std::uint16_t>(answer.length);
      last_->forward(batch, i, 1, out);
    } else {
      out.answer(batch, i, answer.length, reason);
    }
  }
  if (first + count != passed) last_->forward(batch, passed, first + count - passed, out);
  if (first + count == batch.count) {
    for (std::size_t s = 0; s < stages_.size(); ++s) stages_[s]->judged(batch, area(batch, s));
  }
}

// Of a frame for the host what the stages behind `s`, who has said so, say: their reason, and `s` is who has it.
packet::Reason Chain::judge_rest(const engine::Batch& batch, std::size_t& s, std::uint32_t i, std::uint64_t now) {
  while (++s < stages_.size()) {
    const packet::Reason reason = stages_[s]->judge(batch, area(batch, s), i, now);
    if (reason != packet::no_reason && reason != engine::to_host) return reason;
  }
  return packet::no_reason;
}

bool Chain::forwards_at_length() const {
  return last_->forwards_at_length() ||
         std::ranges::any_of(stages_, [](const auto& stage) { return stage->judges_at_length(); });
}

packet::Reason Chain::judge_from_host(std::uint32_t lane, const std::uint8_t* frame, std::uint32_t length) const {
  for (const auto& stage : stages_) {
    const packet::Reason reason = stage->judge_from_host(lane, frame, length);
    if (reason != packet::no_reason) return reason;
  }
  return packet::no_reason;
}

std::uint64_t Chain::budgeted_ticks(const engine::Batch& batch) const {
  std::uint64_t ticks = last_->budgeted_ticks(batch);
  for (const auto& stage : stages_) ticks += stage->budgeted_ticks(batch);
  return ticks;
}

void Chain::idle(std::uint32_t lane, std::uint64_t tsc) {
  for (const auto& stage : stages_) stage->idle(lane, tsc);
  last_->idle(lane, tsc);
}

bool Chain::keeps_time() const {
  return last_->keeps_time() || std::ranges::any_of(stages_, [](const auto& stage) { return stage->keeps_time(); });
}

Expected<std::string> Chain::reconfigure(engine::Function& fresh) {
  auto& other = static_cast<Chain&>(fresh);
  std::vector<engine::Stage::Change> changes;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    auto change = stages_[s]->reload(*other.stages_[s]);
    if (!change) return tl::unexpected(change.error());
    changes.push_back(std::move(*change));
  }
  auto text = last_->reconfigure(*other.last_);
  if (!text) return text;
  for (const engine::Stage::Change& change : changes) {
    change.commit();
    *text += (text->empty() ? "" : "; ") + change.text;
  }
  return text;
}

void Chain::stand_in(engine::Batch& batch) {
  for (std::size_t s = 0; s < stages_.size(); ++s) stages_[s]->stand_in(batch, area(batch, s));
  last_->stand_in(batch);
}

void Chain::stopped() {
  for (const auto& stage : stages_) stage->stopped();
  last_->stopped();
}

std::string Chain::lost_output() const {
  std::string all;
  const auto add = [&](const std::string& lost) { all += (all.empty() || lost.empty() ? "" : "; ") + lost; };
  for (const auto& stage : stages_) add(stage->lost_output());
  add(last_->lost_output());
  return all;
}

std::vector<engine::Figure> Chain::figures() const {
  std::vector<engine::Figure> all;
  for (const auto& stage : stages_) {
    for (const engine::Figure& figure : stage->figures()) all.push_back(figure);
  }
  for (const engine::Figure& figure : last_->figures()) all.push_back(figure);
  return all;
}

const engine::CountedRules* Chain::counted_rules() const {
  for (const auto& stage : stages_) {
    if (const engine::CountedRules* const rules = stage->counted_rules()) return rules;
  }
  return last_->counted_rules();
}

engine::NamedSets* Chain::named_sets() {
  for (const auto& stage : stages_) {
    if (engine::NamedSets* const sets = stage->named_sets()) return sets;
  }
  return last_->named_sets();
}

MediaStreams* Chain::media_streams() {
  for (const auto& stage : stages_) {
    if (MediaStreams* const streams = stage->media_streams()) return streams;
  }
  return nullptr;
}

engine::Tables::Memory Chain::ChainTables::memory() const {
  Memory all;
  for (const engine::Tables* const part : parts) {
    const Memory one = part->memory();
    all.bytes += one.bytes;
    all.keys.insert(all.keys.end(), one.keys.begin(), one.keys.end());
  }
  return all;
}

void Chain::ChainTables::watch_loading(engine::TableProgress progress) {
  for (engine::Tables* const part : parts) part->watch_loading(progress);
}

// The mistakes of all of them.
Expected<void> Chain::ChainTables::read() {
  std::string mistakes;
  for (engine::Tables* const part : parts) {
    if (const auto ok = part->read(); !ok) mistakes += (mistakes.empty() ? "" : "\n") + ok.error().message;
  }
  if (!mistakes.empty()) return make_error(mistakes);
  return {};
}

void Chain::ChainTables::take_read(engine::Tables& checked) {
  auto& others = static_cast<ChainTables&>(checked).parts;
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i]->take_read(*others[i]);
}

void Chain::ChainTables::leave_to_eal() {
  for (engine::Tables* const part : parts) part->leave_to_eal();
}

std::vector<std::string> Chain::ChainTables::notes() const {
  std::vector<std::string> all;
  for (const engine::Tables* const part : parts) {
    for (std::string& note : part->notes()) all.push_back(std::move(note));
  }
  return all;
}

bool Chain::device_ready() {
  bool ready = last_->device_ready();
  for (const auto& stage : stages_) ready = stage->device_ready() && ready;
  return ready;
}

Expected<void> Chain::begin_cycle(device::GpuStream& stream) {
  for (const auto& stage : stages_) {
    if (auto ok = stage->begin_cycle(stream); !ok) return ok;
  }
  return last_->begin_cycle(stream);
}

}  // namespace sluice::function
