// The contract of a function that looks at frames on their way to the one that forwards them, and says which may go on:
// a classifier, an inspector. A chain is any number of stages and, last, a Function that forwards (function/chain/).
//
// A stage lives in its own folder under src/function/ and registers itself with one line, as a Function does:
//     const bool registered = engine::register_function({.name = "acl", .text = "...", .make_stage = make_acl});
//
// Its memory for a batch is an area of its own in the batch's pinned `extra`: bytes_per_frame() for each frame that
// fits, 64-byte aligned, laid out by the stage, device-visible. What the function behind drops or punts in collect() is
// never described; everything that is in the batch is.
//
// Calls, by thread, as of Function:
//   the control thread, before lanes start:               stands_before, prepare, attach; after they have
//                                                         ended: stopped
//   lane threads (many at once, each with its own Batch): describe, compute, lost, judge, answer, judged,
//                                                         judge_transit, judged_transit, budgeted_ticks, idle
//   the device's worker thread:                           begin_cycle, launch, join, device_ready
//   a thread that reloads, while all others go on:        reload
// A batch is described once, launched or computed (again, after a device that failed), then judged once, frame by frame
// in order. A batch is named by its lane and slot (batch.h); slots are below batches_range.most (options.h). No call on
// the packet path allocates, locks, throws, or makes a system call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/batch.h"
#include "packet/reason.h"

namespace sluice::device {
class Gpu;
class GpuStream;
}  // namespace sluice::device

namespace sluice::function {
struct CapsuleWork;  // functions know them; the engine only passes them on
class MediaStreams;
}  // namespace sluice::function

namespace sluice::engine {

class CountedRules;
class Emitter;
class Function;
class NamedSets;
class Tables;
struct DevicePlan;

inline const packet::Reason device_lost = packet::register_reason(
    "device_lost", "the device failed while it changed the frame, and what is in it now is not known");

// What a function needs to know of the lanes.
struct LanePlan {
  std::uint32_t lanes = 1;
  std::uint32_t threads = 1;             // lane l is collected by thread l % threads
  bool forwarders = false;               // frames are collected by one thread of the lane and forwarded by another
  std::chrono::nanoseconds deadline{0};  // of every frame
  bool captures = false;                 // frames come from capture files alone, which wait for as long as it takes
  std::chrono::nanoseconds cycle{0};     // 0: there is none, each lane computes at once
  bool forwards = true;                  // false: what the function does with a frame reaches nobody
  // Of each lane, by its index: the port that all its frames come in by.
  std::vector<std::uint16_t> ports = {};
};

// Between two calls of idle() for a lane.
inline constexpr std::chrono::milliseconds least_idle(1), longest_idle(8);

// A number that a function tells about itself, besides what the engine counts. The views are to literals.
struct Figure {
  std::string_view name;  // snake_case, with the function's own in front: "inspect_alerts"
  std::string_view text;  // a phrase for people
  std::uint64_t value = 0;
  bool counts = true;  // since start; else what is there now
};

// In place of a reason in judge(): the frame is the host's, though it is addressed to another. If all other stages let
// it go on, it goes to the kernel by the twin of its port, as what may be refused first when that way is full.
inline constexpr packet::Reason to_host = 0xff;
static_assert(to_host >= packet::max_reasons);

// What a stage has made of a frame that it drops. length 0: nothing, and it is dropped.
struct Answer {
  std::uint32_t length = 0;  // in bytes
  // It goes on where the frame would have gone; else back out of the port that the frame came from, as everything does
  // where nothing is forwarded.
  bool onward = false;
};

class Stage {
 public:
  virtual ~Stage() = default;

  virtual std::uint32_t bytes_per_frame() const { return 0; }

  // Once, before all else: the function that the chain ends with. If describe() changes the destination address of a
  // frame, the stage tells it so (Function::readdress).
  virtual void stands_before(Function& /*last*/) {}

  // The Error of prepare() where this machine has not the memory that it would take for these lanes, at this moment.
  // Takes none, and is called for a file that is only checked, too: needs no DPDK. Of the plan, `threads` counts.
  virtual Expected<void> check_memory(const LanePlan& /*plan*/) const { return {}; }

  // Once, before attach: allocates and loads tables, for these lanes (Batch::lane is below their number).
  virtual Expected<void> prepare(const LanePlan& /*plan*/) { return {}; }
  virtual Expected<void> attach(device::Gpu& gpu, const DevicePlan& plan) = 0;

  // Frames [first, batch.count) have been appended: writes what the device needs of them to the area. Their first bytes
  // are in cache.
  virtual void describe(const Batch& batch, std::byte* area, std::uint32_t first) = 0;

  // Enqueues the batch's work; when the stream has passed it, the results are in the area.
  virtual Expected<void> launch(const Batch& batch, std::byte* area, device::GpuStream& stream) = 0;
  // Instead: adds that work to one kernel's for the whole chain (function/capsule/capsule.h), behind what the parts in
  // front of this one have added. False: it cannot, and has added nothing. launch() may still follow, where another
  // part cannot. A frame that the kernel drops for a part in front needs no result.
  virtual bool join(const Batch& /*batch*/, std::byte* /*area*/, function::CapsuleWork& /*work*/) { return false; }
  // join() never does, and what launches of batches of one lane have in common is theirs to make use of
  // (engine::Together::of_one_lane).
  virtual bool launches_alone() const { return false; }
  // launch() of several batches, in order.
  virtual Expected<void> launch_together(std::span<const Batch* const> batches, std::span<std::byte* const> areas,
                                         device::GpuStream& stream) {
    for (std::size_t b = 0; b < batches.size(); ++b) {
      if (auto ok = launch(*batches[b], areas[b], stream); !ok) return ok;
    }
    return {};
  }
  // The same result for frames [first, first + count) on this CPU core.
  virtual void compute(const Batch& batch, std::byte* area, std::uint32_t first, std::uint32_t count) = 0;
  // A device has failed that may have done part of the batch's work. compute() and judge() follow; what cannot be done
  // twice compute() leaves alone and judge() drops, as device_lost. (Where the function behind can do nothing twice,
  // all frames are dropped, and only judged() follows.)
  virtual void lost(const Batch& /*batch*/, std::byte* /*area*/) {}
  // The zero-load mode's stand-in for the device: results with which judge() lets every frame go on.
  virtual void stand_in(const Batch& batch, std::byte* area) = 0;

  // no_reason: frame i may go on; to_host: it is the kernel's; else why it is dropped. `tsc`: now.
  virtual packet::Reason judge(const Batch& batch, std::byte* area, std::uint32_t i, std::uint64_t tsc) = 0;
  // That may take long by itself, as Function::forwards_at_length().
  virtual bool judges_at_length() const { return false; }

  // Asked once about a frame that judge() has dropped, for `reason`. If it is to be answered, and Emitter::may_answer()
  // allows it: makes the frame, where it lies and in its mbuf, the answer, and says where that goes. A second answer is
  // the stage's to send (Emitter::answer_besides).
  virtual Answer answer(const Batch& /*batch*/, std::byte* /*area*/, std::uint32_t /*i*/, packet::Reason /*reason*/,
                        Emitter& /*out*/) {
    return {};
  }

  // The same as judge() for a frame that the function behind hands to the host though it need not be the host's own:
  // one that the kernel would forward (Burst::punt, `exceptional`). On the collecting thread of this lane, and at once;
  // it is in no batch. Frames for the host alone (ARP, multicast, link-local) are not asked about.
  virtual packet::Reason judge_transit(std::uint32_t /*lane*/, std::uint8_t* /*frame*/, std::uint32_t /*length*/,
                                       std::uint64_t /*tsc*/) {
    return packet::no_reason;
  }
  // Behind a receive burst of which the stages were asked so, at least about one frame: what they do for these has a
  // bound for all of the burst.
  virtual void judged_transit(std::uint32_t /*lane*/) {}
  // A frame that the kernel sends out of the twin of this lane's port, where it lies: no_reason, or why it does not
  // leave the host. On the forwarding thread of this lane; it is in no batch.
  virtual packet::Reason judge_from_host(std::uint32_t /*lane*/, const std::uint8_t* /*frame*/,
                                         std::uint32_t /*length*/) const {
    return packet::no_reason;
  }
  // All frames of the batch are judged, or were dropped by others: what was held for it may go. Not called for what is
  // still under way when the engine ends.
  virtual void judged(const Batch& /*batch*/, std::byte* /*area*/) {}
  // Function::budgeted_ticks(), behind judged().
  virtual std::uint64_t budgeted_ticks(const Batch& /*batch*/) const { return 0; }

  // As Function::idle() and keeps_time().
  virtual void idle(std::uint32_t /*lane*/, std::uint64_t /*tsc*/) {}
  virtual bool keeps_time() const { return false; }

  // Once, on the control thread, when lanes have ended and all batches are judged or given up: what is held back is
  // told now.
  virtual void stopped() {}

  // Behind stopped(): what of its own output is lost, a sentence's beginning; empty: nothing, or it has none.
  virtual std::string lost_output() const { return {}; }

  virtual bool device_ready() { return true; }
  virtual Expected<void> begin_cycle(device::GpuStream& /*stream*/) { return {}; }

  // Any thread, while lanes run.
  virtual std::vector<Figure> figures() const { return {}; }
  // Tables that it reads from files (tables.h); null: none. Lives as long as the stage.
  virtual Tables* tables() { return nullptr; }
  // Rules that count what they decide (counted_rules.h); null: none. Lives as long as the stage.
  virtual const CountedRules* counted_rules() const { return nullptr; }
  // Sets that rules ask for (named_sets.h), after prepare(); null: none. Lives as long as the stage.
  virtual NamedSets* named_sets() { return nullptr; }
  // Streams that others add and remove (function/media_streams.h), after prepare(); null: none. As long as the stage.
  virtual function::MediaStreams* media_streams() { return nullptr; }

  // What a reload would bring, worked out in full: commit() cannot fail. An Error leaves everything as it was, as does
  // a Change that is not committed. As Function::reconfigure(), it may take what `fresh` has read.
  struct Change {
    std::string text;  // a sentence on what is in force then
    std::function<void()> commit;
  };
  virtual Expected<Change> reload(Stage& /*fresh*/) {
    return make_error("this function has nothing that can change while it runs: restart the gateway");
  }
};

}  // namespace sluice::engine
