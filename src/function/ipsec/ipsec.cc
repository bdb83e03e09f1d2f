#include "function/ipsec/ipsec.h"

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include <algorithm>
#include <array>
#include <utility>

#include "crypto/selftest.h"
#include "engine/batch_edit.h"
#include "engine/frame_marks.h"
#include "engine/options.h"
#include "engine/pipeline.h"
#include "function/ipsec/ipsec_area.h"
#include "function/ipsec/ipsec_control.h"
#include "function/ipsec/ipsec_watch.h"
#include "function/routing.h"

namespace sluice::function {
namespace {

// A lane's batches: of the first pass, and of departures.
constexpr std::size_t passes = 2;
// Of packets, within which a warp's may be: as of crypto's own order.
constexpr std::uint32_t range_bytes = 256;
constexpr std::size_t readers_of_lane = passes * engine::batches_range.most + 1;

Expected<std::uint64_t> register_flag() {
  rte_mbuf_dynflag flag{};
  std::snprintf(flag.name, sizeof flag.name, "sluice_ipsec_looked_at");
  const int bit = rte_mbuf_dynflag_register(&flag);
  if (bit < 0) return make_error("no flag of frames is free");
  return std::uint64_t{1} << bit;
}

// A warp with several algorithms does one after the other. One with several lengths takes as long as the longest: what
// is opened gains by an order a tenth to a fifth; what is sealed loses as much, since it is brought up whole first
// (docs/ipsec.md, what it costs).
bool is_worth_an_order(const IpsecArea::Header& header, bool opens) {
  return header.mixes_kinds || (header.mixes_lengths && opens);
}

}  // namespace

Ipsec::Ipsec(IpsecOptions options, const engine::PortTable& ports) : options_(std::move(options)), ports_(ports) {
  for (const CipherName& one : ipsec_ciphers()) {
    if (std::ranges::find(options_.cores_compute, one.name) == options_.cores_compute.end()) {
      on_device_ |= 1U << static_cast<unsigned>(one.cipher);
    }
  }
}
Ipsec::~Ipsec() = default;

engine::Shape Ipsec::shape() const {
  return {.bytes_per_frame = IpsecArea::per_frame,
          .payloads = engine::Payloads::changed,
          .changes_headers = true,
          .on_device = true};
}

void* Ipsec::find_trait(std::string_view name) {
  if (name == IpsecControl::trait_name) return control_.get();
  return engine::offer<engine::Ingress, engine::Departure, engine::TxHook, engine::Metrics, engine::DeviceCycle,
                       engine::Grouping, engine::Recovery, engine::DeviceDemand, engine::NullDevice, engine::Divisible,
                       engine::ChainRule, engine::SelfCheck, engine::View>(name, this);
}

bool Ipsec::check_chain(const engine::Pipeline& pipeline, Settings& section, bool /*was_right*/,
                        const std::function<std::string(std::string_view)>& chain_with) const {
  if (pipeline.first<Routing>() == nullptr) {
    section.error("",
                  "\"ipsec\" needs a router, which is the last function: set [engine] chain = " + chain_with("route"));
    return false;
  }
  if (pipeline.first<engine::Departure>() == this && pipeline.elements().front()->trait<engine::Departure>() == this) {
    return true;
  }
  engine::Element* const front = pipeline.elements().front().get();
  if (front->trait<engine::Ingress>() != nullptr && front->trait<Routing>() == nullptr) {
    section.error("",
                  "\"ipsec\" and another element that opens tunnels are not in one chain, since each stands first: "
                  "give each a gateway");
    return false;
  }
  section.error("", "\"ipsec\" stands first in [engine] chain, so that all others see what comes out of SAs");
  return false;
}

Expected<void> Ipsec::prepare(const engine::Plan& plan) {
  for (std::uint32_t lane = 0; lane < plan.lanes; ++lane) {
    auto cpu = crypto::Cpu::make();
    if (!cpu) return make_error("[ipsec] " + cpu.error().message);
    lanes_.push_back(std::make_unique<Lane>(std::move(*cpu)));
    lanes_.back()->chosen.reserve(std::size_t{4} * engine::most_classified);
  }
  for (std::uint32_t helper = 0; helper < plan.helpers; ++helper) {
    auto cpu = crypto::Cpu::make();
    if (!cpu) return make_error("[ipsec] " + cpu.error().message);
    helpers_.push_back(std::move(*cpu));
  }
  if (auto ok = crypto::self_test(lanes_.front()->cpu); !ok) return make_error("[ipsec] " + ok.error().message);
  // Of each SA one key; those of SAs that are removed wait until no lane uses them.
  const std::uint32_t sas = options_.max_sas + options_.max_sas / 4 + 16;
  auto keys = crypto::KeyTable::make(sas, true);
  if (!keys) return make_error("[ipsec] " + keys.error().message);
  keys_.emplace(std::move(*keys));
  databases_ = std::make_unique<ipsec::Databases>(
      *keys_, ipsec::DatabasesSettings{.sas = sas,
                                       .policies = options_.max_policies + options_.max_policies / 4 + 16,
                                       .lanes = plan.lanes,
                                       .readers = plan.lanes * readers_of_lane});
  const auto flag = register_flag();
  if (!flag) return make_error("[ipsec] " + flag.error().message);
  looked_at_ = *flag;
  if (auto ok = engine::register_source_verified(); !ok) return make_error("[ipsec] " + ok.error().message);
  if (plan.pipeline != nullptr) {
    routing_ = plan.pipeline->first<Routing>();
    egress_ = plan.pipeline->first<engine::Egress>();
  }
  auto control = IpsecControl::make(*databases_, {.sas = options_.max_sas, .policies = options_.max_policies});
  if (!control) return make_error("[ipsec] " + control.error().message);
  control_ = std::move(*control);
  if (auto ok = control_->load(options_); !ok) return make_error("[ipsec] " + ok.error().message);
  options_.sas.clear();  // with their keys
  watch_ = std::make_unique<IpsecWatch>(*databases_, options_.ike_socket);
  return watch_->start();
}

Expected<void> Ipsec::attach(device::Gpu& gpu, const engine::DevicePlan& plan) {
  if (!plan.launches) return {};
  const std::uint32_t packet_bytes = device_packet_bytes(plan.frame_bytes);
  if (auto ok = devices_.attach(gpu, plan, *keys_, packet_bytes); !ok)
    return make_error("[ipsec] " + ok.error().message);
  most_on_device_ = packet_bytes;
  return {};
}

Expected<void> Ipsec::begin_cycle(std::uint32_t device, device::GpuStream& stream) {
  return devices_.begin_cycle(device, stream);
}

void Ipsec::device_gone(std::uint32_t device) {
  devices_.gone(device);
}

std::size_t Ipsec::reader_of_lane(std::uint32_t lane) const {
  return lane * readers_of_lane;
}

// Batches take over what the lane holds, so their places are behind its own (base/published.h, pin()).
std::size_t Ipsec::reader_of(const engine::Batch& batch) const {
  return batch.lane * readers_of_lane + 1 + (batch.departs ? engine::batches_range.most : 0) + batch.slot;
}

// --- A batch ---

void Ipsec::begin(engine::Batch& batch, const IpsecArea& area, const ipsec::View* view) {
  IpsecArea::Header& header = *area.header;
  header.view = view;
  header.installs = devices_.installs();
  header.jobs = 0;
  header.kept = batch.capacity;
  header.kept_done = header.not_computed = false;
  header.mixes_kinds = header.mixes_lengths = false;
  header.runs.clear();
}

void Ipsec::classify(engine::Batch& batch, engine::Span span) {
  const IpsecArea area_of_batch(area(batch), batch.capacity);
  if (batch.departs) {
    classify_out(batch, span, area_of_batch);
  } else {
    check_clear(batch, span);
  }
}

Ipsec::Place Ipsec::take_place(const engine::Batch& batch, const IpsecArea& area, std::uint32_t i, const ipsec::Sa& sa,
                               std::uint32_t offset, std::uint32_t bytes) const {
  if (!devices_.is_there()) return {area.header->jobs, false};
  const bool for_device = sa.on_gpus && (on_device_ >> static_cast<unsigned>(sa.cipher) & 1) != 0 &&
                          sa.installs <= area.header->installs && bytes <= most_on_device_ &&
                          engine::capacity_from(batch, i) >= offset + most_on_device_;
  return for_device ? Place{area.header->jobs, false} : Place{area.header->kept - 1, true};
}

void Ipsec::note_job(const IpsecArea& area, Place place, const ipsec::Sa& sa, std::uint32_t bytes) {
  area.verdicts[place.index] = crypto::Verdict::tag_mismatch;  // until it is computed
  if (!place.kept) {
    const std::uint32_t kind = static_cast<std::uint32_t>(sa.cipher) << 8 | static_cast<std::uint32_t>(sa.hash);
    const std::uint32_t range = bytes / range_bytes;
    IpsecArea::Header& header = *area.header;
    if (header.jobs++ == 0) {
      header.kind = kind;
      header.range = range;
    }
    header.mixes_kinds |= kind != header.kind;
    header.mixes_lengths |= range != header.range;
    area.header->runs.add(area.jobs[place.index].data, bytes);
  } else {
    area.header->kept = place.index;
  }
}

void Ipsec::compute(engine::Batch& batch, engine::Span span) {
  const IpsecArea a(area(batch), batch.capacity);
  const std::span<const IpsecArea::Work> works(a.works, a.header->jobs);
  const auto at = [&](std::uint32_t frame) {
    return static_cast<std::size_t>(std::ranges::lower_bound(works, frame, {}, &IpsecArea::Work::frame) -
                                    works.begin());
  };
  const std::size_t from = at(span.first);
  const std::size_t jobs = at(span.end()) - from;
  if (jobs != 0) compute_jobs(batch, {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(jobs)}, 0);
}

std::uint32_t Ipsec::jobs(const engine::Batch& batch) const {
  return IpsecArea(area(batch), batch.capacity).header->jobs;
}

void Ipsec::compute_jobs(engine::Batch& batch, engine::Span some, std::uint32_t thread) {
  const IpsecArea a(area(batch), batch.capacity);
  crypto::Cpu& cpu = thread == 0 ? lane_of(batch).cpu : helpers_[thread - 1];
  cpu.run(*keys_, {a.jobs + some.first, some.count}, {a.verdicts + some.first, some.count});
}

[[gnu::noinline]] void Ipsec::compute_kept(const engine::Batch& batch, const IpsecArea& a) {
  const std::uint32_t kept = batch.capacity - a.header->kept;
  Lane& lane = lane_of(batch);
  lane.cpu.run(*keys_, {a.jobs + a.header->kept, kept}, {a.verdicts + a.header->kept, kept});
  lane.kept.add(kept);
  a.header->kept_done = true;
}

Expected<void> Ipsec::launch(engine::Batch& batch, device::GpuStream& stream) {
  engine::Batch* const one = &batch;
  return launch_together({&one, 1}, stream);
}

Expected<void> Ipsec::launch_together(std::span<engine::Batch* const> batches, device::GpuStream& stream) {
  std::array<crypto::GpuBatch, engine::most_together> all;
  std::size_t count = 0;
  for (engine::Batch* const batch : batches) {
    const IpsecArea a(area(*batch), batch->capacity);
    if (a.header->jobs == 0) continue;
    all[count] = {};
    all[count].jobs = a.jobs;
    all[count].verdicts = a.verdicts;
    all[count].count = a.header->jobs;
    all[count].opens = !batch->departs;
    all[count].makes_order = is_worth_an_order(*a.header, all[count].opens);
    all[count++].runs = &a.header->runs;
  }
  if (count == 0) return {};
  return devices_.run(batches.front()->device, std::span(all).first(count), stream);
}

bool Ipsec::needs_device(const engine::Batch& batch) const {
  const IpsecArea a(area(batch), batch.capacity);
  return a.header->jobs != 0 && a.header->jobs >= options_.gpu_at_least;
}

void Ipsec::lost(engine::Batch& batch) {
  const IpsecArea a(area(batch), batch.capacity);
  if (!needs_device(batch)) return;  // nothing was launched, and compute() follows
  for (std::uint32_t job = 0; job < a.header->jobs; ++job) {
    const std::uint32_t frame = a.works[job].frame;
    a.places[frame] = IpsecArea::no_place;
    batch.drop(frame, engine::device_lost);
  }
  a.header->jobs = 0;
}

void Ipsec::null_result(engine::Batch& batch) {
  const IpsecArea a(area(batch), batch.capacity);
  for (std::uint32_t i = 0; i < a.jobs_in_all(); ++i) a.verdicts[a.place(i)] = crypto::Verdict::done;
  a.header->kept_done = a.header->not_computed = true;
}

void Ipsec::apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) {
  const IpsecArea a(area(batch), batch.capacity);
  if (span.first == 0 && devices_.is_there() && !needs_device(batch)) lane_of(batch).small.add(a.header->jobs);
  if (a.header->kept != batch.capacity && !a.header->kept_done) [[unlikely]] {
    compute_kept(batch, a);
  }
  if (batch.departs) {
    apply_out(batch, span, a, out);
  } else {
    apply_in(batch, span, a);
  }
  if (span.end() == batch.count) databases_->unpin(reader_of(batch));
}

// --- What others see ---

std::vector<engine::Metric> Ipsec::metrics() const {
  std::vector<engine::Metric> all = {
      {"ipsec_sas", "security associations", databases_ ? databases_->sa_count() : 0, false},
      {"ipsec_policies", "policies", databases_ ? databases_->policy_count() : 0, false},
      {"ipsec_opened_packets", "packets of ESP and AH that were authenticated and opened"},
      {"ipsec_opened_bytes", "bytes of what came out of these"},
      {"ipsec_sealed_packets", "packets that were protected by ESP or AH"},
      {"ipsec_sealed_bytes", "bytes of these, before"},
      {"ipsec_kept_from_device", "of these packets, those that only a core could compute, or as cores_compute says"},
      {"ipsec_of_small_batches", "and those of batches with fewer than gpu_at_least"},
      {"ipsec_dummies", "dummy packets that came to hide traffic (RFC 4303 2.6)"},
      {"ipsec_fragmented", "packets that were fragmented before they were protected"},
      {"ipsec_size_answers", "ICMP errors to senders of packets that are too large with the headers of their SA"},
      {"ipsec_fragments", "fragments of ESP and AH that came, and were kept or completed a packet"},
      {"ipsec_reassembled", "packets of ESP and AH that were put together from fragments"},
      {"ipsec_fragment_timeout", "packets of ESP and AH of which fragments were missing for 30 s"},
      {"ipsec_path_mtus", "ways between the ends of SAs that turned out to be narrower, by ICMP errors",
       databases_ ? databases_->path_mtus_learnt() : 0},
  };
  for (const auto& lane : lanes_) {
    const engine::Counter* const counters[] = {&lane->opened,       &lane->opened_bytes, &lane->sealed,
                                               &lane->sealed_bytes, &lane->kept,         &lane->small,
                                               &lane->dummies,      &lane->fragmented,   &lane->answered,
                                               &lane->pieces,       &lane->reassembled,  &lane->incomplete};
    for (std::size_t i = 0; i < std::size(counters); ++i) all[i + 2].value += counters[i]->get();
  }
  return all;
}

std::vector<engine::Trouble> Ipsec::troubles() const {
  return watch_ ? watch_->troubles() : std::vector<engine::Trouble>();
}

Expected<engine::Element::Change> Ipsec::reload(Element& fresh) {
  const IpsecOptions& wanted = static_cast<Ipsec&>(fresh).options_;
  if (std::string fixed = option::fixed("[ipsec]", ipsec_settings(), options_, wanted); !fixed.empty()) {
    return make_error(std::move(fixed));
  }
  return control_->reload(wanted);
}

}  // namespace sluice::function
