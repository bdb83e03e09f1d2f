// The contract of a network function: what a chain does to frames, on a GPU and on a CPU core, with the same result.
//
// A function lives in its own folder under src/function/ and registers itself with one line:
//     const bool registered = engine::register_function({"route", "IPv4/IPv6 router", make_route});
// Nothing else changes when a function is added. One that loads tables from files, or forwards by routes, says so by
// tables() and routing(); check, start, reload, the netlink mirror and the API then serve it as they serve the router.
//
// Calls, by thread:
//   the control thread, before lanes start:               prepare, prepare_lanes, attach, at most one device_ready
//   lane threads (many at once, each with its own Batch): collect, readdress, compute, lost, forward, idle, stand_in
//                                                         without a GPU
//                                                         -> must not share mutable state
//   the device's worker thread:                           begin_cycle, launch, launch_together, join, stand_in with a
//                                                         GPU, device_ready
//   a thread that reloads, while all others go on:        reconfigure, of both functions; one at a time
// No call on the packet path allocates, locks, throws, or makes a system call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/settings.h"
#include "engine/batch.h"
#include "engine/stage.h"
#include "packet/reason.h"

namespace sluice::device {
class Gpu;
class GpuStream;
}  // namespace sluice::device

namespace sluice::function {
class Routing;  // control/ and functions know them; the engine only passes them on
class MediaStreams;
struct CapsuleWork;
}  // namespace sluice::function

namespace sluice::engine {

class BatchWriter;
class Burst;
class CountedRules;
class Emitter;
class NamedSets;
class PortTable;
class Tables;

// Whether several batches cost less launched together than each by itself.
enum class Together {
  no,
  of_any_lane,  // about as much as one of them
  of_one_lane,  // less where they are of one lane, in order: their frames stand behind one another
};
// Batches in one launch_together(), and of one lane.
inline constexpr std::size_t most_together = 8, most_of_one_lane = 4;

struct BatchLayout {
  std::uint32_t extra_bytes_per_frame = 0;
};

// What a function needs to know to allocate its device memory.
struct DevicePlan {
  std::uint32_t lanes;
  std::uint32_t batches_per_lane;
  std::uint32_t batch_capacity;  // frames
  std::uint32_t frame_bytes;     // largest frame that can arrive
  bool launches = true;          // false: in this mode neither begin_cycle() nor launch() is ever called
};

class Function {
 public:
  virtual ~Function() = default;

  virtual BatchLayout layout() const { return {}; }

  // False: no frame goes on to anywhere, whatever the stages before it say of it.
  virtual bool forwards() const { return true; }

  // Once, before attach: allocates and loads tables. DPDK runs by now; while a file is only checked this is never
  // called.
  virtual Expected<void> prepare() { return {}; }

  // The Error of prepare_lanes() for want of memory, as Stage::check_memory().
  virtual Expected<void> check_memory(const LanePlan& /*plan*/) const { return {}; }

  // Once, after prepare: there will be these lanes; Batch::lane is below their number.
  virtual Expected<void> prepare_lanes(const LanePlan& /*plan*/) { return {}; }

  // Once for each GPU, before traffic: upload tables, allocate staging memory. The Function keeps what it allocates.
  virtual Expected<void> attach(device::Gpu& gpu, const DevicePlan& plan) = 0;

  // Per receive burst: for each frame exactly one of batch.append(), burst.drop(), burst.punt().
  virtual void collect(Burst& burst, BatchWriter& batch) = 0;

  // A stage in front has changed the destination address of frame i of the open batch, of the same family: what
  // collect() has taken of it is taken anew.
  virtual void readdress(const Batch& /*batch*/, std::uint32_t /*i*/) {}

  // Enqueues the batch's work on a GPU stream and returns without waiting. When the stream has passed it, every verdict
  // (and every changed frame byte) is in host memory. After an error the batch counts as worked on in part.
  virtual Expected<void> launch(Batch& batch, device::GpuStream& stream) = 0;

  // The same for several batches, of which none is told to be done before all are. Called for more than one as
  // launches_together() says: `most_together` at most, or `most_of_one_lane`.
  virtual Together launches_together() const { return Together::no; }
  virtual Expected<void> launch_together(std::span<Batch* const> batches, device::GpuStream& stream) {
    for (Batch* const batch : batches) {
      if (auto ok = launch(*batch, stream); !ok) return ok;
    }
    return {};
  }

  // Instead, behind stages: adds that work to one kernel's for the whole chain, as Stage::join() does.
  virtual bool join(const Batch& /*batch*/, function::CapsuleWork& /*work*/) { return false; }

  // The same result for frames [first, first + count) on this CPU core.
  virtual void compute(Batch& batch, std::uint32_t first, std::uint32_t count) = 0;

  // Whether compute() gives the right result for frames on which a device may have done part of a launch before it
  // failed. False for a function that changes frames so that doing it twice is wrong: such frames are dropped
  // (device_lost).
  virtual bool recomputable() const { return true; }

  // That is the batch's state: before its compute(), or before all its frames are dropped. One that cannot do some
  // frames again, and others it can, drops the former itself in forward(), under the same name.
  virtual void lost(Batch& /*batch*/) {}

  // Applies the verdicts of frames [first, first + count), in order: for each exactly one of out.transmit(),
  // out.drop(), out.punt().
  virtual void forward(Batch& batch, std::uint32_t first, std::uint32_t count, Emitter& out) = 0;

  // The port that forward() would send frame i out of, or that the kernel would where it only has the neighbour to
  // resolve; no_port: none, or not known. When the batch's results are there. On the thread that calls forward().
  static constexpr std::uint16_t no_port = 0xffff;
  virtual std::uint16_t egress(const Batch& /*batch*/, std::uint32_t /*i*/) const { return no_port; }
  // The same for a frame that collect() hands to the host as one that the kernel may forward, on that thread.
  virtual std::uint16_t egress_of_transit(const std::uint8_t* /*frame*/, std::uint32_t /*length*/) const {
    return no_port;
  }

  // Of a frame that the kernel sends out of the twin of this lane's port: no_reason, or why it is dropped. On the
  // thread that calls forward().
  virtual packet::Reason judge_from_host(std::uint32_t /*lane*/, const std::uint8_t* /*frame*/,
                                         std::uint32_t /*length*/) const {
    return packet::no_reason;
  }

  // forward() may take long by itself, over 50 us for a burst: then no absence of the thread in its midst is told from
  // it (away.h).
  virtual bool forwards_at_length() const { return false; }

  // Of the batch that forward() has just been through: ticks of work that has a budget for a batch, of whatever size.
  virtual std::uint64_t budgeted_ticks(const Batch& /*batch*/) const { return 0; }

  // What is due as time goes by, on the thread that forwards the lane's batches, while the lane has none under way: a
  // few tens of us at most, for the next frame may have come. `tsc`: now. At most once in least_idle, and at least once
  // in longest_idle, more or less, if keeps_time(). Threads sleep no longer than that then.
  virtual void idle(std::uint32_t /*lane*/, std::uint64_t /*tsc*/) {}
  // idle() does something. The same for as long as the function lives.
  virtual bool keeps_time() const { return false; }

  // While lanes run: takes over what `fresh`, a function of the same type made from a changed file, was configured
  // with, and may take what it has read (tables.h): it is good for nothing else then. Answers with a sentence on what
  // changed (empty: nothing ever does); an Error leaves everything as it was. The thread that reloads, of the API or
  // one of its own, while the control thread follows the kernel; never two at once.
  virtual Expected<std::string> reconfigure(Function& /*fresh*/) {
    return make_error("this function has nothing that can change while it runs: restart the gateway");
  }

  // Once, on the control thread, when lanes have ended.
  virtual void stopped() {}

  // Behind stopped(): what of its own output is lost, a sentence's beginning; empty: nothing, or it has none.
  virtual std::string lost_output() const { return {}; }

  // Any thread, while lanes run.
  virtual std::vector<Figure> figures() const { return {}; }

  // The zero-load mode's stand-in for the device: verdicts with which forward() sends every frame.
  virtual void stand_in(Batch& batch) { std::fill_n(batch.verdict, batch.count, 0); }

  // Whether the device can answer as compute() does; once it can, for ever. Lanes compute on their own cores until
  // then, while begin_cycle() goes on. The worker's thread, or before it runs.
  virtual bool device_ready() { return true; }

  // Once for each cycle on the worker's thread, before its batches are launched: bounded work such as sending table
  // changes.
  virtual Expected<void> begin_cycle(device::GpuStream& /*stream*/) { return {}; }

  // What the control plane can do with this function besides; null: nothing of the kind. They live as long as the
  // function.
  virtual Tables* tables() { return nullptr; }                           // engine/tables.h
  virtual function::Routing* routing() { return nullptr; }               // function/routing.h
  virtual const CountedRules* counted_rules() const { return nullptr; }  // engine/counted_rules.h
  virtual NamedSets* named_sets() { return nullptr; }                    // engine/named_sets.h
  virtual function::MediaStreams* media_streams() { return nullptr; }    // function/media_streams.h
};

// What a stage has to do with what frames hold behind their headers.
enum class Payloads {
  untouched,
  read,     // by any of its calls
  changed,  // by compute()
};

struct FunctionType {
  std::string_view name;
  std::string_view text;
  // Reads its own TOML section (absent: an empty one), reports problems to it, returns the function, not prepared yet.
  // Cheap: `sluice check` calls it too, without DPDK and with ports that are only described.
  std::function<Expected<std::unique_ptr<Function>>(Settings& settings, const PortTable& ports)> make{};
  // Instead of `make`: this one stands in front of the function that forwards (stage.h).
  std::function<Expected<std::unique_ptr<Stage>>(Settings& settings, const PortTable& ports)> make_stage{};
  // Both directions of a conversation, which come in by different ports, are to be one thread's (placement.h, paired).
  bool follows_conversations = false;
  // A stage's. One that changes payloads and one that reads them are in no chain together, whatever their order: frames
  // are judged after everything is computed.
  Payloads payloads = Payloads::untouched;
  // A lane's frames are collected and forwarded by one thread: there can be no forwarder_cores.
  bool one_thread = false;
  // A stage's: what Stage::launches_alone() says.
  bool launches_alone = false;
};

bool register_function(FunctionType type);
const std::vector<FunctionType>& function_types();
const FunctionType* find_function(std::string_view name);
// The first function of a chain that is so, as find_such(chain, &FunctionType::one_thread); null: none. Names that are
// no function's are not.
const std::string* find_such(std::span<const std::string> chain, bool FunctionType::*fact);

}  // namespace sluice::engine
