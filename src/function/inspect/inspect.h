// The element "inspect": intrusion prevention by Snort's and Suricata's rules. What a rule of drop or reject has held
// for is dropped, and all that follows of its flow; alerts go to files (alert_log.h).
//
// Where: on a GPU the payloads of a batch are searched for the rules' best patterns when it is launched; the lane that
// forwards then follows conversations, confirms, and decides (inspection.h). Batches that a core computes are searched
// by the core, with the same result.
//
// Conversations: both directions of one are the same lane thread's (placement.h, paired), so nothing is shared between
// threads; forwarder_cores are refused. What a router leaves to the kernel to forward is inspected in its turn, as any
// other frame.
//
// Bounded: prefilter matches are confirmed for at most `budget` in each batch, which its frames share (confirm_time.h);
// what is left of a frame's is counted, and the frame is dropped or goes on, as `on_overload` says. The times of frames
// are the clock's, from one start on, or those of the capture that is read.
//
// Reload: other rules are compiled beside the old ones. Each thread takes them between two batches, or while it has
// none, flows and their flowbits go on; until the GPU has their tables too, cores search. What else the section says
// needs a restart.
//
// Memory, for each lane thread: as docs/inspect.md says. Threads: as of engine::Element.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "device/table_mirror.h"
#include "engine/element.h"
#include "engine/tables.h"
#include "engine/traits.h"
#include "function/fused/fusable.h"
#include "function/inspect/alert_log.h"
#include "function/inspect/http_capacity_notes.h"
#include "function/inspect/http_limit_notes.h"
#include "function/inspect/inspect_lane.h"
#include "function/inspect/inspection.h"
#include "function/inspect/refused_streams_notes.h"
#include "match/automaton/gpu_matcher.h"
#include "match/rules/rule_set.h"
#include "packet/reason.h"

namespace sluice::function {

inline const packet::Reason inspect_dropped = packet::register_reason(
    "inspect_dropped", "a rule of drop or reject holds for it, or has held for its flow", packet::DroppedBy::purpose);
inline const packet::Reason inspect_rejected = packet::register_reason(
    "inspect_rejected", "a rule of reject holds for it: its sender is notified", packet::DroppedBy::purpose);
inline const packet::Reason inspect_overload = packet::register_reason(
    "inspect_overload", "rules might hold for it, and the time for confirming them was used up (on_overload)");

inline const packet::Reason inspect_conflict = packet::register_reason(
    "inspect_conflict", "it has other bytes than an earlier segment for the same place of a TCP stream (on_conflict)");
inline const packet::Reason inspect_no_capacity = packet::register_reason(
    "inspect_no_capacity", "no capacity was left to put its TCP stream together with it (on_overload, stream_memory)");
inline const packet::Reason inspect_outside = packet::register_reason(
    "inspect_outside",
    "data that does not fit its TCP conversation: outside the receiver's window, or with another SYN "
    "(on_conflict, on_overload)");
inline const packet::Reason inspect_silent = packet::register_reason(
    "inspect_silent",
    "data of a TCP conversation that was silent for so long that it is followed no more (on_silence)");
inline const packet::Reason inspect_http_limit = packet::register_reason(
    "inspect_http_limit", "HTTP that goes beyond a limit, and is inspected no further (on_http_limit)");
inline const packet::Reason inspect_fragments = packet::register_reason(
    "inspect_fragments", "a fragment that cannot be put together with the others of its datagram (on_overload)");

struct InspectOptions {
  std::vector<std::string> rules;  // files
  match::ReadOptions reading;
  bool strict = false;            // rules of which one does not load are none
  InspectionSettings inspection;  // tables: of all lane threads together
  AlertLogSettings log;
  std::uint32_t lanes = 1;             // of the port that has most: as many count rates, each by itself
  std::chrono::nanoseconds budget{0};  // for confirming, of a batch; 0: as much as keeps its frames on time
};

class Inspect final : public engine::Element,
                      public engine::Metrics,
                      public engine::Timer,
                      public engine::BoundedWork,
                      public engine::Output,
                      public engine::DeviceCycle,
                      public engine::NullDevice,
                      public engine::MemoryNeed,
                      public Fusable,
                      public engine::Tables {
 public:
  explicit Inspect(InspectOptions options);
  ~Inspect() override;

  engine::Shape shape() const override;
  void* find_trait(std::string_view name) override;
  Expected<void> check_memory(const engine::Plan& plan) const override;
  Expected<void> prepare(const engine::Plan& plan) override;
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override;
  void detach(std::uint32_t device) override;
  bool can_detach() const override { return true; }
  void classify(engine::Batch& batch, engine::Span span) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  bool join(const engine::Batch& batch, FusedWork& work) override;
  void compute(engine::Batch& batch, engine::Span span) override;
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) override;
  Expected<Change> reload(Element& fresh) override;

  void null_result(engine::Batch& batch) override;
  // As null_result(), and behind it: the device has found these keys in frame i.
  void put_keys(const engine::Batch& batch, std::uint32_t i, std::span<const std::uint32_t> keys) const;
  // As which a frame of that judgement is dropped; no_reason: it goes on.
  static packet::Reason reason_of(const Judgement& judgement);
  std::uint64_t bounded_ticks(const engine::Batch& batch) const override;
  void idle(std::uint32_t lane, std::uint64_t tsc, engine::Emitter& /*out*/) override { lane_of(lane).idle(tsc); }
  Expected<void> begin_cycle(std::uint32_t device, device::GpuStream& stream) override;
  void stopped() override;
  std::string lost_output() const override { return log_ ? log_->lost() : ""; }
  std::vector<engine::Metric> metrics() const override;

 private:
  Memory memory() const override { return {}; }
  void watch_loading(engine::TableProgress progress) override { progress_ = std::move(progress); }
  Expected<void> read() override;
  void take_read(engine::Tables& checked) override;
  void leave_to_eal() override {}
  std::vector<std::string> notes() const override { return notes_; }

  Expected<std::shared_ptr<InspectionRules>> compile(match::RuleSet set);
  void take(std::shared_ptr<InspectionRules> rules);
  InspectLane& lane_of(std::uint32_t lane) { return *lanes_[lane % lanes_.size()]; }
  void note_limits(std::uint64_t now);
  void note_refused_streams(std::uint64_t now);
  void note_http_capacity(std::uint64_t now);
  match::MatchBatch work_of(const engine::Batch& batch) const;
  // inspect_answer.cc
  bool answer(engine::Batch& batch, std::uint32_t i, packet::Reason reason, engine::Emitter& out);
  std::size_t reclaim();

  const InspectOptions options_;
  bool sends_ = true;  // frames leave the pipeline
  engine::TableProgress progress_;
  std::optional<match::RuleSet> read_;  // by read(), until it is compiled
  std::vector<std::string> notes_;
  std::shared_ptr<InspectionRules> newest_;   // the thread's that prepares, then that reloads
  std::atomic<std::uint64_t> rule_count_{0};  // of newest_
  std::atomic<bool> blocks_{false};           // likewise: a rule of it drops
  std::unique_ptr<AlertLog> log_;
  HttpLimitNotes limit_notes_;                 // of the log's thread
  RefusedStreamsNotes refused_streams_notes_;  // likewise
  HttpCapacityNotes http_capacity_notes_;      // likewise
  std::unique_ptr<FrameClock> clock_;
  std::vector<std::unique_ptr<InspectLane>> lanes_;  // by thread

  // Of the generation of InspectionRules, by DevicePlan::device; none: nothing is launched.
  device::TableMirrors<match::GpuMatcher> mirrors_;
};

}  // namespace sluice::function
