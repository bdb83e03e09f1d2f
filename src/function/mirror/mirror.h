// The element "mirror": copies of frames leave by another port, where somebody looks at them (SPAN).
//
// rx: a frame as it is at the element's place in the chain, with what elements behind it drop. tx: a frame as it leaves
// its port, the host's too. A tunnel's port has inner frames. The port under it has what is no tunnel's, and as tx the
// outer frames, too. A copy never leaves at the cost of an original:
//   The monitor port is offered each burst once, behind the bursts of all other ports. What it does not take is dropped
//   as `mirror_full`.
//   A copy is skipped while fewer than an eighth of the frame's pool is free. It is skipped, too, once the oldest frame
//   that waits has used three quarters of its deadline.
//
// The port is used for nothing else, and has no twin: what comes in by it is dropped as `mirror_port`.
//
// Threads: as of Element. Memory: a byte for each frame. Cost: docs/mirror.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/published.h"
#include "engine/counters.h"
#include "engine/element.h"
#include "engine/traits.h"
#include "engine/view.h"
#include "function/mirror/sessions.h"

struct rte_mempool;

namespace sluice::function {

inline const packet::Reason mirror_full =
    packet::register_reason("mirror_full", "a copy that its monitor port did not take at once");
inline const packet::Reason mirror_port = packet::register_reason("mirror_port", "it came in by a monitor port");

class Mirror final : public engine::Element, public engine::TxHook, public engine::Metrics, public engine::View {
 public:
  explicit Mirror(MirrorOptions options) : options_(std::move(options)) {}

  engine::Shape shape() const override {
    return {.bytes_per_frame = 1, .payloads = engine::Payloads::read_late};  // copies have them
  }
  void* find_trait(std::string_view name) override {
    return engine::offer<engine::TxHook, engine::Metrics, engine::View>(name, this);
  }
  Expected<void> prepare(const engine::Plan& plan) override;
  void classify(engine::Batch& batch, engine::Span span) override;
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) override;
  Expected<Change> reload(Element& fresh) override;

  // A reload may make any port one whose frames are copied, or one for copies.
  bool hooks(std::uint16_t /*port*/) const override { return true; }
  bool offers_once(std::uint16_t port) const override { return is_in(to_, port); }
  packet::Reason not_taken(std::uint32_t lane, std::uint16_t port, unsigned count) override;
  unsigned leave(std::uint32_t lane, std::uint16_t port, rte_mbuf** frames, unsigned count,
                 engine::Emitter& out) override;
  // Of all sessions since the start.
  std::vector<engine::Metric> metrics() const override;
  // Each session's since it has its name, and what each monitor port did not take since the start.
  std::string view() const override;

 private:
  // A session keeps its place as long as there is one of its name. Those that go and those that come with a reload have
  // none in common: lanes may still count for the former.
  static constexpr std::size_t places = std::size_t{2} * most_sessions;
  struct Copies {
    std::uint64_t copied = 0, cut = 0, skipped = 0;
  };
  // One writer, the lane's forwarding thread.
  struct alignas(64) Tally {
    struct OfSession {
      engine::Counter copied, cut, skipped;
    };
    std::array<OfSession, places> session;
    std::array<engine::Counter, engine::max_ports> lost;  // by monitor port
    const MirrorSessions* reading = nullptr;              // while leave() is under way, which may call itself
  };
  struct Shown {
    std::string name, to;
    std::uint16_t port;
    std::uint8_t tally;
    Copies before;  // of the place's last session
  };
  static bool is_in(const std::atomic<PortBits>& ports, std::uint16_t port) {
    return (ports.load(std::memory_order_relaxed) >> port & 1) != 0;
  }
  // Of each frame; mirror.cc.
  std::uint8_t* came_in_by(const engine::Batch& batch) const { return reinterpret_cast<std::uint8_t*>(area(batch)); }
  void publish(std::unique_ptr<MirrorSessions> sessions);
  void give_places(MirrorSessions& sessions);
  Copies copies_at(std::size_t place) const;
  std::uint64_t lost_at(std::uint16_t port) const;
  bool may_copy(const rte_mempool* pool, const engine::Emitter& out) const;
  void copy_leaving(const MirrorSessions& sessions, std::uint32_t lane, std::uint16_t port,
                    const rte_mbuf* const* frames, unsigned count, engine::Emitter& out);
  template <typename Clone>
  void copy(const MirrorSessions& sessions, const MirrorSessions::Frame& frame, const rte_mempool* pool, Tally& tally,
            const engine::Emitter& out, const Clone& clone) const;

  MirrorOptions options_;
  std::optional<Published<const MirrorSessions>> current_;  // readers: each lane's forwarding thread
  std::atomic<PortBits> tx_from_{0}, to_{0};                // of these
  std::vector<Tally> tallies_;
  mutable std::mutex showing_;
  std::vector<Shown> shown_;      // the sessions in force
  std::uint64_t latest_tsc_ = 0;  // a frame that has waited longer has no time for copies; 0: there is no such thing
  bool is_first_ = false;         // no element decides before this one
};

}  // namespace sluice::function
