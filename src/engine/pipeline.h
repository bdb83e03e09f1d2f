// The elements of a chain in the order that the configuration names them, as passes.
//
//   rx -> [pass 0: classify ... launch/compute ... apply] -> [pass 1 ...] -> tx
//
// A pass is neighbouring elements whose device work needs no look by the host in between: one batch, one trip to a
// device. A new one begins where an element's device work changes payloads that another's reads, or changes too: an
// inspector behind a decryption sees what came out of it, and one in front of an encryption what goes in. An element
// that reads payloads when it applies results (Payloads::read_late) asks for one only behind itself, where they are
// changed. A new pass begins behind an element that changes headers, too (Shape::changes_headers). What still goes on
// when a batch has been applied is the next pass's batch, of the same lane. So order holds, and a chain of one pass
// costs nothing for it.
//
// Behind the last pass of a chain that has an element with the trait Departure is one more, for frames that leave
// through that element again: the element, and the last one of the chain.
//
// Before the first pass the elements that end links say which frames are for this station (traits.h, Ingress); others
// are no element's business. They say so again behind an element that changes headers.
//
// Within a pass each call goes to all elements, in order. Device work of a batch is on one stream: as one kernel where
// a Fusion of these elements is registered (fusion.h), else one element after the other.
//
// Thread-safety: as of Element. Cost: a virtual call for each element and burst, not for each frame.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/element.h"
#include "engine/fusion.h"
#include "engine/tables.h"
#include "engine/traits.h"

namespace sluice::engine {

// Rows that classify() is given at once, at most.
inline constexpr unsigned most_classified = 64;

class ComputeShare;

class Pipeline {
 public:
  // `fused` false: device work is always one element after the other, for measuring.
  explicit Pipeline(std::vector<std::unique_ptr<Element>> elements, bool fused = true);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  std::span<const std::unique_ptr<Element>> elements() const { return elements_; }
  // Whether device work of an element behind this one, in its pass, changes payloads: by the time that results are
  // there they are not what came in.
  bool changes_behind(const Element& element) const;
  // Its elements, for another one that has more around them; it is good for nothing else then.
  std::vector<std::unique_ptr<Element>> take_elements() { return std::move(elements_); }
  // The pass of departures, the last one, is one of them.
  unsigned passes() const { return static_cast<unsigned>(passes_.size()); }
  bool has_departures() const { return departure_ != nullptr; }
  bool is_departing(unsigned pass) const { return has_departures() && pass + 1 == passes(); }
  // In that pass the last element decides.
  bool decides(unsigned pass) const { return pass + 1 == passes() || (has_departures() && pass + 2 == passes()); }
  // Bytes for each frame of the areas of a pass's batches, by the element's place in the pipeline; 0: it has none
  // there.
  std::vector<std::uint32_t> areas(unsigned pass) const;
  // False: no frame leaves it.
  bool sends() const { return sends_; }
  bool applies_at_length() const { return applies_at_length_; }

  // The trait of the first element that has it; null: none.
  template <class T>
  T* first() const {
    for (const auto& element : elements_) {
      if (T* const trait = element->trait<T>()) return trait;
    }
    return nullptr;
  }
  // Those of all elements that have it, in order.
  template <class T>
  std::vector<T*> all() const {
    std::vector<T*> traits;
    for (const auto& element : elements_) {
      if (T* const trait = element->trait<T>()) traits.push_back(trait);
    }
    return traits;
  }
  // The tables of all elements, as one; null: none has any. Lives as long as the pipeline.
  Tables* tables() { return tables_.parts.empty() ? nullptr : &tables_; }

  Expected<void> check_memory(const Plan& plan) const;
  Expected<void> prepare(Plan plan);
  Expected<void> attach(device::Gpu& gpu, const DevicePlan& plan);
  void detach(std::uint32_t device);
  // The slot of the first element that cannot; none: all can.
  std::optional<std::size_t> without_detach() const;

  // A lane's, for a batch of Batch::pass.
  void classify(Batch& batch, Span span);
  void compute(Batch& batch, Span span);
  // All rows, with helpers where it is worth it. Returns the ticks that they have spared this thread.
  std::uint64_t compute_shared(Batch& batch, ComputeShare& share);
  // Of a batch that is back from the device, what was not for it (traits.h, DeviceDemand).
  void compute_rest(Batch& batch);
  bool needs_device(const Batch& batch) const;
  void null_result(Batch& batch);
  // `in_doubt`: the device may still be working on it. Then rows of elements that change frames, and say nothing of
  // what they did, are lost, too.
  void lost(Batch& batch, bool in_doubt = false);
  void apply(Batch& batch, Span span, Emitter& out) {
    for (Element* const element : passes_[batch.pass].elements) element->apply(batch, span, out);
  }
  // Behind apply() of a pass that decides, where there are departures.
  void choose(Batch& batch, Span span, const std::uint16_t* came_by, Emitter& out) {
    departure_->choose(batch, span, came_by, out);
  }
  std::uint64_t bounded_ticks(const Batch& batch) const;
  packet::Reason judge_from_host(std::uint32_t lane, const std::uint8_t* frame, std::uint32_t length) const;
  bool keeps_time() const { return !timers_.empty(); }
  void idle(std::uint32_t lane, std::uint64_t tsc, Emitter& out);

  // A device's worker's. Batches of one launch are of one pass.
  Together together(unsigned pass) const { return passes_[pass].together; }
  Expected<void> launch(std::span<Batch* const> batches, device::GpuStream& stream);
  Expected<void> begin_cycle(std::uint32_t device, device::GpuStream& stream);
  bool device_ready(std::uint32_t device);
  void device_gone(std::uint32_t device);

  // All elements or none. Those that end a chain change last, because what they load they load in place.
  Expected<std::string> reload(Pipeline& fresh);
  void stopped();
  std::string lost_output() const;
  std::vector<Metric> metrics() const;

 private:
  struct Pass {
    std::vector<Element*> elements;
    std::vector<Element*> on_device;    // of these, those with device work
    std::vector<Grouping*> grouping;    // of each of on_device; null: it has none
    std::vector<Divisible*> divisible;  // likewise
    std::vector<DeviceDemand*> demand;  // likewise
    bool needs_device(std::size_t e, const Batch& batch) const {
      return demand[e] == nullptr || demand[e]->needs_device(batch);
    }
    std::unique_ptr<Fusion> fusion;
    Together together = Together::no;
    std::vector<BoundedWork*> bounded;
    bool admits = false;  // its frames are new to the elements that end links
  };
  struct AllTables final : Tables {
    Memory memory() const override;
    void watch_loading(TableProgress progress) override;
    Expected<void> read() override;
    void take_read(Tables& checked) override;
    void leave_to_eal() override;
    std::vector<std::string> notes() const override;
    std::vector<Tables*> parts;
  };
  void make_passes(bool fused);
  void add_to_pass(Element& element);
  void make_departures();

  std::vector<std::unique_ptr<Element>> elements_;
  std::vector<Pass> passes_;
  std::vector<std::uint32_t> pass_of_;  // each element's, but for departures
  Departure* departure_ = nullptr;
  AllTables tables_;
  std::vector<Ingress*> ingress_;
  bool sends_ = true, applies_at_length_ = false;
  std::vector<Timer*> timers_;
  std::vector<HostGate*> gates_;
  std::vector<DeviceCycle*> cycles_;
};

}  // namespace sluice::engine
