#include "engine/pipeline.h"

#include <algorithm>

#include "engine/compute_share.h"

namespace sluice::engine {
namespace {

std::vector<FusionMaker>& fusion_makers() {
  static std::vector<FusionMaker> makers;
  return makers;
}

void add_part(std::string& all, const std::string& part) {
  all += (all.empty() || part.empty() ? "" : "; ") + part;
}

bool is_or_wraps(Element& outer, const Element& element) {
  Wrapper* const wrapper = outer.trait<Wrapper>();
  return &outer == &element || (wrapper != nullptr && is_or_wraps(wrapper->inner(), element));
}

}  // namespace

bool register_fusion(FusionMaker maker) {
  fusion_makers().push_back(std::move(maker));
  return true;
}

std::unique_ptr<Fusion> make_fusion(std::span<Element* const> elements) {
  for (const FusionMaker& maker : fusion_makers()) {
    if (auto fusion = maker(elements)) return fusion;
  }
  return nullptr;
}

Pipeline::Pipeline(std::vector<std::unique_ptr<Element>> elements, bool fused) : elements_(std::move(elements)) {
  for (unsigned slot = 0; slot < elements_.size(); ++slot) {
    for (Element* element = elements_[slot].get(); element != nullptr;) {
      element->place(slot);
      const Wrapper* const wrapper = element->trait<Wrapper>();
      element = wrapper != nullptr ? &wrapper->inner() : nullptr;
    }
    const Shape shape = elements_[slot]->shape();
    sends_ = sends_ && shape.sends;
    applies_at_length_ = applies_at_length_ || shape.applies_at_length;
  }
  tables_.parts = all<Tables>();
  ingress_ = all<Ingress>();
  timers_ = all<Timer>();
  gates_ = all<HostGate>();
  cycles_ = all<DeviceCycle>();
  make_passes(fused);
}

Pipeline::~Pipeline() = default;

void Pipeline::make_passes(bool fused) {
  bool reads = false, changes = false;  // an element of the pass
  bool is_new = true;                   // what stands in front has changed headers
  for (const auto& element : elements_) {
    const Payloads payloads = element->shape().payloads;
    const bool looks_anew = payloads == Payloads::changed ? reads || changes : payloads == Payloads::read && changes;
    if (is_new || looks_anew) {
      passes_.emplace_back().admits = is_new;
      reads = changes = false;
    }
    is_new = element->shape().changes_headers;
    reads |= payloads == Payloads::read || payloads == Payloads::read_late;
    changes |= payloads == Payloads::changed;
    pass_of_.push_back(passes() - 1);
    add_to_pass(*element);
  }
  make_departures();
  for (Pass& pass : passes_) {
    const bool groups = std::ranges::any_of(pass.grouping, [](const Grouping* one) { return one != nullptr; });
    if (!fused) continue;
    if (groups) {
      pass.together = Together::of_one_lane;
    } else if ((pass.fusion = make_fusion(pass.elements))) {
      pass.together = Together::of_any_lane;
    }
  }
}

void Pipeline::add_to_pass(Element& element) {
  Pass& pass = passes_.back();
  pass.elements.push_back(&element);
  if (auto* const bounded = element.trait<BoundedWork>()) pass.bounded.push_back(bounded);
  if (!element.shape().on_device) return;
  pass.on_device.push_back(&element);
  pass.grouping.push_back(element.trait<Grouping>());
  pass.divisible.push_back(element.trait<Divisible>());
  pass.demand.push_back(element.trait<DeviceDemand>());
}

void Pipeline::make_departures() {
  departure_ = first<Departure>();
  if (departure_ == nullptr) return;
  passes_.emplace_back();
  for (const auto& element : elements_) {
    if (element->trait<Departure>() == departure_ || element == elements_.back()) add_to_pass(*element);
  }
}

bool Pipeline::changes_behind(const Element& element) const {
  std::size_t e = 0;
  while (e < elements_.size() && !is_or_wraps(*elements_[e], element)) ++e;
  for (std::size_t behind = e + 1; behind < elements_.size() && pass_of_[behind] == pass_of_[e]; ++behind) {
    if (elements_[behind]->shape().payloads == Payloads::changed) return true;
  }
  return false;
}

std::vector<std::uint32_t> Pipeline::areas(unsigned pass) const {
  std::vector<std::uint32_t> bytes;
  for (std::size_t e = 0; e < elements_.size(); ++e) {
    const bool is_there =
        is_departing(pass) ? std::ranges::count(passes_[pass].elements, elements_[e].get()) != 0 : pass_of_[e] == pass;
    bytes.push_back(is_there ? elements_[e]->shape().bytes_per_frame : 0);
  }
  return bytes;
}

Expected<void> Pipeline::check_memory(const Plan& plan) const {
  for (const MemoryNeed* const need : all<MemoryNeed>()) {
    if (auto ok = need->check_memory(plan); !ok) return ok;
  }
  return {};
}

Expected<void> Pipeline::prepare(Plan plan) {
  plan.pipeline = this;
  plan.sends = plan.sends && sends_;
  for (const auto& element : elements_) {
    if (auto ok = element->prepare(plan); !ok) return ok;
  }
  return {};
}

Expected<void> Pipeline::attach(device::Gpu& gpu, const DevicePlan& plan) {
  for (const auto& element : elements_) {
    if (auto ok = element->attach(gpu, plan); !ok) return ok;
  }
  return {};
}

void Pipeline::detach(std::uint32_t device) {
  for (const auto& element : elements_) element->detach(device);
}

std::optional<std::size_t> Pipeline::without_detach() const {
  for (std::size_t e = 0; e < elements_.size(); ++e) {
    if (!elements_[e]->can_detach()) return e;
  }
  return std::nullopt;
}

void Pipeline::classify(Batch& batch, Span span) {
  for (Span part{span.first, 0}; part.first < span.end(); part.first += part.count) {
    part.count = std::min<std::uint32_t>(span.end() - part.first, most_classified);
    if (passes_[batch.pass].admits) {
      for (Ingress* const ingress : ingress_) ingress->admit(batch, part);
    }
    for (Element* const element : passes_[batch.pass].elements) element->classify(batch, part);
  }
}

void Pipeline::compute(Batch& batch, Span span) {
  for (Element* const element : passes_[batch.pass].on_device) element->compute(batch, span);
}

std::uint64_t Pipeline::compute_shared(Batch& batch, ComputeShare& share) {
  const Pass& pass = passes_[batch.pass];
  std::uint64_t spared = 0;
  for (std::size_t e = 0; e < pass.on_device.size(); ++e) {
    Divisible* const divisible = pass.divisible[e];
    const std::uint32_t jobs = divisible == nullptr ? 0 : divisible->jobs(batch);
    if (jobs >= least_shared) {
      spared += share.run(*divisible, batch, jobs);
    } else {
      pass.on_device[e]->compute(batch, {0, batch.count});
    }
  }
  return spared;
}

void Pipeline::null_result(Batch& batch) {
  for (Element* const element : passes_[batch.pass].on_device) {
    if (auto* const device = element->trait<NullDevice>()) device->null_result(batch);
  }
}

void Pipeline::lost(Batch& batch, bool in_doubt) {
  for (Element* const element : passes_[batch.pass].on_device) {
    if (auto* const recovery = element->trait<Recovery>()) {
      recovery->lost(batch);
    } else if (in_doubt && element->shape().payloads == Payloads::changed) {
      for (std::uint32_t i = 0; i < batch.count; ++i) {
        if (batch.is_live(i)) batch.drop(i, device_lost);
      }
    }
  }
}

std::uint64_t Pipeline::bounded_ticks(const Batch& batch) const {
  std::uint64_t ticks = 0;
  for (const BoundedWork* const work : passes_[batch.pass].bounded) ticks += work->bounded_ticks(batch);
  return ticks;
}

packet::Reason Pipeline::judge_from_host(std::uint32_t lane, const std::uint8_t* frame, std::uint32_t length) const {
  for (const HostGate* const gate : gates_) {
    const packet::Reason reason = gate->judge_from_host(lane, frame, length);
    if (reason != packet::no_reason) return reason;
  }
  return packet::no_reason;
}

void Pipeline::idle(std::uint32_t lane, std::uint64_t tsc, Emitter& out) {
  for (Timer* const timer : timers_) timer->idle(lane, tsc, out);
}

Expected<void> Pipeline::launch(std::span<Batch* const> batches, device::GpuStream& stream) {
  const Pass& pass = passes_[batches.front()->pass];
  if (pass.fusion) {
    const auto fused = pass.fusion->launch(batches, stream);
    if (!fused) return tl::unexpected(fused.error());
    if (*fused) return {};
  }
  for (std::size_t e = 0; e < pass.on_device.size(); ++e) {
    std::array<Batch*, most_together> those;
    std::size_t count = 0;
    for (Batch* const batch : batches) {
      if (pass.needs_device(e, *batch)) those[count++] = batch;
    }
    if (count > 1 && pass.grouping[e] != nullptr) {
      if (auto ok = pass.grouping[e]->launch_together(std::span(those).first(count), stream); !ok) return ok;
      continue;
    }
    for (Batch* const batch : std::span(those).first(count)) {
      if (auto ok = pass.on_device[e]->launch(*batch, stream); !ok) return ok;
    }
  }
  return {};
}

bool Pipeline::needs_device(const Batch& batch) const {
  const Pass& pass = passes_[batch.pass];
  for (std::size_t e = 0; e < pass.on_device.size(); ++e) {
    if (pass.needs_device(e, batch)) return true;
  }
  return false;
}

void Pipeline::compute_rest(Batch& batch) {
  const Pass& pass = passes_[batch.pass];
  for (std::size_t e = 0; e < pass.on_device.size(); ++e) {
    if (!pass.needs_device(e, batch)) pass.on_device[e]->compute(batch, {0, batch.count});
  }
}

Expected<void> Pipeline::begin_cycle(std::uint32_t device, device::GpuStream& stream) {
  for (DeviceCycle* const cycle : cycles_) {
    if (auto ok = cycle->begin_cycle(device, stream); !ok) return ok;
  }
  return {};
}

bool Pipeline::device_ready(std::uint32_t device) {
  bool ready = true;
  for (DeviceCycle* const cycle : cycles_) ready = cycle->device_ready(device) && ready;
  return ready;
}

void Pipeline::device_gone(std::uint32_t device) {
  for (DeviceCycle* const cycle : cycles_) cycle->device_gone(device);
}

Expected<std::string> Pipeline::reload(Pipeline& fresh) {
  std::vector<Element::Change> changes(elements_.size());
  for (const bool ends : {false, true}) {
    for (std::size_t e = 0; e < elements_.size(); ++e) {
      if (elements_[e]->shape().ends_chain != ends) continue;
      auto change = elements_[e]->reload(*fresh.elements_[e]);
      if (!change) return tl::unexpected(change.error());
      changes[e] = std::move(*change);
    }
  }
  std::string text;
  for (const bool ends : {true, false}) {
    for (std::size_t e = 0; e < elements_.size(); ++e) {
      if (elements_[e]->shape().ends_chain != ends) continue;
      if (changes[e].commit) changes[e].commit();
      add_part(text, changes[e].text);
    }
  }
  return text;
}

void Pipeline::stopped() {
  for (Output* const output : all<Output>()) output->stopped();
}

std::string Pipeline::lost_output() const {
  std::string lost;
  for (const Output* const output : all<Output>()) add_part(lost, output->lost_output());
  return lost;
}

std::vector<Metric> Pipeline::metrics() const {
  std::vector<Metric> all_of_them;
  for (const Metrics* const element : all<Metrics>()) {
    for (const Metric& metric : element->metrics()) all_of_them.push_back(metric);
  }
  return all_of_them;
}

Expected<Element::Change> Element::reload(Element& /*fresh*/) {
  return make_error("this element has nothing that can change while it runs: restart the gateway");
}

Tables::Memory Pipeline::AllTables::memory() const {
  Memory all;
  for (const Tables* const part : parts) {
    const Memory one = part->memory();
    all.bytes += one.bytes;
    all.keys.insert(all.keys.end(), one.keys.begin(), one.keys.end());
  }
  return all;
}

void Pipeline::AllTables::watch_loading(TableProgress progress) {
  for (Tables* const part : parts) part->watch_loading(progress);
}

// The mistakes of all of them.
Expected<void> Pipeline::AllTables::read() {
  std::string mistakes;
  for (Tables* const part : parts) {
    if (const auto ok = part->read(); !ok) mistakes += (mistakes.empty() ? "" : "\n") + ok.error().message;
  }
  if (!mistakes.empty()) return make_error(mistakes);
  return {};
}

void Pipeline::AllTables::take_read(Tables& checked) {
  auto& others = static_cast<AllTables&>(checked).parts;
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i]->take_read(*others[i]);
}

void Pipeline::AllTables::leave_to_eal() {
  for (Tables* const part : parts) part->leave_to_eal();
}

std::vector<std::string> Pipeline::AllTables::notes() const {
  std::vector<std::string> all;
  for (const Tables* const part : parts) {
    for (std::string& note : part->notes()) all.push_back(std::move(note));
  }
  return all;
}

}  // namespace sluice::engine
