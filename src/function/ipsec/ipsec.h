// The element "ipsec": an IPsec gateway (RFC 4301) with ESP (RFC 4303) and AH (RFC 4302), tunnel and transport mode,
// over IPv4 and IPv6, in UDP or not (RFC 3948). SAs and policies are the configuration's, the API's, or an IKE daemon's
// (ipsec/xfrm/server.h); what they mean: docs/ipsec.md.
//
// It stands first in its chain, in front of a router, and is called twice.
// In, before all others: ESP and AH to this gateway are opened. What comes out of them is new to all behind: it is
// admitted, classified, inspected and routed as any other packet. What came in clear is dropped if a policy wants it
// protected.
// Out, behind all others: what is about to leave is sealed if a policy protects it, in the pass of departures
// (engine/traits.h, Departure). The router sends it where the outer header says.
//
// The calls for a batch, in both directions:
//   admit()     in: finds the SA of a frame in the databases, and makes the packet's job.
//   choose()    out: finds the policy of a frame and its SA.
//   classify()  out: puts headers on, and makes the packet's job; in: judges what came in clear.
//   compute()   does the jobs of a batch at once, in place, by intel-ipsec-mb, with helpers by compute_jobs(); launch()
//               does the same on a GPU.
//   apply()     in: asks the anti-replay window, takes headers off and asks the inbound policy.
// Frames that are of no SA have no job, and cost a device nothing.
//
// A packet is *kept from a GPU*, and computed by the lane's core when its frame is applied, if its key is not there
// yet, if GPUs cannot do its algorithm, or if its buffer is too small. Sealing in place cannot be done twice: of a
// batch that a failing GPU may have begun, its packets are dropped (device_lost), and all other frames go on.
//
// Size: what is too large for the way with its headers on is fragmented first, if it is IPv4 without DF; else its
// sender is notified (RFC 4301 section 8.2), in the name of the router.
//
// Two SAs: of ESP with AH around it both headers are put on in classify(), ESP is the batch's job, and the lane's core
// does AH in apply(). What came out of an SA and is of one again is opened there, too, up to four times in all.
//
// Fragments of outer packets are put together in admit(), and the path's MTU is learnt there from ICMP errors that come
// by (ipsec/path_mtus.h).
//
// Any lane may open and seal for any SA: sequence numbers are taken in order for each burst, and windows are shared
// (ipsec/sequence.h, replay_window.h). Order of a flow is its lane's.
//
// Threads: as of engine::Element. Nothing is allocated on the packet path but fragments, from the pool of the frame.
// Memory: 120 pinned bytes for each frame of a batch; 1.3 MB for each lane, for fragments of outer packets; keys, SAs
// and policies: ipsec/databases.h.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "crypto/cpu.h"
#include "crypto/key_table.h"
#include "engine/counters.h"
#include "engine/element.h"
#include "engine/pipeline.h"
#include "engine/port_table.h"
#include "engine/self_check.h"
#include "engine/traits.h"
#include "engine/view.h"
#include "function/device_crypto.h"
#include "function/ipsec/drop_reasons.h"
#include "function/ipsec/ipsec_area.h"
#include "function/ipsec/ipsec_settings.h"
#include "function/outer_fragments.h"
#include "ipsec/databases.h"
#include "ipsec/outer_packet.h"
#include "ipsec/packet_format.h"
#include "ipsec/packet_key.h"
#include "ipsec/spd.h"

namespace sluice::function {

class IpsecControl;
class IpsecWatch;
class Routing;

class Ipsec final : public engine::Element,
                    public engine::Ingress,
                    public engine::Departure,
                    public engine::TxHook,
                    public engine::Metrics,
                    public engine::DeviceCycle,
                    public engine::Grouping,
                    public engine::Recovery,
                    public engine::DeviceDemand,
                    public engine::NullDevice,
                    public engine::Divisible,
                    public engine::ChainRule,
                    public engine::SelfCheck,
                    public engine::View {
 public:
  Ipsec(IpsecOptions options, const engine::PortTable& ports);
  ~Ipsec() override;

  engine::Shape shape() const override;
  void* find_trait(std::string_view name) override;
  Expected<void> prepare(const engine::Plan& plan) override;
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override;
  void detach(std::uint32_t device) override { devices_.detach(device); }
  bool can_detach() const override { return true; }
  // From the first authenticated byte to the end of the ICV, at most, for a GPU where frames have `frame_bytes`: ESP
  // behind the longest of outer headers (Ethernet, IPv6, UDP). What is longer is kept from the GPU.
  static constexpr std::uint32_t device_packet_bytes(std::uint32_t frame_bytes) { return frame_bytes - 62; }
  void admit(engine::Batch& batch, engine::Span span) override;
  void classify(engine::Batch& batch, engine::Span span) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  Expected<void> launch_together(std::span<engine::Batch* const> batches, device::GpuStream& stream) override;
  void compute(engine::Batch& batch, engine::Span span) override;
  // Not of those that are kept from a device.
  std::uint32_t jobs(const engine::Batch& batch) const override;
  void compute_jobs(engine::Batch& batch, engine::Span some, std::uint32_t thread) override;
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) override;
  void choose(engine::Batch& batch, engine::Span span, const std::uint16_t* came_by, engine::Emitter& out) override;
  // What leaves past both, as what hooks of ports make does, does not leave in clear where a policy protects it. Copies
  // for a monitor port leave as they are.
  bool hooks(std::uint16_t port) const override { return !ports_[port].is_virtual; }
  unsigned leave(std::uint32_t lane, std::uint16_t port, rte_mbuf** frames, unsigned count,
                 engine::Emitter& out) override;
  Expected<Change> reload(Element& fresh) override;

  void lost(engine::Batch& batch) override;
  bool needs_device(const engine::Batch& batch) const override;
  Expected<void> begin_cycle(std::uint32_t device, device::GpuStream& stream) override;
  void device_gone(std::uint32_t device) override;
  // As if every ICV were right: what leaves then is no IPsec.
  void null_result(engine::Batch& batch) override;
  std::vector<engine::Metric> metrics() const override;
  std::vector<engine::Trouble> troubles() const override;
  std::string view() const override;
  bool check_chain(const engine::Pipeline& pipeline, Settings& section, bool was_right,
                   const std::function<std::string(std::string_view)>& chain_with) const override;

  // Once prepared.
  ipsec::Databases& databases() { return *databases_; }
  const ipsec::Databases& databases() const { return *databases_; }

 private:
  // What choose() has found out about rows that go to the pass of departures, for classify().
  struct Chosen {
    ipsec::Sa* sa;  // null: the router alone
    const ipsec::PacketFormat* format;
    ipsec::InnerPacket inner;
    std::uint32_t most = 0;       // bytes of the largest inner packet that fits
    ipsec::Sa* around = nullptr;  // whose AH is put around ESP
    const ipsec::PacketFormat* around_format = nullptr;
  };
  struct Found;
  // The SAs that a packet came out of, the outermost first.
  struct Through {
    static constexpr std::size_t most = 4;
    std::array<ipsec::Sa*, most> sas;
    std::uint32_t count = 0;
    std::span<ipsec::Sa* const> all() const { return {sas.data(), count}; }
    ipsec::Sa& innermost() const { return *sas[count - 1]; }
  };
  // Of a lane, whose frames one thread classifies and applies.
  struct alignas(64) Lane {
    explicit Lane(crypto::Cpu of_lane) : cpu(std::move(of_lane)) {}
    crypto::Cpu cpu;
    engine::Counter opened, opened_bytes, sealed, sealed_bytes, kept, small, dummies, fragmented, answered;
    engine::Counter pieces, reassembled, incomplete;
    OuterFragments fragments;
    ipsec::PolicyCache in_cache, out_cache;
    std::array<ipsec::PacketKey, engine::most_classified> keys;  // of the burst at hand
    std::vector<Chosen> chosen;  // of the last choose(), and fragments; classify() takes them in order
    std::size_t next_chosen = 0;
    const ipsec::View* view = nullptr;  // from choose() to the classify() that follows
  };

  static const ipsec::PacketFormat& format_of(const ipsec::Sa& sa) {
    return sa.outer.load(std::memory_order_acquire)->format;
  }
  Lane& lane_of(const engine::Batch& batch) { return *lanes_[batch.lane]; }
  // Places among the readers of the databases.
  std::size_t reader_of(const engine::Batch& batch) const;
  std::size_t reader_of_lane(std::uint32_t lane) const;

  void begin(engine::Batch& batch, const IpsecArea& area, const ipsec::View* view);
  // Where a job is in the area. In a full batch the next one of both kinds is the same.
  struct Place {
    std::uint32_t index;
    bool kept;  // from the device
  };
  // Of a job at hand, whose data are `bytes` from frame[offset] on.
  Place take_place(const engine::Batch& batch, const IpsecArea& area, std::uint32_t i, const ipsec::Sa& sa,
                   std::uint32_t offset, std::uint32_t bytes) const;
  static void note_job(const IpsecArea& area, Place place, const ipsec::Sa& sa, std::uint32_t bytes);
  void compute_kept(const engine::Batch& batch, const IpsecArea& area);

  // ipsec_in.cc
  void look_at(engine::Batch& batch, const IpsecArea& area, std::uint32_t i, ipsec::Sa& sa,
               const ipsec::OuterView& outer);
  static packet::Reason begin_opening(const engine::Batch& batch, std::uint32_t i, ipsec::Sa& sa,
                                      const ipsec::OuterView& outer, crypto::Job& job, IpsecArea::Work& work);
  void check_clear(engine::Batch& batch, engine::Span span);
  static void fetch_ahead(const engine::Batch& batch, const IpsecArea& area, std::uint32_t i);
  void apply_in(engine::Batch& batch, engine::Span span, const IpsecArea& area);
  packet::Reason open(engine::Batch& batch, const IpsecArea::Work& work, crypto::Verdict verdict,
                      const ipsec::View& view, Through& through);
  void open_again(engine::Batch& batch, engine::Span span, const ipsec::View& view, std::span<Through> through);
  void check_opened(engine::Batch& batch, engine::Span span, std::span<const Through> through, const ipsec::View& view);

  // ipsec_fragments.cc
  bool put_together(engine::Batch& batch, std::uint32_t i, const ipsec::OuterView& outer, std::uint32_t now);
  bool fragment(engine::Batch& batch, std::uint32_t i, std::uint32_t most, Chosen& whole);

  // ipsec_around.cc
  packet::Reason put_ah_around(engine::Batch& batch, std::uint32_t i, const Chosen& chosen, const ipsec::View& view,
                               IpsecArea::Work& work);
  void finish_around(engine::Batch& batch, std::span<const std::uint32_t> rows, const IpsecArea& area);

  // ipsec_out.cc
  void classify_out(engine::Batch& batch, engine::Span span, const IpsecArea& area);
  void put_on(engine::Batch& batch, std::uint32_t i, const IpsecArea& area, const Chosen& chosen, std::uint64_t number);
  static void finish(engine::Batch& batch, std::uint32_t i, const IpsecArea::Work& work, const crypto::Job& job);
  void apply_out(engine::Batch& batch, engine::Span span, const IpsecArea& area, engine::Emitter& out);
  void choose_for(engine::Batch& batch, std::uint32_t i, std::uint16_t came_by, const ipsec::PolicyEntry& policy,
                  const ipsec::PacketKey& key, engine::Emitter& out);
  void note_looked_at(engine::Batch& batch, std::uint32_t i) const;
  void choose_none(engine::Batch& batch, engine::Span span) const;
  static void prefetch_chosen(const engine::Batch& batch, std::span<const std::uint32_t> rows,
                              const ipsec::PolicyEntry* const* found, const ipsec::View& view);
  void look_at_departed(engine::Batch& batch, engine::Span span);
  void seal_run(engine::Batch& batch, engine::Span run, const IpsecArea& area, ipsec::Sa& sa);
  bool is_protected(std::uint32_t lane, const rte_mbuf& frame);
  bool is_of_host(const std::uint8_t* frame, const ipsec::PacketKey& key) const;
  static bool may_come_in_clear(const ipsec::View& view, const ipsec::PacketKey& key, Lane& lane);

  // ipsec_size.cc
  std::uint32_t mtu_of(const engine::Batch& batch, std::uint32_t i) const;
  static void choose_size(Chosen& chosen, std::uint32_t mtu);
  bool may_be_fragmented(engine::Batch& batch, std::uint32_t i, std::uint16_t came_by, const Chosen& chosen,
                         engine::Emitter& out);
  void answer_too_big(engine::Batch& batch, std::uint32_t i, std::uint16_t came_by, std::uint32_t mtu,
                      engine::Emitter& out);

  IpsecOptions options_;
  const engine::PortTable ports_;
  std::optional<crypto::KeyTable> keys_;  // outlives the databases
  std::unique_ptr<ipsec::Databases> databases_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<crypto::Cpu> helpers_;  // of threads that compute beside lanes
  DeviceCrypto devices_;
  std::uint32_t on_device_ = 0;             // bits, by crypto::Cipher
  std::uint32_t most_on_device_ = 0;        // bytes of a packet
  Routing* routing_ = nullptr;              // the router, which is prepared later
  const engine::Egress* egress_ = nullptr;  // the same; null: there is none
  std::uint64_t looked_at_ = 0;             // a flag of mbufs: policies have been asked
  std::unique_ptr<IpsecControl> control_;
  std::unique_ptr<IpsecWatch> watch_;
};

}  // namespace sluice::function
