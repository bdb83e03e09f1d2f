// The traits of an element: what it can do besides its calls on the packet path. A caller asks for a trait by type,
// element.trait<Metrics>(), and gets null if the element does not have it.
//
// An element offers the traits that it implements:
//     void* find_trait(std::string_view name) override { return engine::offer<Metrics, Timer>(name, this); }
// Traits are compared by name, not by type, so that a plug-in and the program agree on them.
//
// More traits: tables.h (files), counted_rules.h, named_sets.h, view.h, service.h, jobs.h; function/routing.h,
// function/media_streams.h; and those of elements from outside the tree.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/batch.h"
#include "packet/reason.h"

struct rte_mbuf;
namespace sluice {
class Settings;
}
namespace sluice::device {
class GpuStream;
}

namespace sluice::engine {

struct Plan;

template <class... Traits, class Owner>
void* offer(std::string_view name, Owner* owner) {
  void* found = nullptr;
  (void)((name == Traits::trait_name ? (found = static_cast<Traits*>(owner), true) : false) || ...);
  return found;
}

class Element;
class Emitter;
class Pipeline;

// An element that wraps another one, and passes on to it what it does not change.
class Wrapper {
 public:
  static constexpr std::string_view trait_name = "wrapper";
  virtual Element& inner() const = 0;

 protected:
  ~Wrapper() = default;
};

// The link layer of an element that ends links (a router): which frames are for this station.
class Ingress {
 public:
  static constexpr std::string_view trait_name = "ingress";
  // Called with received rows before any element classifies them. Drops frames that are malformed or not for this
  // station, and punts those for the host. Elements classify the rows that still go on. Same thread and rules as
  // Element::classify().
  // Called again behind an element that changes headers (Shape::changes_headers), in its later pass.
  virtual void admit(Batch& batch, Span span) = 0;

 protected:
  // Of what admit() keeps for each lane: of 2 * lanes. With forwarder cores one thread admits a lane's new frames while
  // the other one admits those of a later pass.
  static std::size_t admit_place(const Batch& batch) { return std::size_t{2} * batch.lane + (batch.pass != 0 ? 1 : 0); }
  ~Ingress() = default;
};

// A number that an element reports about itself, besides the engine's counters. The views are of string literals.
struct Metric {
  std::string_view name;  // snake_case, with the element's own in front: "inspect_alerts"
  std::string_view text;  // a phrase for people
  std::uint64_t value = 0;
  bool counts = true;  // true: a counter since start; false: a gauge
};

class Metrics {
 public:
  static constexpr std::string_view trait_name = "metrics";
  // Called by any thread, while lanes run.
  virtual std::vector<Metric> metrics() const = 0;

 protected:
  ~Metrics() = default;
};

// What an element asks of the chain that it is in.
class ChainRule {
 public:
  static constexpr std::string_view trait_name = "chain_rule";
  // Called while a configuration is read. Reports to `section` why the element does not work in this chain; false: the
  // chain is refused. `was_right`: the file has had no other mistake so far. `chain_with(NAME)`: the chain with that
  // function added, as a file writes it, for the message.
  virtual bool check_chain(const Pipeline& pipeline, Settings& section, bool was_right,
                           const std::function<std::string(std::string_view)>& chain_with) const = 0;

 protected:
  ~ChainRule() = default;
};

// The time between two calls of Timer::idle() for an idle lane.
inline constexpr std::chrono::milliseconds least_idle(1), longest_idle(8);

class Timer {
 public:
  static constexpr std::string_view trait_name = "timer";
  // Work as time goes by, such as timeouts, on the thread that applies the lane's batches. Called only while the lane
  // has no batch under way, and nothing to forward: under load never. What must not wait belongs in apply(), too.
  // While the lane is idle it is called at most once in least_idle and about once in longest_idle: the thread sleeps
  // no longer. Take a few tens of us at most, because the next frame may be waiting. `tsc`: now, by the time-stamp
  // counter. `out`: for frames that the element makes.
  virtual void idle(std::uint32_t lane, std::uint64_t tsc, Emitter& out) = 0;

 protected:
  ~Timer() = default;
};

// Device work between batches, such as sending table changes.
class DeviceCycle {
 public:
  static constexpr std::string_view trait_name = "device_cycle";
  // Called once in each cycle by the device's worker thread, before it launches batches. The work must be bounded.
  // `device`: as DevicePlan::device.
  virtual Expected<void> begin_cycle(std::uint32_t device, device::GpuStream& stream) = 0;
  // Whether the device gives the results that compute() gives. Until then lanes compute on their own cores. Once true
  // it stays true. Called by the worker's thread, or before that runs.
  virtual bool device_ready(std::uint32_t /*device*/) { return true; }
  // The device has failed and gets no more work. Whatever waits for it can stop waiting. Called by the worker's thread.
  virtual void device_gone(std::uint32_t /*device*/) {}

 protected:
  ~DeviceCycle() = default;
};

// Whether several batches cost less when they are launched together.
enum class Together : std::uint8_t {
  no,           // they cost the same
  of_any_lane,  // together they cost about as much as one
  of_one_lane,  // they cost less if they are of one lane, in order: their frames lie one behind another in memory
};
// Batches in one launch_together(): in all, and of one lane.
inline constexpr std::size_t most_together = 8, most_of_one_lane = 4;

class Grouping {
 public:
  static constexpr std::string_view trait_name = "grouping";
  // launch() of several batches, in order, at most `most_of_one_lane` of one lane. All are reported done together.
  virtual Expected<void> launch_together(std::span<Batch* const> batches, device::GpuStream& stream) = 0;

 protected:
  ~Grouping() = default;
};

// For an element whose device work changes frames, so that the work must not be done twice.
class Recovery {
 public:
  static constexpr std::string_view trait_name = "recovery";
  // The device has failed, and may have done part of the batch's work. Drop the rows that cannot be computed again, as
  // device_lost. compute() and apply() follow for the batch. A device that does not answer may
  // still write to frames. The batch is a copy then, and frames of rows that are dropped here are kept from their pool.
  // So drop every row whose frame the device writes to.
  virtual void lost(Batch& batch) = 0;

 protected:
  ~Recovery() = default;
};

// A look at each frame that the kernel sends out of a port's twin.
class HostGate {
 public:
  static constexpr std::string_view trait_name = "host_gate";
  // no_reason: the frame is sent; else why it is dropped. The frame is in no batch. Called by the thread that applies
  // this lane's batches.
  virtual packet::Reason judge_from_host(std::uint32_t lane, const std::uint8_t* frame, std::uint32_t length) const = 0;

 protected:
  ~HostGate() = default;
};

inline constexpr std::uint16_t no_port = 0xffff;

class Egress {
 public:
  static constexpr std::string_view trait_name = "egress";
  // The port that row i would leave by, as apply() or the kernel would send it: the kernel does when it has to resolve
  // the neighbour, or forwards the frame itself. no_port: the row leaves by none, or the port is not known. Called for
  // a live row once the batch's results are there, by the thread that calls apply().
  // In a pass before the element's own, too: the answer is of the frame as it is then.
  virtual std::uint16_t egress(const Batch& batch, std::uint32_t i) const = 0;

 protected:
  ~Egress() = default;
};

// For an element that works on frames that leave, too, with device work: an encryption. What the last element has
// decided to send, and what the host and elements send, it may send through a pass of its own behind all others, the
// pass of departures. There the element is called again, with Batch::departs, and behind it the last element, which
// decides anew: the element may put other headers on in classify(). One element of a chain has the trait.
class Departure {
 public:
  static constexpr std::string_view trait_name = "departure";
  // Called when the last element has decided on these rows, by the thread that applies them; in the pass of departures,
  // too. The element marks those that go through that pass by Batch::go_on_later(), and may drop others. In the pass of
  // departures all are rows of it already, and one that is for the host to forward would come from a host that knows
  // nothing of it: the element drops such. classify() of the pass of departures follows with the marked rows, in the
  // same order. There Row::port is the port that the last element has sent them by.
  // classify() may add rows there (batch_edit.h, append_row()), of frames that count as emitted.
  // `came_by`: the port that each row came in by, of the span; no_port: from the host, or from an element, which has
  // made it or decided on it in front of the last one (emitter.h).
  virtual void choose(Batch& batch, Span span, const std::uint16_t* came_by, Emitter& out) = 0;

 protected:
  ~Departure() = default;
};

// A hook between the last element and a port's transmit queue: a tunnel that wraps frames, or a copy for a monitor.
// Of several the last one of the chain comes first: frames leave by elements in the opposite order to that in which
// they come in, so that what is behind a tunnel sees inner frames both ways.
class TxHook {
 public:
  static constexpr std::string_view trait_name = "tx_hook";
  // Whether frames that leave by this port pass the hook. Constant once the element is prepared.
  virtual bool hooks(std::uint16_t port) const = 0;
  // True: each burst is offered to this port once, and frames that the port does not take are dropped. False: they are
  // offered again (emitter.h). Called for each burst, by the lane's forwarding thread.
  virtual bool offers_once(std::uint16_t /*port*/) const { return false; }
  // Called after a burst was offered once; `count` frames were left. Answers why they are dropped.
  virtual packet::Reason not_taken(std::uint32_t /*lane*/, std::uint16_t /*port*/, unsigned /*count*/) {
    return packet::no_reason;  // tx_full
  }
  // Called with a burst that is about to leave by the port: frames that elements or the host send. The hook may change,
  // grow and shrink each frame. A frame that it takes over it removes from the array, and sends by another port or
  // drops by `out`. It moves the other frames to the front, in order, and returns how many they are. Called by the
  // lane's forwarding thread.
  virtual unsigned leave(std::uint32_t lane, std::uint16_t port, rte_mbuf** frames, unsigned count, Emitter& out) = 0;

 protected:
  ~TxHook() = default;
};

// For an element part of whose apply() takes a bounded time for a batch of any size, such as work with a budget. The
// engine leaves it out when it learns what a frame costs.
class BoundedWork {
 public:
  static constexpr std::string_view trait_name = "bounded_work";
  // Ticks of such work that apply() has just done for this batch.
  virtual std::uint64_t bounded_ticks(const Batch& batch) const = 0;

 protected:
  ~BoundedWork() = default;
};

// Output that the element writes itself, such as log files.
class Output {
 public:
  static constexpr std::string_view trait_name = "output";
  // Called once by the control thread, after lanes have ended and all batches are applied or given up. Write now what
  // was held back.
  virtual void stopped() = 0;
  // Called after stopped(): which output is lost, as the beginning of a sentence; empty: none.
  virtual std::string lost_output() const { return {}; }

 protected:
  ~Output() = default;
};

// For an element whose compute() is jobs that threads can do at the same time, such as packets to be enciphered.
// Helpers ([engine] compute_cores) then do a part of what lanes compute (compute_share.h).
class Divisible {
 public:
  static constexpr std::string_view trait_name = "divisible";
  // How many jobs compute() has to do for all rows of the batch.
  virtual std::uint32_t jobs(const Batch& batch) const = 0;
  // Does jobs [some.first, some.end()), as compute() would. Others of the batch, and of other batches, are done by
  // other threads meanwhile, in any order. So it writes nothing but what is of these jobs alone, and of the thread.
  // `thread`: 0: the lane's own, on which compute() runs, too; else a helper's, from 1 to Plan::helpers.
  virtual void compute_jobs(Batch& batch, Span some, std::uint32_t thread) = 0;

 protected:
  ~Divisible() = default;
};

// For an element that has nothing for the device of some batches: launch() is not called for them. A batch that no
// element of its pass needs the device for does not go there: the lane's core computes it at once. Of one that goes
// there for others, the core computes the element's part when it is back, before results are applied.
class DeviceDemand {
 public:
  static constexpr std::string_view trait_name = "device_demand";
  // Of a batch that is classified. The answer stays until results are applied, but for what lost() changes.
  virtual bool needs_device(const Batch& batch) const = 0;

 protected:
  ~DeviceDemand() = default;
};

// For the mode zero-load: everything but the device's work.
class NullDevice {
 public:
  static constexpr std::string_view trait_name = "null_device";
  // Called instead of launch() and compute(). Writes results with which apply() lets every frame go on.
  virtual void null_result(Batch& batch) = 0;

 protected:
  ~NullDevice() = default;
};

class MemoryNeed {
 public:
  static constexpr std::string_view trait_name = "memory_need";
  // The Error that prepare() would give if this machine has too little memory for these lanes now. Allocates nothing
  // and needs no DPDK: `sluice check` calls it, too. Of the plan only `threads` is valid.
  virtual Expected<void> check_memory(const Plan& plan) const = 0;

 protected:
  ~MemoryNeed() = default;
};

}  // namespace sluice::engine
