// Stages, and the function that forwards what they let go on, as one function: `chain = ["acl", "route"]`.
//
// The forwarding function collects a burst; what it drops or punts is in no batch, but of a punt that the kernel may
// forward the stages are asked before (Stage::judge_transit). Each stage then describes the frames that were appended.
// All work of a batch is enqueued on one stream: as one kernel where all parts can join it and two have something to do
// (function/capsule/), else one part after the other. In forward() each frame is judged by the stages in order; the
// first that has a reason drops it, and the others do not see it; one that is to go to the host the others may still
// drop. Order is kept.
//
// Thread-safety, cost: as of its parts; a judgement is a virtual call for each stage and frame.
#pragma once

#include <memory>
#include <vector>

#include "engine/function.h"
#include "engine/stage.h"
#include "engine/tables.h"

namespace sluice::function {

class Chain final : public engine::Function {
 public:
  // `fused` false: always one part after the other, for measuring.
  Chain(std::vector<std::unique_ptr<engine::Stage>> stages, std::unique_ptr<engine::Function> last, bool fused = true);
  ~Chain() override;

  engine::BatchLayout layout() const override;
  bool forwards() const override { return last_->forwards(); }
  Expected<void> prepare() override { return last_->prepare(); }
  Expected<void> check_memory(const engine::LanePlan& plan) const override;
  Expected<void> prepare_lanes(const engine::LanePlan& plan) override;
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override;
  void collect(engine::Burst& burst, engine::BatchWriter& writer) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  engine::Together launches_together() const override { return together_; }
  void lost(engine::Batch& batch) override;
  Expected<void> launch_together(std::span<engine::Batch* const> batches, device::GpuStream& stream) override;
  void compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) override;
  bool recomputable() const override { return last_->recomputable(); }
  bool forwards_at_length() const override;
  // The first stage that objects has the say.
  packet::Reason judge_from_host(std::uint32_t lane, const std::uint8_t* frame, std::uint32_t length) const override;
  std::uint64_t budgeted_ticks(const engine::Batch& batch) const override;
  void forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) override;
  void idle(std::uint32_t lane, std::uint64_t tsc) override;
  bool keeps_time() const override;
  // All parts or none.
  Expected<std::string> reconfigure(engine::Function& fresh) override;
  void stand_in(engine::Batch& batch) override;
  bool device_ready() override;
  Expected<void> begin_cycle(device::GpuStream& stream) override;
  void stopped() override;
  std::string lost_output() const override;
  std::vector<engine::Figure> figures() const override;
  engine::Tables* tables() override { return tables_.parts.empty() ? nullptr : &tables_; }
  function::Routing* routing() override { return last_->routing(); }
  // Of the first part that has some.
  const engine::CountedRules* counted_rules() const override;
  engine::NamedSets* named_sets() override;
  MediaStreams* media_streams() override;

 private:
  static constexpr std::size_t alignment = 64;
  std::byte* area(const engine::Batch& batch, std::size_t stage) const;
  bool gather(const engine::Batch& batch, CapsuleWork& work);
  packet::Reason judge_rest(const engine::Batch& batch, std::size_t& s, std::uint32_t i, std::uint64_t now);

  // The tables of all parts that have some.
  struct ChainTables final : engine::Tables {
    Memory memory() const override;
    void watch_loading(engine::TableProgress progress) override;
    Expected<void> read() override;
    void take_read(engine::Tables& checked) override;
    void leave_to_eal() override;
    std::vector<std::string> notes() const override;
    std::vector<engine::Tables*> parts;
  };

  ChainTables tables_;
  std::vector<std::unique_ptr<engine::Stage>> stages_;
  std::unique_ptr<engine::Function> last_;
  bool fused_;  // false also where a stage launches alone
  engine::Together together_;
  std::vector<std::uint32_t> bytes_before_;  // each stage's areas: bytes a frame of what lies before them
};

}  // namespace sluice::function
