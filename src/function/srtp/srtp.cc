#include "function/srtp/srtp.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "crypto/selftest.h"
#include "engine/options.h"
#include "engine/pipeline.h"
#include "function/routing.h"
#include "function/srtp/address_settings.h"
#include "function/srtp/rtsp/srtp_service.h"
#include "function/srtp/rtsp_settings.h"
#include "function/srtp/srtp_area.h"
#include "function/srtp/srtp_settings.h"

namespace sluice::function {

engine::Shape Srtp::shape() const {
  return {.bytes_per_frame = Area::per_frame, .payloads = engine::Payloads::changed, .on_device = true};
}

void* Srtp::find_trait(std::string_view name) {
  if (name == MediaStreams::trait_name) return streams_ ? static_cast<MediaStreams*>(&*streams_) : nullptr;
  if (name == engine::Service::trait_name) return service_.get();
  return engine::offer<engine::Metrics, engine::DeviceCycle, engine::Grouping, engine::Recovery, engine::HostGate,
                       engine::ChainRule, engine::NullDevice, engine::Divisible>(name, this);
}

// A bridge's frames are not addressed to the twins, so that the host would not have them.
bool Srtp::check_chain(const engine::Pipeline& pipeline, Settings& section, bool was_right,
                       const std::function<std::string(std::string_view)>& chain_with) const {
  const bool is_routed = pipeline.first<Routing>() != nullptr;
  if (section.has("rtsp") && !is_routed) {
    section.error("rtsp",
                  "the proxy needs a router, which is the last function: set [engine] chain = " + chain_with("route"));
    return false;
  }
  if (!was_right || !is_routed) return true;
  for (Settings& stream : section.sections("stream")) {
    const auto destination = packet::IpAddress::parse(stream.text("destination", ""));
    if (destination && is_of_many(*destination)) stream.error("destination", many_before_router);
  }
  return true;
}

Expected<void> Srtp::prepare(const engine::Plan& plan) {
  if (plan.forwarders) {
    return make_error("[srtp] cannot have forwarders: a stream is one thread's. Take [engine] forwarder_cores away");
  }
  lanes_count_ = plan.lanes;
  for (std::uint32_t lane = 0; lane < plan.lanes; ++lane) {
    auto cpu = crypto::Cpu::make();
    if (!cpu) return make_error("[srtp] " + cpu.error().message);
    lanes_.push_back(std::make_unique<LaneState>(std::move(*cpu)));
  }
  for (std::uint32_t helper = 0; helper < plan.helpers; ++helper) {
    auto cpu = crypto::Cpu::make();
    if (!cpu) return make_error("[srtp] " + cpu.error().message);
    helpers_.push_back(std::move(*cpu));
  }
  if (auto ok = crypto::self_test(lanes_.front()->cpu); !ok) return make_error("[srtp] " + ok.error().message);
  auto keys = crypto::KeyTable::make(options_.max_keys, true);
  if (!keys) return make_error("[srtp] " + keys.error().message);
  keys_.emplace(std::move(*keys));
  current_.emplace(std::size_t{lanes_count_} * (engine::batches_range.most + 1));
  auto spent = SpentKeys::make();
  if (!spent) return make_error("[srtp] " + spent.error().message);
  streams_.emplace(*keys_, *current_, std::size_t{2} * options_.max_keys, options_.largest_frame, options_.ports,
                   options_.rtsp ? &*options_.rtsp : nullptr, std::move(*spent));
  if (plan.pipeline != nullptr && plan.pipeline->first<Routing>() != nullptr) streams_->stand_before_router();
  auto streams = streams_->prepare(options_.streams);
  if (!streams) return make_error("[srtp] " + streams.error().message);
  streams_->commit(*streams);
  streams_->warn_of_the_files_keys(options_.streams);
  options_.streams.clear();  // and their keys
  service_ = rtsp::make_srtp_service(*streams_);
  return {};
}

Expected<void> Srtp::attach(device::Gpu& gpu, const engine::DevicePlan& plan) {
  if (!plan.launches) return {};
  const std::uint32_t packet_bytes = device_packet_bytes(plan.frame_bytes);
  if (auto ok = devices_.attach(gpu, plan, *keys_, packet_bytes); !ok)
    return make_error("[srtp] " + ok.error().message);
  most_on_device_ = capacity_on_device_ = packet_bytes;
  return {};
}

Expected<void> Srtp::begin_cycle(std::uint32_t device, device::GpuStream& stream) {
  return devices_.begin_cycle(device, stream);
}

void Srtp::device_gone(std::uint32_t device) {
  devices_.gone(device);
}

Expected<void> Srtp::launch(engine::Batch& batch, device::GpuStream& stream) {
  engine::Batch* const one = &batch;
  return launch_together({&one, 1}, stream);
}

Expected<void> Srtp::launch_together(std::span<engine::Batch* const> batches, device::GpuStream& stream) {
  std::array<crypto::GpuBatch, engine::most_together> all;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    const Area a(area(*batches[b]), batches[b]->capacity);
    all[b] = {a.jobs, a.verdicts, a.header->jobs, a.header->sums ? a.sums : nullptr, &a.header->runs};
  }
  return devices_.run(batches.front()->device, std::span(all).first(batches.size()), stream);
}

std::vector<engine::Metric> Srtp::metrics() const {
  std::vector<engine::Metric> all = {
      {"srtp_streams", "5-tuples whose media is protected or unprotected", streams_ ? streams_->size() : 0, false},
      {"srtp_protected_rtp", "RTP packets that were protected"},
      {"srtp_protected_rtcp", "RTCP packets that were protected"},
      {"srtp_unprotected_rtp", "SRTP packets that were authenticated and unprotected"},
      {"srtp_unprotected_rtcp", "SRTCP packets that were authenticated and unprotected"},
      {"srtp_passed_others", "packets of streams that passed as they came: neither RTP nor RTCP, or without a key"},
      {"srtp_kept_from_device", "of what was protected or unprotected, packets that only a core could compute"},
      {"srtp_clear_rtcp_passed", "RTCP packets of SRTP clients that passed in clear (accept_clear_rtcp)"},
      {"srtp_to_rtsp_proxy", "frames of RTSP connections that were handed to the host for the proxy"},
      {"srtp_media_to_host", "UDP at the proxy's media ports that belongs to no stream: it went to the host"},
      {"srtp_ended_streams", "5-tuples whose SRTP stream has ended and is guarded still",
       streams_ ? streams_->guarded() : 0, false},
      {"srtp_guards_cut_short", "guards of ended SRTP streams that went early, to give way",
       streams_ ? streams_->guards_cut_short() : 0},
      {"srtp_keys_again", "SRTP streams that came back to a key which they had before, and begin their indexes anew",
       streams_ ? streams_->keys_again() : 0},
      {"srtp_keys_shared", "SRTP streams that came with a master key which another stream protects with",
       streams_ ? streams_->keys_shared() : 0},
      {"srtp_leaving_streams", "SRTP streams that were taken out, and whose keys wait until no lane uses them",
       streams_ ? streams_->leaving() : 0, false},
      {"srtp_measuring_streams", "SRTP streams whose rate is measured and not known yet",
       streams_ ? streams_->measuring() : 0, false},
      {"srtp_raises_refused", "SRTP streams that brought more than before, and for more there was no capacity",
       streams_ ? streams_->raises_refused() : 0},
  };
  for (const auto& lane : lanes_) {
    const engine::Counter* const counters[] = {&lane->protected_rtp,    &lane->protected_rtcp, &lane->unprotected_rtp,
                                               &lane->unprotected_rtcp, &lane->others,         &lane->kept,
                                               &lane->clear_rtcp,       &lane->to_proxy,       &lane->unmatched};
    for (std::size_t i = 0; i < std::size(counters); ++i) all[i + 1].value += counters[i]->get();
  }
  return all;
}

Expected<engine::Element::Change> Srtp::reload(Element& fresh) {
  const SrtpOptions& wanted = static_cast<const Srtp&>(fresh).options_;
  if (std::string fixed = option::fixed("[srtp]", srtp_settings(), options_, wanted); !fixed.empty()) {
    return make_error(std::move(fixed));
  }
  if (wanted.rtsp.has_value() != options_.rtsp.has_value()) {
    return make_error("[srtp.rtsp] cannot come or go while the gateway runs: restart it");
  }
  if (wanted.rtsp) {
    if (std::string changes = rtsp_changes(*options_.rtsp, *wanted.rtsp); !changes.empty()) return make_error(changes);
  }
  auto made = streams_->prepare(wanted.streams);
  if (!made) return make_error("[srtp] " + made.error().message);
  const std::size_t count = made->configured;
  // std::function wants to be copied.
  auto streams = std::make_shared<Streams::Replacement>(std::move(*made));
  return Change{std::to_string(count) + " SRTP stream" + (count == 1 ? " is" : "s are") + " in force",
                [this, streams, drops = wanted.drops_unprotected] {
                  streams_->commit(*streams);
                  drops_unprotected_.store(drops, std::memory_order_relaxed);
                }};
}

}  // namespace sluice::function
