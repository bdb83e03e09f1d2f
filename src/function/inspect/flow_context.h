// In which context the events of conversations are inspected. EventContexts knows which frame brings them. FlowContext
// is an event's context, of its flow and direction.
//
//   contexts.begin(frame);                           // events are the frame's, until end()
//
//   FlowContext context(contexts, flow, direction);  // lives while an event is inspected
//   if (context->is_passed(flow)) return;
//
// What the frame's own flow brings in the frame's direction is inspected in the frame's context. All else is from a
// packet of the flow's ends without payload, in which no device has found anything.
//
//                      verdict                    prefilter matches                   time
//   the frame's flow   the frame's                the frame's                         the frame's
//   another flow       its own: neither is        as many as a frame has, for all     set aside for such flows
//                      dropped for the other      its events while this frame lasts   (BatchLimits)
//
// Between frames all flows are other ones.
//
// Held alerts are reported before another context is made.
//
// Thread-safety: none, of one lane. Cost: nothing for the frame's context; else some 50 ns.
#pragma once

#include <optional>

#include "function/inspect/inspection_environment.h"

namespace sluice::function {

class EventContexts {
 public:
  explicit EventContexts(InspectionEnvironment& env) : env_(env) {}

  void begin(PacketContext& frame) { frame_ = &frame; }
  void end() {
    frame_ = nullptr;
    other_.reset();
  }
  // Null between frames.
  PacketContext* frame() const { return frame_; }
  // A flow has ended: another one may have its place.
  void flow_ended() { other_.reset(); }

 private:
  friend class FlowContext;
  // The other flow that was last inspected, and what it may still use.
  struct Other {
    const flow::Flow* flow;
    PacketBudget budget;
  };
  PacketBudget& budget_of(const flow::Flow& other) {
    if (!other_ || other_->flow != &other) {
      other_.emplace(Other{&other, {env_.limits.other_flows_time, env_.settings.budget}});
      env_.limits.other_flows_time.next(env_.limits.frames_to_come);
    }
    return other_->budget;
  }

  InspectionEnvironment& env_;
  PacketContext* frame_ = nullptr;
  std::optional<Other> other_;
};

class FlowContext {
 public:
  FlowContext(EventContexts& contexts, flow::Flow& flow, flow::Direction direction) : context_(contexts.frame()) {
    if (context_ == nullptr || context_->flow != &flow || context_->direction != direction) [[unlikely]]
      make(contexts, flow, direction);
  }
  // Where the direction does not matter.
  FlowContext(EventContexts& contexts, flow::Flow& flow) : context_(contexts.frame()) {
    if (context_ == nullptr || context_->flow != &flow) [[unlikely]]
      make(contexts, flow, flow::Direction::to_server);
  }
  FlowContext(const FlowContext&) = delete;
  FlowContext& operator=(const FlowContext&) = delete;

  PacketContext& operator*() { return *context_; }
  PacketContext* operator->() { return context_; }
  bool is_frames() const { return !made_; }         // the frame's context itself
  bool is_of_other_flow() const { return other_; }  // than the frame's

 private:
  struct Made {
    Made(std::string_view frame, std::uint64_t when, const match::PacketFacts& end, flow::Flow& flow,
         flow::Direction direction, Verdict* of_frame, PacketBudget& budget)
        : context(frame, when, end, flow, direction, of_frame != nullptr ? *of_frame : own, budget) {}
    Verdict own;
    PacketContext context;
  };

  void make(EventContexts& contexts, flow::Flow& flow, flow::Direction direction);

  PacketContext* context_;
  bool other_ = false;
  std::optional<Made> made_;
};

}  // namespace sluice::function
