// The contract of an element: one network function's code in a pipeline (`route`, `acl`, `inspect`, `srtp`, ...).
//
// A pipeline is the elements of a chain in the order that the configuration names them, and frames meet them in that
// order (engine/pipeline.h). An element lives in its own folder under src/function/, or in a shared object of its own
// (docs/write-an-element.md). In the tree it registers itself with one line; a plug-in says SLUICE_PLUGIN() (plugin.h):
//     const bool registered = engine::register_element(
//         {.name = "route", .text = "IPv4/IPv6 router", .make = make_route});
//
// What happens to a batch, element by element in the order of the pipeline:
//   classify   on the lane's core, for each burst: looks at frames, writes what the device needs to its area, decides
//              what needs no device (drop, punt, change, consume)
//   launch     once, on a GPU stream; or compute, on a core, for any part of the batch
//   apply      on the lane's core, in the order of frames: takes the results, changes, drops, punts, sends
// Only rows that are live are an element's business: those before it may have decided otherwise (batch.h, Row). What
// classify decides, later elements see when they classify; what apply decides, when they apply. So an element that
// decides in apply may have work of a later one wasted, never undone. What a row becomes happens when the batch has
// passed all elements, in the order of frames; until then its frame belongs to the batch. The last element of a
// pipeline decides what becomes of every row that still goes on.
//
// An element's memory for a batch is its area: Shape::bytes_per_frame for each frame that fits, 64-byte aligned, pinned
// and device-visible, laid out by the element. area() has it.
//
// What else an element can do it offers as traits (traits.h), which others ask for by type: tables from files, metrics,
// timers, work between batches on a device, and so on. What its type has, in a chain or not, are traits of the
// ElementType.
//
// Calls, by thread:
//   the control thread, before lanes start:            shape, prepare, attach, traits
//   lane threads (many at once, each its own batches): classify, compute, apply -> no shared mutable state
//   a device's worker thread:                          launch
//   a thread that reloads, while all others go on:     reload, of both elements; one at a time
// No call on the packet path allocates, locks, throws, or makes a system call.
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

// What an element has to do with what frames hold behind their headers.
enum class Payloads : std::uint8_t {
  untouched,
  read,     // by its device work, or when it applies results
  changed,  // by its device work
};

// Constant for as long as the element lives.
struct Shape {
  std::uint32_t bytes_per_frame = 0;  // of its area
  Payloads payloads = Payloads::untouched;
  // False: no frame goes on to anywhere from here, whatever the elements before it say of it.
  bool sends = true;
  // launch() and compute() do something.
  bool on_device = false;
  // It decides what becomes of every row, and its reload changes what is in force in place: it is asked last.
  bool ends_chain = false;
  // apply() may take long by itself, over 50 us for a burst: then no scheduling stall of the thread is derived from it.
  bool applies_at_length = false;
};

// What an element needs to know of the lanes, once they are placed.
struct Plan {
  std::uint32_t lanes = 1;
  std::uint32_t threads = 1;             // lane l is collected by thread l % threads
  bool forwarders = false;               // batches are applied by another thread of the lane than frames are classified
  std::chrono::nanoseconds deadline{0};  // of every frame
  bool captures = false;                 // frames come from capture files alone, which wait for as long as it takes
  std::chrono::nanoseconds cycle{0};     // 0: there is none, each lane computes at once
  bool sends = true;                     // false: no frame leaves the pipeline, whatever elements do with it
  std::vector<std::uint16_t> ports = {};  // of each lane, by its index: the port that all its frames come in by
  // That the element stands in; null: in none, as in a test of it alone.
  Pipeline* pipeline = nullptr;
};

// What an element needs to know to allocate memory of a device.
struct DevicePlan {
  std::uint32_t lanes;
  std::uint32_t batches_per_lane;
  std::uint32_t batch_capacity;  // frames
  std::uint32_t frame_bytes;     // largest frame that can arrive
  bool launches = true;          // false: in this mode nothing is ever launched
  std::uint32_t device = 0;      // Batch::device of what this device works on
};

class Element {
 public:
  virtual ~Element() = default;

  virtual Shape shape() const { return {}; }

  // Once, before all else but shape(): allocates and loads tables. DPDK runs by now; while a file is only checked this
  // is never called.
  virtual Expected<void> prepare(const Plan& /*plan*/) { return {}; }

  // Once for each GPU, before traffic: upload tables, allocate staging memory, by DevicePlan::device. The element keeps
  // what it allocates. An element without device work leaves this, launch() and compute() as they are.
  virtual Expected<void> attach(device::Gpu& /*gpu*/, const DevicePlan& /*plan*/) { return {}; }

  // Rows [span.first, span.end()) have come, at most `most_classified` of them; their first bytes are in cache.
  // span.first is 0 for a batch's first rows.
  virtual void classify(Batch& /*batch*/, Span /*span*/) {}

  // Enqueues the batch's work and returns without waiting. When the stream has passed it, every result (and every
  // changed frame byte) is in host memory. After an error the batch counts as worked on in part.
  virtual Expected<void> launch(Batch& /*batch*/, device::GpuStream& /*stream*/) { return {}; }

  // The same result for these rows on this core.
  virtual void compute(Batch& /*batch*/, Span /*span*/) {}

  // The results are there: decides on these rows, in order. Spans of a batch follow each other without a gap, and the
  // last one ends at batch.count: then what is held for the batch may go. Called for rows that go nowhere, too.
  virtual void apply(Batch& batch, Span span, Emitter& out) = 0;

  // What a reload would bring, worked out in full: commit() cannot fail. An Error leaves everything as it was, as does
  // a Change that is not committed. `fresh`: an element of the same type made from a changed file, of which the change
  // may take what it has read (tables.h): it is good for nothing else then.
  struct Change {
    std::string text;  // a sentence on what is in force then; empty: nothing ever changes
    std::function<void()> commit;
  };
  virtual Expected<Change> reload(Element& fresh);

  // A trait by its name (traits.h: offer()), null: it has none of the kind. It lives as long as the element.
  virtual void* find_trait(std::string_view /*name*/) { return nullptr; }
  template <class T>
  T* trait() {
    return static_cast<T*>(find_trait(T::trait_name));
  }

  // The pipeline's: which of a batch's areas is the element's.
  void place(unsigned slot) { slot_ = slot; }

 protected:
  std::byte* area(const Batch& batch) const { return batch.area[slot_]; }
  // No element is in front of it.
  bool is_first() const { return slot_ == 0; }

 private:
  unsigned slot_ = 0;
};

struct ElementType {
  std::string_view name;
  std::string_view text;
  // Reads its own TOML section (absent: an empty one), reports problems to it, returns the element, not prepared yet.
  // Cheap: `sluice check` calls it too, without DPDK and with ports that are only described.
  std::function<Expected<std::unique_ptr<Element>>(Settings& settings, const PortTable& ports)> make;
  // All that make reads, its own section first (base/option.h, section()): for the reference and `sluice functions`.
  std::function<std::vector<OptionSection>()> options = {};
  // It decides what becomes of every frame, and so ends a chain.
  bool ends_chain = false;
  // Both directions of a conversation, which come in by different ports, are to be one thread's (placement.h, paired).
  bool follows_conversations = false;
  // A lane's frames are classified and applied by one thread: there can be no forwarder_cores.
  bool one_thread = false;
  // It has the trait Grouping (traits.h) for batches of one lane: their time points are spread over the cycle.
  bool launches_alone = false;
  // Of classifying a frame on a core, as measured; less than 10 ns is 0. The bound counts it (bound.h, µ).
  std::chrono::nanoseconds classify_time{0};
  // The chain of a configuration that names none.
  bool usual = false;
  // Where it is from: a plug-in's path, name and version; empty: built in. The program writes it.
  std::string origin = {};
  // The type's own traits, by name, as Element::find_trait() has an element's: what it has whether it is in a chain or
  // not, such as routes of the API (api.h), verbs of `sluice ctl` (verb.h). Empty: none. They live as long as the
  // program.
  void* (*find_trait)(std::string_view name) = nullptr;
  template <class T>
  T* trait() const {
    return find_trait == nullptr ? nullptr : static_cast<T*>(find_trait(T::trait_name));
  }
};

bool register_element(ElementType type);
// Those of a plug-in, all or none. An Error: a name is taken, is there twice, or is none.
Expected<void> add_elements(std::vector<ElementType> types);
// In the order of their registration. Each stays where it is, however many are added.
const std::deque<ElementType>& element_types();
const ElementType* find_element(std::string_view name);
// The first element of a chain that is so, as find_such(chain, &ElementType::one_thread); null: none. Names that are no
// element's are not.
const std::string* find_such(std::span<const std::string> chain, bool ElementType::*fact);

}  // namespace sluice::engine
