// The element "srtp": protects RTP and RTCP of a table of streams on their way out and unprotects SRTP and SRTCP
// on their way in (RFC 3711, 6188, 7714), in frames of any port. Streams are the configuration's and, while lanes run,
// what others add and remove (media_streams.h): the API, and the RTSP proxy, to which the frames of RTSP connections go
// as the host's (rtsp_flows.h); those that its kernel would forward all the same do not leave it (rtsp_guard.h).
//
// A stream is a UDP 5-tuple in one direction, IPv4 or IPv6 (media_stream.h). A frame of a stream leaves protected, or
// unprotected and authenticated, with new lengths and checksums, or it is dropped under one of the names below: it
// never goes on as it came. Every other frame passes untouched, but for what could be media of the RTSP proxy's servers
// (server_media.h), or with `unprotected` = "drop" anyone's (clear_media.h): nothing of these goes on in clear,
// whatever became of its stream. A stream of the proxy's explicit mode is addressed to the proxy: its frames get new
// addresses and ports, too (rewrite.h), before what forwards looks where they go.
//
// It stands before the bridge and the router alike: chain = ["srtp", "route"].
//   classify()  finds the stream, prepares the packet: crypto::Job
//   compute()   the jobs of a batch at once, in place, by intel-ipsec-mb, with helpers by compute_jobs(); launch() the
//               same on a GPU (crypto/gpu_crypto.h). Jobs are of packets of streams alone: other frames cost a device
//               nothing
//   apply()     finishes the packet: drops it, or sets its lengths and checksums
// The UDP checksum of what is to be protected is checked (a wrong one would become a right one), and made anew of what
// leaves. With a GPU that takes no more of a frame than its headers: the job asks for the payload's sums, and apply()
// does both. The core itself checks, in classify(), what it must know to be right by then
// (srtp::Channel::marks_at_once()) and what is kept from the GPU; without a GPU everything.
// As payloads change, an element that reads them is in another pass (engine/pipeline.h): behind this one it sees what
// was unprotected, and in front what is to be protected.
//
// A GPU has a copy of the keys, which begin_cycle() brings up to date. A packet is *kept from it*, and computed by the
// lane's core when its frame is judged, with all such packets of its batch, if its keys are not there yet (its stream
// has just come with a reload) or are derived anew on the way (a derivation rate), or if its buffer holds less than the
// longest packet behind its place (device_packet_bytes()), where copies of whole runs, and units, could write.
// Enciphering in place cannot be done twice: of a batch that a failing GPU may have begun, its packets are dropped
// (device_lost), and all other frames go on.
//
// What is UDP of a stream but no plain frame of it (a fragment, VLAN tags, IPv4 options, IPv6 extension headers), and
// what only the kernel could forward, is dropped too (srtp_not_plain): it must not pass in clear. Later fragments have
// no ports, so between the addresses of a stream no fragment of UDP passes but first ones of other ports.
//
// Reload: `unprotected` changes, and streams of the configuration come and go; one whose settings, keys included, stay
// the same keeps its indexes and windows, whatever its rate, its ingress and what becomes of `others`. One that keeps
// its key, and not what its indexes or windows are made by, is refused: they would begin anew. What a batch under way
// has found lives until it ends.
//
// Threads: as of engine::Element; without forwarders, because a stream's state is one thread's: its window is read when
// a packet is collected and moves when it is forwarded (prepare() says so). All frames of a stream must come by one
// lane (media_stream.h); the others are dropped (srtp_other_lane). What is to be unprotected is worked on by any lane
// until one has found a packet authentic: finish() claims the stream for it. Memory: 100 pinned bytes for each frame of
// a batch; keys and streams: docs/srtp.md; on a GPU what crypto/gpu_crypto.h says, of batches of the engine's size.
// Cost, estimated and not measured: of a frame of no stream 3 ns, of UDP one look-up more; of a stream's packet
// docs/srtp.md has it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/published.h"
#include "crypto/cpu.h"
#include "crypto/key_table.h"
#include "engine/counters.h"
#include "engine/element.h"
#include "engine/port_table.h"
#include "engine/service.h"
#include "engine/traits.h"
#include "function/device_crypto.h"
#include "function/srtp/drop_reasons.h"
#include "function/srtp/media_stream.h"
#include "function/srtp/rtsp_flows.h"
#include "function/srtp/rtsp_guard.h"
#include "function/srtp/server_media.h"
#include "function/srtp/streams.h"

namespace sluice::function {

class Srtp final : public engine::Element,
                   public engine::Metrics,
                   public engine::DeviceCycle,
                   public engine::Grouping,
                   public engine::Recovery,
                   public engine::HostGate,
                   public engine::ChainRule,
                   public engine::NullDevice,
                   public engine::Divisible {
 public:
  struct SrtpOptions {
    std::vector<MediaStreamSettings> streams;  // 5-tuples are unique; empty once prepare() has put them in force
    std::uint32_t max_keys = 4096;             // each stream takes one or two for each master key
    std::uint32_t largest_frame = 1514;
    bool drops_unprotected = false;  // what looks like media, and is of no stream (clear_media.h)
    std::optional<RtspOptions> rtsp;
    engine::PortTable ports;
  };

  explicit Srtp(SrtpOptions options)
      : options_(std::move(options)),
        rtsp_flows_(options_.rtsp ? RtspFlows(*options_.rtsp) : RtspFlows()),
        rtsp_guard_(options_.rtsp ? RtspGuard(*options_.rtsp) : RtspGuard()),
        server_media_(options_.rtsp ? ServerMedia(*options_.rtsp) : ServerMedia()),
        has_media_ports_(options_.rtsp && !options_.rtsp->listen.empty()),
        drops_unprotected_(options_.drops_unprotected) {}

  engine::Shape shape() const override;
  void* find_trait(std::string_view name) override;
  Expected<void> prepare(const engine::Plan& plan) override;
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override;
  void detach(std::uint32_t device) override { devices_.detach(device); }
  bool can_detach() const override { return true; }
  // From RTP's or RTCP's first byte to the end of the tag, at most, for a GPU where frames have `frame_bytes`.
  static constexpr std::uint32_t device_packet_bytes(std::uint32_t frame_bytes) { return frame_bytes - 62; }
  void classify(engine::Batch& batch, engine::Span span) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  Expected<void> launch_together(std::span<engine::Batch* const> batches, device::GpuStream& stream) override;
  void compute(engine::Batch& batch, engine::Span span) override;
  // Not of those that are kept from a device.
  std::uint32_t jobs(const engine::Batch& batch) const override;
  void compute_jobs(engine::Batch& batch, engine::Span some, std::uint32_t thread) override;
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) override;
  Expected<Change> reload(Element& fresh) override;

  void lost(engine::Batch& batch) override;
  Expected<void> begin_cycle(std::uint32_t device, device::GpuStream& stream) override;
  void device_gone(std::uint32_t device) override;
  // As if every tag were right: what leaves then is not SRTP.
  void null_result(engine::Batch& batch) override;
  packet::Reason judge_from_host(std::uint32_t /*lane*/, const std::uint8_t* frame,
                                 std::uint32_t length) const override {
    return rtsp_guard_.went_past(frame, length) ? srtp_rtsp_past_proxy : packet::no_reason;
  }
  std::vector<engine::Metric> metrics() const override;
  // The proxy needs a router, and behind one no stream may go to many.
  bool check_chain(const engine::Pipeline& pipeline, Settings& section, bool was_right,
                   const std::function<std::string(std::string_view)>& chain_with) const override;

 private:
  struct alignas(64) LaneState {
    explicit LaneState(crypto::Cpu of_lane) : cpu(std::move(of_lane)) {}
    crypto::Cpu cpu;
    engine::Counter protected_rtp, protected_rtcp, unprotected_rtp, unprotected_rtcp, others, kept, clear_rtcp,
        to_proxy, unmatched;
  };
  struct Area;

  struct Look;
  void classify_some(const engine::Batch& batch, const Area& area, std::uint32_t first, std::uint32_t count);
  // Where frame i stands: the place of its job, or what to do without one.
  std::uint32_t place_of(const engine::Batch& batch, const Area& area, std::uint32_t i, const Look& look);
  std::uint32_t place_of_transit(const engine::Batch& batch, const Area& area, std::uint32_t i,
                                 const MediaFrame& media) const;
  std::uint32_t prepare_packet(const engine::Batch& batch, const Area& area, std::uint32_t i, const MediaFrame& media,
                               MediaStream& stream);
  std::uint32_t place_of_other(const engine::Batch& batch, std::uint32_t i);
  packet::Reason look_at_odd(const MediaStreamTable& table, const std::uint8_t* frame, std::uint32_t length,
                             const MediaFrame& media) const;
  bool goes_on_in_clear(const std::uint8_t* frame, std::uint32_t length, const MediaFrame& media) const;
  void look_at_unmatched(std::uint32_t lane, const MediaStreamTable& table, MediaKey key);
  packet::Reason look_at_lane(std::uint32_t lane, std::uint16_t port, MediaStream& stream, bool& unowned) const;
  std::uint32_t place_without_key(std::uint32_t lane, bool rtcp, MediaStream& stream);
  void compute_kept(const engine::Batch& batch, const Area& area);
  packet::Reason finish(engine::Batch& batch, const Area& area, std::uint32_t i, std::uint32_t place);
  void release(const engine::Batch& batch, const Area& area);
  static void fetch_ahead(const engine::Batch& batch, const Area& area, std::uint32_t i);
  static std::uint32_t set_length(std::uint8_t* frame, const Area& area, std::uint32_t place);

  SrtpOptions options_;
  std::uint32_t lanes_count_ = 0;
  std::optional<crypto::KeyTable> keys_;  // outlives the streams
  std::vector<std::unique_ptr<LaneState>> lanes_;
  std::vector<crypto::Cpu> helpers_;  // of threads that compute beside lanes
  DeviceCrypto devices_;
  // What a packet's length and capacity must be for a GPU. Without one everything will do.
  std::uint32_t most_on_device_ = 0xffffffff, capacity_on_device_ = 0;
  // Its readers: batches, and each lane's collector.
  std::optional<Published<const MediaStreamTable>> current_;
  std::optional<Streams> streams_;            // their writer
  std::unique_ptr<engine::Service> service_;  // theirs
  RtspFlows rtsp_flows_;
  RtspGuard rtsp_guard_;
  ServerMedia server_media_;
  bool has_media_ports_ = false;  // [srtp.rtsp] listen
  std::atomic<bool> drops_unprotected_;
};

}  // namespace sluice::function
