#include "function/srtp/srtp.h"

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/prefetch.h"
#include "crypto/selftest.h"
#include "engine/batch_edit.h"
#include "engine/options.h"
#include "engine/pipeline.h"
#include "function/routing.h"
#include "function/srtp/address_settings.h"
#include "function/srtp/clear_media.h"
#include "function/srtp/rewrite.h"
#include "function/srtp/rtsp_settings.h"
#include "packet/checksum.h"

namespace sluice::function {
namespace {

struct alignas(64) Header {
  const MediaStreamTable* table;
  std::uint64_t installs;  // that the device has
  std::uint64_t now;       // when frames were classified last
  std::uint32_t jobs;      // at places [0, jobs): the device's, or the core's in its stead
  std::uint32_t kept;      // at [kept, capacity), the last frame's first: the core's alone
  std::uint32_t finished;
  bool kept_done;
  bool sums;             // a job asks for some
  bool stands_in;        // nothing was computed, and no sum is right
  device::RunList runs;  // of the device's jobs
};
// So many bytes for each frame of the smallest batch hold it.
constexpr std::uint32_t header_per_frame = 11;
static_assert(sizeof(Header) <= header_per_frame * engine::batch_range.least);

// What is to be known of a job until its packet is finished.
struct Work {
  srtp::Pending pending;
  MediaLeg* leg;  // null: finished
  MediaStream* stream;
  std::uint32_t frame;  // its index in the batch
  std::uint16_t udp_offset;
  bool rtcp : 1, protects : 1;
  bool checks : 1;   // the UDP checksum, by the job's sum before
  bool makes : 1;    // a new one, by the sum after
  bool unowned : 1;  // prepared when the stream was nobody's yet
};
static_assert(sizeof(Work) == 48);

// How many frames ahead of the one that is judged what it needs is asked for: its frame, and the state of its stream.
constexpr std::uint32_t frame_ahead = 8, state_ahead = 4;

// Of a frame: the place of its job, or one of these.
constexpr std::uint32_t passes = 0xffffffff, hands_over = 0xfffffffe;  // to the host
constexpr std::uint32_t drops = 0x80000000;                            // and the reason

constexpr std::uint32_t per_frame = header_per_frame + sizeof(crypto::Job) + sizeof(Work) + sizeof(std::uint32_t) +
                                    sizeof(crypto::Sums) + sizeof(crypto::Verdict);

// Frames that are classified together.
constexpr std::uint32_t looks = 32;

constexpr std::uint32_t drop(packet::Reason reason) {
  return drops | reason;
}

std::size_t reader_of(const engine::Batch& batch) {
  return std::size_t{batch.lane} * engine::batches_range.most + batch.slot;
}

}  // namespace

// Jobs stand close together, in the order of frames; those that are kept from a device at the other end.
struct Srtp::Area {
  Area(std::byte* area, std::uint32_t capacity)
      : header(reinterpret_cast<Header*>(area)),
        jobs(reinterpret_cast<crypto::Job*>(area + sizeof(Header))),
        works(reinterpret_cast<Work*>(jobs + capacity)),
        places(reinterpret_cast<std::uint32_t*>(works + capacity)),
        sums(reinterpret_cast<crypto::Sums*>(places + capacity)),
        verdicts(reinterpret_cast<crypto::Verdict*>(sums + capacity)),
        capacity(capacity) {}

  std::uint32_t jobs_in_all() const { return header->jobs + capacity - header->kept; }
  // The i-th of all.
  std::uint32_t place(std::uint32_t i) const { return i < header->jobs ? i : header->kept + i - header->jobs; }

  Header* header;
  crypto::Job* jobs;
  Work* works;
  std::uint32_t* places;  // by frame
  crypto::Sums* sums;
  crypto::Verdict* verdicts;
  std::uint32_t capacity;
};

// A frame of a burst, with all there is to know before its stream is looked at.
struct Srtp::Look {
  MediaFrame media;
  std::uint64_t hash;
  MediaStream* stream;  // in all likelihood; null: unknown
};

engine::Shape Srtp::shape() const {
  return {.bytes_per_frame = per_frame, .payloads = engine::Payloads::changed, .on_device = true};
}

void* Srtp::find_trait(std::string_view name) {
  if (name == MediaStreams::trait_name) return streams_ ? static_cast<MediaStreams*>(&*streams_) : nullptr;
  return engine::offer<engine::Metrics, engine::DeviceCycle, engine::Grouping, engine::Recovery, engine::HostGate,
                       engine::ChainRule, engine::NullDevice>(name, this);
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
  return {};
}

Expected<void> Srtp::attach(device::Gpu& gpu, const engine::DevicePlan& plan) {
  if (!plan.launches) return {};
  const std::uint64_t installs = keys_->installs();
  const std::uint32_t packet_bytes = device_packet_bytes(plan.frame_bytes);
  auto made = crypto::GpuCrypto::create(
      gpu, *keys_,
      {.max_packets = plan.batch_capacity, .max_packet_bytes = packet_bytes, .together = engine::most_of_one_lane});
  if (!made) return make_error("[srtp] " + made.error().message);
  most_on_device_ = room_on_device_ = packet_bytes;
  devices_.emplace_back(new OnDevice{std::move(*made), {installs}});
  return {};
}

// What is launched from now on finds the keys, whatever its stream.
Expected<void> Srtp::begin_cycle(std::uint32_t device, device::GpuStream& stream) {
  OnDevice& on = *devices_[device];
  const std::uint64_t installs = keys_->installs();
  if (auto ok = on.crypto->sync(stream); !ok) return ok;
  if (on.crypto->up_to_date()) on.installs.store(installs, std::memory_order_release);
  return {};
}

void Srtp::device_gone(std::uint32_t device) {
  devices_[device]->installs.store(~std::uint64_t{0}, std::memory_order_release);
}

// That all of them have: which one a batch goes to is not known yet.
std::uint64_t Srtp::installs_on_devices() const {
  std::uint64_t least = ~std::uint64_t{0};
  for (const auto& device : devices_) least = std::min(least, device->installs.load(std::memory_order_acquire));
  return least;
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
  return devices_[batches.front()->device]->crypto->run(std::span(all).first(batches.size()), stream);
}

void Srtp::classify(engine::Batch& batch, engine::Span span) {
  const Area a(area(batch), batch.capacity);
  if (span.first == 0) {
    Header& header = *a.header;
    header.table = current_->pin(reader_of(batch));
    header.installs = installs_on_devices();
    header.jobs = header.finished = 0;
    header.kept = batch.capacity;
    header.kept_done = header.sums = header.stands_in = false;
    header.runs.clear();
  }
  for (std::uint32_t i = span.first; i < span.end(); i += looks) {
    classify_some(batch, a, i, std::min(span.end() - i, looks));
  }
}

// With many streams their state is in no cache: it is asked for, step by step, for all frames at once.
void Srtp::classify_some(const engine::Batch& batch, const Area& a, std::uint32_t first, std::uint32_t count) {
  Look look[looks];
  a.header->now = rte_rdtsc();
  const MediaStreamSlots::View& view = a.header->table->view();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t of = first + i;
    read_media_frame(reinterpret_cast<const std::uint8_t*>(batch.frame[of]), batch.length[of], look[i].media);
    look[i].hash = look[i].media.kind == MediaFrameKind::other ? 0 : hash_of(look[i].media.key);
    view.prefetch(look[i].hash);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    look[i].stream = view.probable(look[i].hash);
    if (look[i].stream != nullptr) look[i].stream->prefetch();
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (look[i].stream != nullptr) look[i].stream->prefetch_channels();
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (look[i].stream != nullptr) look[i].stream->prefetch_state(batch.lane);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t of = first + i;
    if (batch.goes_on(of)) [[likely]] {
      a.places[of] = place_of(batch, a, of, look[i]);
    } else {
      a.places[of] = batch.is_live(of) ? place_of_transit(batch, a, of, look[i].media) : passes;
    }
  }
}

std::uint32_t Srtp::place_of(const engine::Batch& batch, const Area& a, std::uint32_t i, const Look& look) {
  const MediaFrame& media = look.media;
  if (media.kind == MediaFrameKind::other) return rtsp_flows_.empty() ? passes : place_of_other(batch, i);
  if (media.kind == MediaFrameKind::odd) {
    const auto* const frame = reinterpret_cast<const std::uint8_t*>(batch.frame[i]);
    const packet::Reason why = look_at_odd(*a.header->table, frame, batch.length[i], media);
    return why != packet::no_reason ? drop(why) : passes;
  }
  MediaStream* const stream = a.header->table->view().find(media.key, look.hash);
  if (stream == nullptr) {
    const auto* const frame = reinterpret_cast<const std::uint8_t*>(batch.frame[i]);
    if (server_media_.may_be(media.key) || goes_on_in_clear(frame, batch.length[i], media)) [[unlikely]]
      return drop(srtp_unprotected);
    if (has_media_ports_) look_at_stray(batch.lane, *a.header->table, media.key);
    return passes;
  }
  const std::uint32_t place =
      media.kind == MediaFrameKind::bad ? drop(srtp_malformed) : prepare_packet(batch, a, i, media, *stream);
  const bool goes_on = place == passes || (place & drops) == 0;
  if (!goes_on) [[unlikely]] {
    stream->rare().refuse(static_cast<packet::Reason>(place & ~drops), a.header->now);
    return place;
  }
  stream->came(a.header->now);
  if (const MediaKey* const ends = stream->leaves(); ends != nullptr) [[unlikely]] {
    rewrite_ends(batch.data(i), media.udp_offset, *ends);  // before what forwards looks where it goes
  }
  return place;
}

// Of a frame that the kernel is to forward, which neither protects nor unprotects: no frame of a stream goes that way,
// and none gets new ends.
[[gnu::noinline]] std::uint32_t Srtp::place_of_transit(const engine::Batch& batch, const Area& a, std::uint32_t i,
                                                       const MediaFrame& media) const {
  const std::uint8_t* const frame = batch.data(i);
  packet::Reason why = packet::no_reason;
  if (media.kind != MediaFrameKind::other) {
    why = look_at_odd(*a.header->table, frame, batch.length[i], media);
  } else if (rtsp_flows_.look_at(frame, batch.length[i]) == RtspFrame::past) {
    why = srtp_rtsp_past_proxy;
  }
  return why != packet::no_reason ? drop(why) : passes;
}

// A later fragment has no ports.
packet::Reason Srtp::look_at_odd(const MediaStreamTable& table, const std::uint8_t* frame, std::uint32_t length,
                                 const MediaFrame& media) const {
  const MediaKey& key = media.key;
  if (MediaStream* const stream = table.find(key)) stream->rare().refuse(srtp_not_plain, rte_rdtsc());
  if (table.may_concern(key)) return srtp_not_plain;
  const bool later = key.source_port == 0 && key.destination_port == 0;
  const bool clear = server_media_.may_be(key, later) || goes_on_in_clear(frame, length, media);
  return clear ? srtp_unprotected : packet::no_reason;
}

// Of no stream. What goes to an address of `listen` is the host's.
bool Srtp::goes_on_in_clear(const std::uint8_t* frame, std::uint32_t length, const MediaFrame& media) const {
  if (!drops_unprotected_.load(std::memory_order_relaxed) || !may_be_clear_media(frame, length, media)) return false;
  if (!has_media_ports_) return true;
  const MediaKey& key = media.key;
  return !options_.rtsp->is_explicit(packet::IpAddress::from_bytes(static_cast<int>(key.family), key.destination));
}

// UDP of no stream at the proxy's own ports: the host's, like all that is addressed to it.
[[gnu::noinline]] void Srtp::look_at_stray(std::uint32_t lane, const MediaStreamTable& table, MediaKey key) {
  const RtspOptions& rtsp = *options_.rtsp;
  const std::uint16_t port = packet::be16(key.destination_port);
  if (port < rtsp.first_media_port || port > rtsp.last_media_port) return;
  const auto to = packet::IpAddress::from_bytes(static_cast<int>(key.family), key.destination);
  key.source_port = key.destination_port = 0;
  if (rtsp.is_explicit(to) || table.may_concern(key)) lanes_[lane]->strays.add(1);
}

std::uint32_t Srtp::prepare_packet(const engine::Batch& batch, const Area& a, std::uint32_t i, const MediaFrame& media,
                                   MediaStream& stream) {
  auto* const frame = reinterpret_cast<std::uint8_t*>(batch.frame[i]);
  std::uint8_t* const payload = frame + media.payload_offset();
  const std::uint32_t length = udp_payload_length(frame, media);
  const std::uint32_t buffer = engine::room_from(batch, i);
  // What is unprotected gets shorter.
  const std::uint32_t most = stream.protects() ? std::min(buffer, options_.largest_frame) : buffer;
  if (most < media.payload_offset() + length) return drop(srtp_too_big);
  bool unowned = false;
  if (!stream.is_of(batch.lane) || !stream.may_come_by(batch.row[i].port)) [[unlikely]] {
    const packet::Reason why = look_at_lane(batch.lane, batch.row[i].port, stream, unowned);
    if (why != packet::no_reason) return drop(why);
  }
  if (!stream.conforms(batch.length[i], rte_rdtsc)) return drop(srtp_policed);
  bool rtcp = false;
  MediaLeg* const leg = stream.leg_for({payload, length}, rtcp);
  if (leg == nullptr) return place_without_key(batch.lane, rtcp, stream);
  srtp::Channel* const channel = &*leg->channel;
  const bool for_device = stream.installs() <= a.header->installs && length + channel->overhead() <= most_on_device_ &&
                          buffer - media.payload_offset() >= room_on_device_;
  const std::uint32_t place = for_device ? a.header->jobs : a.header->kept - 1;
  Work& work = a.works[place];
  crypto::Job& job = a.jobs[place];
  const srtp::Packet packet{payload, length, most - media.payload_offset()};
  const bool sums = for_device && !devices_.empty() && has_udp_checksum(frame, media);
  const bool checks = sums && stream.protects() && !channel->marks_at_once(packet);
  if (stream.protects() && !checks && !udp_checksum_ok(frame, media)) return drop(srtp_bad_checksum);
  const srtp::Status status = unowned ? channel->prepare_unowned(packet, stream.first_roc(), job, work.pending)
                                      : channel->prepare(packet, job, work.pending);
  if (status != srtp::Status::ok) {
    return drop(checks && !udp_checksum_ok(frame, media) ? srtp_bad_checksum : reason_of(status));
  }
  work.leg = leg;
  work.stream = &stream;
  work.frame = i;
  work.udp_offset = media.udp_offset;
  work.rtcp = rtcp;
  work.protects = stream.protects();
  work.checks = checks;
  work.makes = sums;
  work.unowned = unowned;
  if (sums) {
    job.flags |=
        static_cast<std::uint8_t>(checks ? crypto::job_sums_before | crypto::job_sums_after : crypto::job_sums_after);
    a.header->sums = true;
  }
  a.verdicts[place] = crypto::Verdict::tag_mismatch;  // until it is computed
  if (for_device) [[likely]] {
    a.header->jobs = place + 1;
    a.header->runs.add(job.data, length + (work.protects ? channel->overhead() : 0));
  } else {
    a.header->kept = place;
  }
  return place;
}

// Of a stream that is not this lane's, as far as is known: why not, or that it may become so.
[[gnu::noinline]] packet::Reason Srtp::look_at_lane(std::uint32_t lane, std::uint16_t port, MediaStream& stream,
                                                    bool& unowned) const {
  if (!stream.may_come_by(port)) return srtp_wrong_port;
  if (stream.settings().keyless != Keyless::no) return packet::no_reason;
  if (stream.is_claimed()) return srtp_other_lane;
  unowned = stream.waits_for_authentic();
  return unowned || stream.claim(lane, port) ? packet::no_reason : srtp_other_lane;
}

// What the proxy terminates is the host's.
std::uint32_t Srtp::place_of_other(const engine::Batch& batch, std::uint32_t i) {
  switch (rtsp_flows_.look_at(reinterpret_cast<const std::uint8_t*>(batch.frame[i]), batch.length[i])) {
    case RtspFrame::rtsp:
      lanes_[batch.lane]->to_proxy.add(1);
      return hands_over;
    case RtspFrame::past:
      return drop(srtp_rtsp_past_proxy);
    case RtspFrame::fragment:
      return drop(srtp_rtsp_fragment);
    case RtspFrame::none:
      break;
  }
  return passes;
}

[[gnu::cold, gnu::noinline]] std::uint32_t Srtp::place_without_key(std::uint32_t lane, bool rtcp, MediaStream& stream) {
  switch (stream.settings().keyless) {
    case Keyless::ended:
      stream.note();
      return drop(srtp_ended);
    case Keyless::passes:
      stream.note();
      stream.rare().pass();
      lanes_[lane]->others.add(1);
      return passes;
    case Keyless::passes_rtcp:
      if (!rtcp) return drop(srtp_not_media);
      stream.note();
      stream.rare().pass();
      lanes_[lane]->clear_rtcp.add(1);
      return passes;
    case Keyless::drops_rtcp:
      if (!rtcp) return drop(srtp_not_media);
      stream.note();  // its client is there
      return drop(srtp_clear_rtcp);
    case Keyless::no:
      break;
  }
  if (!stream.passes_others()) return drop(srtp_not_media);
  stream.rare().pass();
  lanes_[lane]->others.add(1);
  return passes;
}

void Srtp::compute(engine::Batch& batch, engine::Span span) {
  const Area a(area(batch), batch.capacity);
  const std::span<const Work> works(a.works, a.header->jobs);
  const auto at = [&](std::uint32_t frame) {
    return static_cast<std::size_t>(std::ranges::lower_bound(works, frame, {}, &Work::frame) - works.begin());
  };
  const std::size_t from = at(span.first);
  const std::size_t jobs = at(span.end()) - from;
  if (jobs == 0) return;
  lanes_[batch.lane]->cpu.run(*keys_, {a.jobs + from, jobs}, {a.verdicts + from, jobs},
                              {a.sums + from, a.header->sums ? jobs : 0});
}

[[gnu::noinline]] void Srtp::compute_kept(const engine::Batch& batch, const Area& a) {
  const std::uint32_t kept = batch.capacity - a.header->kept;
  LaneState& lane = *lanes_[batch.lane];
  lane.cpu.run(*keys_, {a.jobs + a.header->kept, kept}, {a.verdicts + a.header->kept, kept});
  lane.kept.add(kept);
  a.header->kept_done = true;
}

void Srtp::lost(engine::Batch& batch) {
  const Area a(area(batch), batch.capacity);
  for (std::uint32_t job = 0; job < a.header->jobs; ++job) {
    const Work& work = a.works[job];
    work.leg->channel->abandon(work.pending);
    work.stream->rare().drop(engine::device_lost);
    a.places[work.frame] = drop(engine::device_lost);
  }
  a.header->jobs = 0;
}

void Srtp::null_result(engine::Batch& batch) {
  const Area a(area(batch), batch.capacity);
  for (std::uint32_t i = 0; i < a.jobs_in_all(); ++i) {
    a.verdicts[a.place(i)] = crypto::Verdict::done;
    a.sums[a.place(i)] = {};
  }
  a.header->kept_done = a.header->stands_in = true;
}

// A cycle after it was collected a frame, and perhaps the state of its stream, is in no cache.
void Srtp::fetch_ahead(const engine::Batch& batch, const Area& a, std::uint32_t i) {
  if (i + frame_ahead < batch.count) {
    const std::uint32_t place = a.places[i + frame_ahead];
    prefetch(reinterpret_cast<const void*>(batch.frame[i + frame_ahead]));
    prefetch(batch.mbuf[i + frame_ahead]);
    if (place < drops) prefetch(a.works[place].leg, sizeof(MediaLeg));
  }
  if (i + state_ahead < batch.count) {
    const std::uint32_t place = a.places[i + state_ahead];
    if (place < drops) a.works[place].leg->channel->prefetch_finish(a.works[place].pending);
  }
}

void Srtp::apply(engine::Batch& batch, engine::Span span, engine::Emitter& /*out*/) {
  const Area a(area(batch), batch.capacity);
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    fetch_ahead(batch, a, i);
    const std::uint32_t place = a.places[i];
    if (place == passes || !batch.is_live(i)) continue;
    if (place == hands_over) {
      batch.to_host(i);
    } else if ((place & drops) != 0) {
      batch.drop(i, static_cast<packet::Reason>(place & ~drops));
    } else if (!batch.goes_on(i)) [[unlikely]] {
      a.works[place].stream->rare().drop(srtp_not_plain);
      batch.drop(i, srtp_not_plain);  // an element in front has left it to the kernel since
    } else if (const packet::Reason why = finish(batch, a, i, place); why != packet::no_reason) [[unlikely]] {
      a.works[place].stream->rare().drop(why);
      batch.drop(i, why);
    }
  }
  if (span.end() == batch.count) release(batch, a);
}

packet::Reason Srtp::finish(engine::Batch& batch, const Area& a, std::uint32_t i, std::uint32_t place) {
  if (place >= a.header->kept && !a.header->kept_done) [[unlikely]] {
    compute_kept(batch, a);
  }
  Work& work = a.works[place];
  MediaLeg& leg = *std::exchange(work.leg, nullptr);
  srtp::Channel& channel = *leg.channel;
  ++a.header->finished;
  const crypto::Verdict verdict = a.verdicts[place];
  auto* const frame = reinterpret_cast<std::uint8_t*>(batch.frame[i]);
  if (work.checks && verdict == crypto::Verdict::done && !a.header->stands_in &&
      !udp_checksum_ok(frame, work.udp_offset, a.sums[place].before)) [[unlikely]] {
    channel.withdraw(work.pending);
    return srtp_bad_checksum;
  }
  if (work.unowned && verdict == crypto::Verdict::done && !work.stream->claim(batch.lane, batch.row[i].port))
      [[unlikely]] {
    channel.abandon(work.pending);  // another lane was first
    return srtp_other_lane;
  }
  if (const srtp::Status status = channel.finish(work.pending, verdict); status != srtp::Status::ok) {
    return reason_of(status);
  }
  const std::uint32_t length = set_length(frame, a, place);
  engine::set_length(batch, i, length);
  LaneState& lane = *lanes_[batch.lane];
  engine::Counter& counter = work.protects ? (work.rtcp ? lane.protected_rtcp : lane.protected_rtp)
                                           : (work.rtcp ? lane.unprotected_rtcp : lane.unprotected_rtp);
  counter.add(1);
  leg.left.add(length);
  if (work.rtcp && !work.protects) work.stream->note();  // who sends it is alive
  return packet::no_reason;
}

// With the checksums that follow.
std::uint32_t Srtp::set_length(std::uint8_t* frame, const Area& a, std::uint32_t place) {
  const Work& work = a.works[place];
  const srtp::Pending& pending = work.pending;
  if (!work.makes) return set_udp_payload_length(frame, work.udp_offset, pending.length);
  std::uint16_t sum = a.sums[place].after;
  if (pending.behind_tag != 0) [[unlikely]] {  // in no job
    const std::uint32_t at = pending.length - std::uint32_t{pending.behind_tag};
    const std::uint8_t* const bytes = frame + work.udp_offset + sizeof(packet::UdpHeader) + at;
    const std::uint16_t rest = packet::fold_sum(packet::partial_sum(bytes, pending.behind_tag));
    sum = packet::fold_sum32(std::uint32_t{sum} + (at % 2 == 0 ? rest : __builtin_bswap16(rest)));
  }
  return set_udp_payload_length(frame, work.udp_offset, pending.length, sum);
}

void Srtp::release(const engine::Batch& batch, const Area& a) {
  // Another element may have dropped some.
  const std::uint32_t jobs = a.jobs_in_all();
  for (std::uint32_t job = 0; a.header->finished != jobs && job < jobs; ++job) {
    Work& work = a.works[a.place(job)];
    if (work.leg == nullptr) continue;
    std::exchange(work.leg, nullptr)->channel->abandon(work.pending);
    ++a.header->finished;
  }
  current_->unpin(reader_of(batch));
}

std::vector<engine::Figure> Srtp::figures() const {
  std::vector<engine::Figure> all = {
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
      {"srtp_guards_cut_short", "guards of ended SRTP streams that went early, to make room",
       streams_ ? streams_->guards_cut_short() : 0},
      {"srtp_keys_again", "SRTP streams that came back to a key which they had before, and begin their indexes anew",
       streams_ ? streams_->keys_again() : 0},
      {"srtp_keys_shared", "SRTP streams that came with a master key which another stream protects with",
       streams_ ? streams_->keys_shared() : 0},
      {"srtp_leaving_streams", "SRTP streams that were taken out, and whose keys wait until no lane uses them",
       streams_ ? streams_->leaving() : 0, false},
      {"srtp_measuring_streams", "SRTP streams whose rate is measured and not known yet",
       streams_ ? streams_->measuring() : 0, false},
      {"srtp_raises_refused", "SRTP streams that brought more than before, and for more there was no room",
       streams_ ? streams_->raises_refused() : 0},
  };
  for (const auto& lane : lanes_) {
    const engine::Counter* const counters[] = {&lane->protected_rtp,    &lane->protected_rtcp, &lane->unprotected_rtp,
                                               &lane->unprotected_rtcp, &lane->others,         &lane->kept,
                                               &lane->clear_rtcp,       &lane->to_proxy,       &lane->strays};
    for (std::size_t i = 0; i < std::size(counters); ++i) all[i + 1].value += counters[i]->get();
  }
  return all;
}

Expected<engine::Element::Change> Srtp::reload(Element& fresh) {
  const SrtpOptions& wanted = static_cast<const Srtp&>(fresh).options_;
  if (wanted.max_keys != options_.max_keys) {
    return make_error("[srtp] max_keys cannot change while the gateway runs: restart it");
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
