// The contract of an element: one network function's code in a pipeline (`route`, `acl`, `inspect`, `srtp`, ...).
//
// A pipeline is the elements of a chain in the order that the configuration names them, and frames meet them in that
// order (engine/pipeline.h). An element lives in its own folder under src/function/, or in a shared object of its own
// (docs/write-an-element.md). In the tree it registers itself with one line; a plug-in says SLUICE_PLUGIN() (plugin.h):
//     const bool registered = engine::register_element(
//         {.name = "route", .text = "IPv4/IPv6 router", .make = make_route});
//
// The calls for a batch, each to all elements in the order of the pipeline:
//   classify   on the lane's core, for each burst: looks at frames, writes what the device needs to its area, decides
//              what needs no device (drop, punt, change, consume)
//   launch     once, on a GPU stream; or compute, on a core, for any part of the batch
//   apply      on the lane's core, in the order of frames: takes the results, changes, drops, punts, sends
// An element looks only at rows that are live: an element before it may have decided on the others (batch.h, Row). A
// decision in classify() is seen by the classify() of later elements, a decision in apply() by their apply(). So an
// element that decides in apply() may waste the device work of a later one; it never undoes it. Decisions are carried
// out when the batch has passed all elements, in the order of frames. Until then each frame belongs to the batch. The
// last element of a pipeline decides on every row that still goes on.
//
// An element's memory for a batch is its area: Shape::bytes_per_frame bytes for each frame of a full batch, 64-byte
// aligned, pinned and device-visible. The element lays it out; area() gives it.
//
// Everything else that an element can do is a trait (traits.h): tables from files, metrics, timers, device work between
// batches. Others ask for a trait by type. What a type has whether it is in a chain or not is a trait of ElementType.
//
// Calls, by thread:
//   the control thread, before lanes start:            shape, prepare, attach, traits
//   lane threads (many at once, each its own batches): classify, compute, apply -> no shared mutable state
//   a device's worker thread:                          launch
//   a thread that reloads, while all others go on:     reload and Change::commit, one reload at a time
// On the packet path (classify, launch, compute, apply) no call may allocate, lock, throw or make a system call.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/option_facts.h"
#include "base/settings.h"
#include "engine/batch.h"
#include "packet/reason.h"

namespace sluice::device {
class Gpu;
class GpuStream;
}  // namespace sluice::device

namespace sluice::engine {

class Emitter;
class Pipeline;
class PortTable;

inline const packet::Reason device_lost = packet::register_reason(
    "device_lost", "the device failed while it changed the frame, and what is in it now is not known");

// What an element has to do with what frames hold behind their headers, from its device work on. What it reads when it
// classifies counts for nothing: no payload of the pass is changed by then.
enum class Payloads : std::uint8_t {
  untouched,
  read_late,  // when it applies results: as they are at its place, behind what elements in front of it change
  read,       // by its device work, and perhaps when it applies results, too
  changed,    // by its device work. Whatever that writes into a frame counts, because the frame must then be kept while
              // the device does not answer (docs/device-failure.md)
};

// Constant as long as the element lives.
struct Shape {
  std::uint32_t bytes_per_frame = 0;  // of the element's area
  Payloads payloads = Payloads::untouched;
  // apply() changes headers that others look at, takes them off or puts them on (batch_edit.h). Elements behind it are
  // in a later pass, and see the frame as it is then.
  bool changes_headers = false;
  // False: no frame leaves the pipeline, whatever its elements decide.
  bool sends = true;
  // The element has device work: launch() and compute() do something.
  bool on_device = false;
  // The element decides what becomes of every row. Its reload changes tables in place: reload() is called
  // last, commit() first.
  bool ends_chain = false;
  // apply() may take long by itself, over 50 us for a burst. Scheduling stalls are not counted during it (stall.h).
  bool applies_at_length = false;
};

// What an element needs to know of the lanes. Their cores are chosen by then.
struct Plan {
  std::uint32_t lanes = 1;
  std::uint32_t threads = 1;             // lane l is collected by thread l % threads
  bool forwarders = false;               // batches are applied by another thread of the lane than frames are classified
  std::chrono::nanoseconds deadline{0};  // of every frame
  bool captures = false;                 // all frames come from capture files, which wait as long as it takes
  std::chrono::nanoseconds cycle{0};     // 0: there is no cycle, each lane computes at once
  bool sends = true;                     // false: no frame leaves the pipeline, whatever elements do with it
  std::vector<std::uint16_t> ports = {};  // by lane: the port that the lane receives from
  std::uint32_t helpers = 0;              // threads that compute beside lanes (traits.h, Divisible)
  // The pipeline that the element is in; null in a test of the element alone.
  Pipeline* pipeline = nullptr;
};

// What an element needs to know to allocate memory for a device.
struct DevicePlan {
  std::uint32_t lanes;
  std::uint32_t batches_per_lane;
  std::uint32_t batch_capacity;  // frames
  std::uint32_t frame_bytes;     // largest frame that can arrive
  bool launches = true;          // false: in this mode nothing is ever launched
  std::uint32_t device = 0;      // index of the device; batches that it works on have it as Batch::device
};

class Element {
 public:
  virtual ~Element() = default;

  virtual Shape shape() const { return {}; }

  // Called once, before all else but shape(): allocates and loads tables. DPDK is initialised. `sluice check` never
  // calls it.
  virtual Expected<void> prepare(const Plan& /*plan*/) { return {}; }

  // Called for each GPU, before traffic, and again behind detach(): uploads tables and allocates device memory, for the
  // index DevicePlan::device. The element owns what it allocates. An element without device work does not override
  // this, launch() and compute().
  virtual Expected<void> attach(device::Gpu& /*gpu*/, const DevicePlan& /*plan*/) { return {}; }
  // The device is lost, and its worker has ended: destroys all that attach() has made on it, while lanes run and other
  // devices work. attach() may follow for the same DevicePlan::device, to begin anew. Control path, never beside
  // attach() or reload(). An element with attach() that does not override this keeps the device from being reset
  // (can_detach()).
  virtual void detach(std::uint32_t /*device*/) {}
  virtual bool can_detach() const { return !shape().on_device; }

  // Called when rows [span.first, span.end()) have arrived, at most `most_classified` (pipeline.h) of them. Their first
  // bytes are in cache. span.first is 0 for the first rows of a batch.
  virtual void classify(Batch& /*batch*/, Span /*span*/) {}

  // Enqueues the batch's work and returns without waiting. When the stream has finished it, every result and every
  // changed byte of a frame must be in host memory. After an Error the work may have been done in part (Recovery).
  virtual Expected<void> launch(Batch& /*batch*/, device::GpuStream& /*stream*/) { return {}; }

  // Computes the results that launch() would give, for these rows, on this core. With the trait Divisible several cores
  // may do it for a batch, by compute_jobs() in its stead.
  // With forwarder cores a lane's forwarding thread computes what a device has failed at, while its collecting thread
  // may compute another batch of the lane.
  virtual void compute(Batch& /*batch*/, Span /*span*/) {}

  // Called when the results are there: decides on these rows, in order. The spans of a batch follow each other without
  // a gap. The last one ends at batch.count; after it the element may free what it holds for the batch. Rows that are
  // not live are in the span, too.
  virtual void apply(Batch& batch, Span span, Emitter& out) = 0;

  // Prepares a reload, so that commit() cannot fail. After an Error, or if commit() is not called, everything is as
  // before. `fresh`: an element of the same type, made from the changed file. The Change may move out of it what it has
  // read (tables.h); nobody uses `fresh` for anything else.
  struct Change {
    std::string text;  // a sentence on what commit() brings into force; empty: the element has nothing to reload
    std::function<void()> commit;
  };
  virtual Expected<Change> reload(Element& fresh);

  // The trait of that name (traits.h, offer()); null: the element does not have it. It lives as long as the element.
  virtual void* find_trait(std::string_view /*name*/) { return nullptr; }
  template <class T>
  T* trait() {
    return static_cast<T*>(find_trait(T::trait_name));
  }

  // For the pipeline: sets which of a batch's areas is the element's.
  void place(unsigned slot) { slot_ = slot; }

 protected:
  std::byte* area(const Batch& batch) const { return batch.area[slot_]; }
  // Whether the element is the first of its chain.
  bool is_first() const { return slot_ == 0; }

 private:
  unsigned slot_ = 0;
};

struct ElementType {
  std::string_view name;
  std::string_view text;
  // Reads the element's TOML section (an empty one if the file has none), reports mistakes to it, and returns the
  // element, which is not prepared yet. Must be cheap: `sluice check` calls it, too, without DPDK and with ports that
  // are only described.
  std::function<Expected<std::unique_ptr<Element>>(Settings& settings, const PortTable& ports)> make;
  // The settings that make reads, the element's own section first (base/option.h, section()), for people: `sluice
  // functions`, and the reference in docs/configuration.md.
  std::function<std::vector<OptionSection>()> options = {};
  // The element decides on every frame, so it is the last one of a chain.
  bool ends_chain = false;
  // The element stands in front of all others: proposals of a chain have it there.
  bool begins_chain = false;
  // Both directions of a conversation come in by different ports and must be handled by one thread (placement.h,
  // paired).
  bool follows_conversations = false;
  // One thread must both classify and apply a lane's frames: forwarder_cores is refused.
  bool one_thread = false;
  // The element has the trait Grouping for batches of one lane (Together::of_one_lane). The lanes' time points are then
  // spread over the cycle.
  bool launches_alone = false;
  // The element has the trait Divisible: compute_cores is of use.
  bool divides = false;
  // Measured time to classify a frame on a core; below 10 ns: 0. It is part of the bound (bound.h, µ).
  std::chrono::nanoseconds classify_time{0};
  // A configuration that names no chain has this element alone.
  bool usual = false;
  // The element makes the frames of ports whose device is its name, such as a tunnel's, and takes what leaves by them
  // (port/virtual_device.h).
  bool has_ports = false;
  // A plug-in's path, name and version; empty: built in. The program sets it.
  std::string origin = {};
  // The type's traits by name, as Element::find_trait(): what it has whether it is in a chain or not, such as routes of
  // the API (api.h) and verbs of `sluice ctl` (verb.h). Null: none. They live as long as the program.
  void* (*find_trait)(std::string_view name) = nullptr;
  template <class T>
  T* trait() const {
    return find_trait == nullptr ? nullptr : static_cast<T*>(find_trait(T::trait_name));
  }
};

bool register_element(ElementType type);
// Registers all types of a plug-in, or none. An Error: a name is taken, is there twice, or is not a valid name.
Expected<void> add_elements(std::vector<ElementType> types);
// All types in the order of registration. A type's address never changes.
const std::deque<ElementType>& element_types();
const ElementType* find_element(std::string_view name);
// The first element of the chain for which `fact` is true, as in find_such(chain, &ElementType::one_thread). Null:
// there is none. Unknown names are passed over.
const std::string* find_such(std::span<const std::string> chain, bool ElementType::*fact);

}  // namespace sluice::engine
