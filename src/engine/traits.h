// The traits of an element: what it can do besides its part of the packet path. Who needs one asks for it by type,
// element.trait<Metrics>(), and gets null where there is none.
//
// An element offers those that it implements:
//     void* find_trait(std::string_view name) override { return engine::offer<Metrics, Timer>(name, this); }
// Names, not types, are compared, so that a shared object and the program mean the same.
//
// More traits: tables.h (files), counted_rules.h, named_sets.h; function/routing.h, function/media_streams.h; and those
// of elements from outside the tree.
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

// An element around another one: what it does not change goes to that one.
class Wrapper {
 public:
  static constexpr std::string_view trait_name = "wrapper";
  virtual Element& inner() const = 0;

 protected:
  ~Wrapper() = default;
};

// Which frames are for this station at all: the link layer's part of an element that ends links (a router).
class Ingress {
 public:
  static constexpr std::string_view trait_name = "ingress";
  // Rows that have come in by a port, before any element classifies them: drops what is not for this station or
  // malformed, and gives to the host what is the host's. What goes on then is the elements'. As Element::classify().
  // Called again behind an element that changes headers (Shape::changes_headers), in its later pass.
  virtual void admit(Batch& batch, Span span) = 0;

 protected:
  // Of what admit() keeps for each lane: of 2 * lanes. With forwarder cores one thread admits a lane's new frames while
  // the other one admits those of a later pass.
  static std::size_t place(const Batch& batch) { return std::size_t{2} * batch.lane + (batch.pass != 0 ? 1 : 0); }
  ~Ingress() = default;
};

// A number that an element reports about itself, besides what the engine counts. The views are to literals.
struct Metric {
  std::string_view name;  // snake_case, with the element's own in front: "inspect_alerts"
  std::string_view text;  // a phrase for people
  std::uint64_t value = 0;
  bool counts = true;  // since start; else what is there now
};

class Metrics {
 public:
  static constexpr std::string_view trait_name = "metrics";
  // Any thread, while lanes run.
  virtual std::vector<Metric> metrics() const = 0;

 protected:
  ~Metrics() = default;
};

// What an element asks of the chain that it is in.
class ChainRule {
 public:
  static constexpr std::string_view trait_name = "chain_rule";
  // Reports to its section what the chain is wrong for, while a file is read; false: the chain cannot be. `was_right`:
  // there was no other mistake in the file. `chain_with`: the chain with that function in it, as a file writes it.
  virtual bool check_chain(const Pipeline& pipeline, Settings& section, bool was_right,
                           const std::function<std::string(std::string_view)>& chain_with) const = 0;

 protected:
  ~ChainRule() = default;
};

// Between two calls of Timer::idle() for a lane.
inline constexpr std::chrono::milliseconds least_idle(1), longest_idle(8);

class Timer {
 public:
  static constexpr std::string_view trait_name = "timer";
  // What is due as time goes by, on the thread that applies the lane's batches, while the lane has none under way: a
  // few tens of us at most, for the next frame may have come. `tsc`: now. At most once in least_idle, and at least once
  // in longest_idle, more or less. Threads sleep no longer than that then. `out`: for frames of the element's own.
  virtual void idle(std::uint32_t lane, std::uint64_t tsc, Emitter& out) = 0;

 protected:
  ~Timer() = default;
};

// Work of a device between batches, such as sending table changes.
class DeviceCycle {
 public:
  static constexpr std::string_view trait_name = "device_cycle";
  // Once for each cycle on the device's worker thread, before its batches are launched: bounded work. `device`: as
  // DevicePlan::device.
  virtual Expected<void> begin_cycle(std::uint32_t device, device::GpuStream& stream) = 0;
  // Whether the device can answer as compute() does; once it can, for ever. Lanes compute on their own cores until
  // then. The worker's thread, or before it runs.
  virtual bool device_ready(std::uint32_t /*device*/) { return true; }
  // The device has failed and gets no more work: what waits for it need not wait. The worker's thread.
  virtual void device_gone(std::uint32_t /*device*/) {}

 protected:
  ~DeviceCycle() = default;
};

// Whether several batches cost less launched together than each by itself.
enum class Together : std::uint8_t {
  no,
  of_any_lane,  // about as much as one of them
  of_one_lane,  // less where they are of one lane, in order: their frames stand behind one another
};
// Batches in one launch_together(), and of one lane.
inline constexpr std::size_t most_together = 8, most_of_one_lane = 4;

class Grouping {
 public:
  static constexpr std::string_view trait_name = "grouping";
  // launch() of several batches, in order, of which none is reported done before all are: `most_of_one_lane` of one
  // lane at most.
  virtual Expected<void> launch_together(std::span<Batch* const> batches, device::GpuStream& stream) = 0;

 protected:
  ~Grouping() = default;
};

// For an element whose device work changes frames so that doing it twice is wrong.
class Recovery {
 public:
  static constexpr std::string_view trait_name = "recovery";
  // A device has failed that may have done part of the batch's work. compute() and apply() follow: rows that cannot be
  // computed again are dropped here, as device_lost.
  virtual void lost(Batch& batch) = 0;

 protected:
  ~Recovery() = default;
};

// What the kernel sends out of a port's twin.
class HostGate {
 public:
  static constexpr std::string_view trait_name = "host_gate";
  // no_reason, or why the frame does not leave the host. On the thread that applies this lane's batches; it is in no
  // batch.
  virtual packet::Reason judge_from_host(std::uint32_t lane, const std::uint8_t* frame, std::uint32_t length) const = 0;

 protected:
  ~HostGate() = default;
};

inline constexpr std::uint16_t no_port = 0xffff;

class Egress {
 public:
  static constexpr std::string_view trait_name = "egress";
  // The port that the element's apply() would send row i out of, or that the kernel would where it only has the
  // neighbour to resolve, or where it forwards the frame; no_port: none, or not known. When the batch's results are
  // there, for a row that is live. On the thread that calls apply(). In a pass before the element's own, too: then it
  // is said of the frame as it is now.
  virtual std::uint16_t egress(const Batch& batch, std::uint32_t i) const = 0;

 protected:
  ~Egress() = default;
};

// What frames pass between the last element and a port's transmit queue: a tunnel that wraps them, a copy for a
// monitor. Of several the last one of the chain comes first: frames leave by elements in the opposite order to that in
// which they come in, so that what is behind a tunnel sees inner frames both ways.
class TxHook {
 public:
  static constexpr std::string_view trait_name = "tx_hook";
  // Whether frames that leave by this port pass it. Constant once the element is prepared.
  virtual bool hooks(std::uint16_t port) const = 0;
  // Whether a port that it hooks loses frames rather than wait for its transmit queue: it is offered each burst once.
  // For each burst, on the lane's forwarding thread.
  virtual bool offers_once(std::uint16_t /*port*/) const { return false; }
  // So many frames of such a burst were not taken: why they are dropped. Right behind offers_once().
  virtual packet::Reason not_taken(std::uint32_t /*lane*/, std::uint16_t /*port*/, unsigned /*count*/) {
    return packet::no_reason;  // tx_full
  }
  // A burst that is about to leave by the port: what elements send, and what the host sends. The first ones are to
  // leave; those that the element takes over, and transmits by another port or drops (`out`), it takes out of the
  // array. Returns how many are left. A frame may be changed, grown and shrunk. On the lane's forwarding thread.
  virtual unsigned leave(std::uint32_t lane, std::uint16_t port, rte_mbuf** frames, unsigned count, Emitter& out) = 0;

 protected:
  ~TxHook() = default;
};

class BoundedWork {
 public:
  static constexpr std::string_view trait_name = "bounded_work";
  // Of the batch that apply() has just been through: ticks of work that has a bound for a batch, of whatever size.
  virtual std::uint64_t bounded_ticks(const Batch& batch) const = 0;

 protected:
  ~BoundedWork() = default;
};

// Output of the element's own: log files.
class Output {
 public:
  static constexpr std::string_view trait_name = "output";
  // Once, on the control thread, when lanes have ended and all batches are applied or given up: what is held back is
  // written now.
  virtual void stopped() = 0;
  // Behind stopped(): what of its output is lost, a sentence's beginning; empty: nothing.
  virtual std::string lost_output() const { return {}; }

 protected:
  ~Output() = default;
};

// The mode zero-load: everything but the device's work.
class NullDevice {
 public:
  static constexpr std::string_view trait_name = "null_device";
  // In place of launch() and compute(): results with which apply() lets every frame go on.
  virtual void null_result(Batch& batch) = 0;

 protected:
  ~NullDevice() = default;
};

class MemoryNeed {
 public:
  static constexpr std::string_view trait_name = "memory_need";
  // The Error of prepare() where this machine has not the memory that it would take for these lanes, at this moment.
  // Takes none, and is called for a file that is only checked, too: needs no DPDK. Of the plan, `threads` counts.
  virtual Expected<void> check_memory(const Plan& plan) const = 0;

 protected:
  ~MemoryNeed() = default;
};

}  // namespace sluice::engine
