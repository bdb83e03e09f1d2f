// The IPv4 and IPv6 router (RFC 1812, RFC 8200): checks, longest-prefix match, TTL, next-hop rewrite, MTU, ECMP.
//
// A header-only element: the device gets addresses, not frames. admit() checks a frame, classify() puts its destination
// into the router's area (route_batch.h); the device answers with the id of a next hop; apply() turns that into a frame
// on the wire. Per frame the link carries 4 (20) bytes up and 4 down.
//
// What the fast path does not do goes to the host's kernel through the port's TAP twin: the host's own traffic,
// destinations and gateways of the kernel's routes whose neighbour is not resolved, TTL that expires, packets larger
// than the next link (the kernel fragments or answers), IPv4 options, IPv6 hop-by-hop options, no route (the kernel
// answers). On a port without a twin these are drops under a name.
//
// Of the routes of `table`, which the kernel need not have, nothing goes there (route_own.cc). The router itself sends
// the ICMP errors for a TTL that expires and, unless IPv4 may be fragmented, for what is larger than the next link; at
// most Emitter::answers_per_second of them a lane. Frames with options are forwarded as they are. Dropped under a name
// are: what would have to be fragmented, IPv4 source routes, frames for a gateway whose neighbour is not resolved.
//
// Settings, [route]: max_ipv4, max_ipv6 (table sizes), table (a file of static routes), kernel and verify (mirror by
// netlink; read by control/), any_mac (for captures), look_up (by GPUs or cores), [[route.connected]] prefix, port;
// [[route.neighbour]] port, address, mac.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/element.h"
#include "engine/port_table.h"
#include "engine/tables.h"
#include "engine/traits.h"
#include "function/fused/fusable.h"
#include "function/route/adjacency.h"
#include "function/route/gpu_rest.h"
#include "function/route/route_batch.h"
#include "function/route/route_table.h"
#include "function/route/source_check.h"
#include "function/route/static_routes.h"
#include "function/routing.h"
#include "lookup/fib.h"
#include "lookup/gpu_fib.h"
#include "lookup/trie.h"
#include "packet/icmp_error.h"
#include "packet/parse.h"

namespace sluice::function {

class Router : public engine::Element,
               public engine::Tables,
               public engine::Ingress,
               public engine::DeviceCycle,
               public engine::Egress,
               public engine::NullDevice,
               public engine::DeviceDemand,
               public Routing,
               public Fusable {
 public:
  // Where there is a GPU: who looks up routes. automatic: cores, in a chain with a Departure (engine/traits.h), where a
  // frame is routed twice and the device has more to do.
  enum class LookUp : std::uint8_t { automatic, device, cores };
  struct RouterOptions {
    std::uint32_t max_ipv4 = 1'000'000;
    std::uint32_t max_ipv6 = 300'000;
    bool kernel = true;
    std::chrono::seconds verify{60};  // between comparisons with the kernel without an occasion; 0: never
    bool any_mac = false;             // take frames for any link address, as captures hold them
    LookUp look_up = LookUp::automatic;
    StaticOptions statics;
  };
  Router(RouterOptions options, const engine::PortTable& ports);
  ~Router() override;

  engine::Shape shape() const override {
    return {.bytes_per_frame = RouteArea::bytes_per_frame, .on_device = true, .ends_chain = true};
  }
  void* find_trait(std::string_view name) override {
    return engine::offer<engine::Tables, engine::Ingress, engine::DeviceCycle, engine::Egress, engine::NullDevice,
                         engine::DeviceDemand, Routing, Fusable>(name, this);
  }

  Memory memory() const override;
  void watch_loading(engine::TableProgress progress) override { progress_ = std::move(progress); }
  // What the configuration itself says about routes.
  Expected<void> read() override;
  void take_read(engine::Tables& checked) override;
  // No look-up after that.
  void leave_to_eal() override { fib_->leave_to_eal(); }

  // Makes the tables and loads what the configuration itself says about routes.
  Expected<void> prepare(const engine::Plan& plan) override;
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override;
  void detach(std::uint32_t device) override;
  bool can_detach() const override { return true; }
  void admit(engine::Batch& batch, engine::Span span) override;
  void classify(engine::Batch& batch, engine::Span span) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  bool join(const engine::Batch& batch, FusedWork& work) override;
  void compute(engine::Batch& batch, engine::Span span) override;
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) override;
  // Takes over the routes and neighbours that `fresh` was configured with, at once; table sizes stay.
  Expected<Change> reload(Element& fresh) override;

  // When the routes that were there when traffic began are in the device's tables.
  bool device_ready(std::uint32_t device) override;
  Expected<void> begin_cycle(std::uint32_t device, device::GpuStream& stream) override;
  // route_egress.cc
  std::uint16_t egress(const engine::Batch& batch, std::uint32_t i) const override;
  // The way of the IPv4 default route for everything.
  void null_result(engine::Batch& batch) override;
  bool needs_device(const engine::Batch& /*batch*/) const override { return !cores_look_up_; }

  RouteTable& table() override { return *table_; }
  std::uint32_t capacity(int family) const override { return family == 4 ? options_.max_ipv4 : options_.max_ipv6; }
  bool follows_kernel() const override { return options_.kernel; }
  std::chrono::seconds verify_interval() const override { return options_.verify; }
  // Whether all devices' tables hold every change that was made by now, or are about to: within a batch's time they do.
  // Any thread.
  bool devices_follow() const;
  lookup::Fib& fib() { return *fib_; }

 private:
  // Of a device: tables that follow the Fib.
  struct OnDevice {
    std::unique_ptr<lookup::Trie> trie4, trie6;
    std::unique_ptr<lookup::GpuFib> fib;
    GpuRest rest;
    bool ready = false;
    AdjacencyTable::Clock::time_point next_sync{};  // the worker's
  };
  RouteArea area_of(const engine::Batch& batch) const { return {area(batch), batch.capacity}; }
  // `port`: what the control plane says of it; null: nothing.
  packet::FrameKind look_closer(engine::Batch& batch, std::uint32_t i, const IngressTable::Port* port) const;
  void admit_all(engine::Batch& batch, engine::Span span);
  // Rows of one port. `check`: of what is for the router; null, and `checks` false: nothing is checked.
  template <bool described>
  void admit_port(engine::Batch& batch, engine::Span span);
  template <bool checks, bool described, typename Admitted>
  void admit_each(engine::Batch& batch, engine::Span span, const SourceCheck* check, const Admitted& admitted) const;
  template <bool checks, bool described>
  void admit_rows(engine::Batch& batch, engine::Span span, const SourceCheck* check);
  void give_all_to_host(engine::Batch& batch, engine::Span span) const;
  bool may_be_for_host(const std::uint8_t* ipv4_frame) const;
  std::uint16_t egress_of_transit(const std::uint8_t* frame, std::uint32_t length) const;
  std::uint16_t egress_by(lookup::NextHopId id, const std::uint8_t* frame, std::uint32_t length) const;
  // Frame `i`, whose next hop is none that frames go out to; whose TTL ends; that does not fit the next link.
  void turn_aside(Adjacency adjacency, engine::Batch& batch, std::uint32_t i, engine::Emitter& out);
  void expire(Adjacency adjacency, engine::Batch& batch, std::uint32_t i, engine::Emitter& out);
  void refuse_size(Adjacency adjacency, engine::Batch& batch, std::uint32_t i, engine::Emitter& out);
  // route_own.cc
  bool is_own_with_options(const std::uint8_t* frame, packet::FrameKind& kind) const;
  void answer(engine::Batch& batch, std::uint32_t i, packet::IcmpErrorKind kind, std::uint32_t mtu,
              packet::Reason reason, engine::Emitter& out);
  // The moment before which freed next hops are named neither by a batch in flight nor by the GPU's tables.
  AdjacencyTable::Clock::time_point settled() const;
  LoadProgress progress_of(std::string_view what) const;
  Expected<void> load(const Router& from, const LoadProgress& progress);

  const RouterOptions options_;  // as at the start: what reload() takes over is in the tables and any_mac_
  bool cores_look_up_ = false;
  std::vector<std::uint64_t> port_macs_;  // of the devices, as packet::mac_word
  std::vector<std::uint32_t> port_mtus_;
  std::unique_ptr<lookup::Fib> fib_;
  // By DevicePlan::device; none on the CPU. What is in one is null while its device is gone.
  std::vector<std::unique_ptr<OnDevice>> devices_;
  std::atomic<bool> any_mac_{false};  // for the lanes; a reload may change it
  std::unique_ptr<AdjacencyTable> adjacencies_;
  std::unique_ptr<RouteTable> table_;
  StaticRoutes statics_;
  std::optional<StaticRoutes::Routes> statics_read_;
  engine::TableProgress progress_;
};

}  // namespace sluice::function
