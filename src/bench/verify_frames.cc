#include "bench/verify_frames.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "bench/progress.h"
#include "bench/verify.h"
#include "function/route/route.h"

namespace sluice::cli::bench {
namespace {

constexpr unsigned ecmp_every = 16;      // routes of the file, of which one gets several next hops
constexpr unsigned ecmp_groups = 32;     // different sets of next hops
constexpr unsigned slowly_checked = 24;  // flows
constexpr unsigned most_frames = 4096;   // of each queue
constexpr double no_frames = 1e-6;       // a second
constexpr std::chrono::seconds longest_sync{20};
constexpr std::chrono::milliseconds batch_time{50};  // more than a batch takes on any device
constexpr unsigned many_flows = 64;                  // of one group: so many use each of its members

// A router that sends a whole group to one member keeps flows together, too, and shares nothing.
Expected<void> check_shares(const std::vector<Wire>& wires) {
  std::map<std::vector<std::uint8_t>, std::vector<unsigned>> flows;  // by the members' addresses: how many took each
  for (const Wire& wire : wires) {
    if (wire.hops.size() < 2 || wire.taken < 0) {
      continue;
    }
    std::vector<std::uint8_t> group;
    for (const Hop& hop : wire.hops) {
      group.insert(group.end(), hop.mac.begin(), hop.mac.end());
    }
    std::vector<unsigned>& of = flows[group];
    of.resize(wire.hops.size());
    ++of[static_cast<unsigned>(wire.taken)];
  }
  for (const auto& [group, of] : flows) {
    unsigned sum = 0;
    for (const unsigned one : of) {
      sum += one;
    }
    if (sum >= many_flows && *std::min_element(of.begin(), of.end()) == 0) {
      return make_error(fmt::format("{} flows of an ECMP group of {} next hops left one of them out", sum, of.size()));
    }
  }
  return {};
}

// A GPU follows the table in steps, one a cycle: frames come when it has caught up.
Expected<void> start_when_routes_are_there(Rig& rig, unsigned ports) {
  const auto set_rate = [&](double rate) {
    for (unsigned port = 0; port < ports; ++port) {
      rig.engine().port(port).replay()->set_rate(rate);
    }
  };
  set_rate(no_frames);
  rig.engine().start();
  const auto& router = static_cast<const function::Router&>(*rig.engine().pipeline().elements().back());
  const auto end = std::chrono::steady_clock::now() + longest_sync;
  while (!router.devices_follow()) {
    if (std::chrono::steady_clock::now() > end) {
      return make_error("the device's tables did not catch up with the routes");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(batch_time);
  set_rate(0);
  return {};
}

}  // namespace

Expected<FrameVerifier> FrameVerifier::make(const RouterTable& table) {
  const Progress progress("building the table that verifies");
  FrameVerifier verifier(table);
  unsigned number = 0;
  auto read = verifier.reference_.read(table.routes_path(), [&](const std::string& prefix, const std::string&) {
    if (++number % ecmp_every != 0) {
      return;
    }
    const unsigned k = number / ecmp_every % ecmp_groups;
    RouteReference::Gateways gateways = {static_cast<std::uint8_t>(1 + k), static_cast<std::uint8_t>(129 + k)};
    if (k % 2 != 0) {
      gateways.push_back(static_cast<std::uint8_t>(65 + k));
    }
    verifier.ecmp_.push_back({prefix, gateways});
  });
  if (!read) {
    return tl::unexpected(read.error());
  }
  for (const EcmpRoute& route : verifier.ecmp_) {
    verifier.reference_.set(RouteReference::Prefix::parse(route.prefix), route.gateways);
  }
  return verifier;
}

Expected<void> FrameVerifier::add_ecmp(Rig& rig) const {
  function::RouteTable& table = rig.engine().pipeline().first<function::Routing>()->table();
  for (const EcmpRoute& one : ecmp_) {
    const auto prefix = packet::IpPrefix::parse(one.prefix);
    if (!prefix) {
      return tl::unexpected(prefix.error());
    }
    function::Route route;
    route.prefix = *prefix;
    for (const std::uint8_t g : one.gateways) {
      const auto gateway = packet::IpAddress::parse(RouterTable::gateway(prefix->address.family, g));
      route.next_hops.push_back({RouterTable::port_of(g, 2), *gateway, 1});
    }
    if (auto added = table.add_route(route); !added) {
      return added;
    }
  }
  return {};
}

Expected<unsigned> FrameVerifier::check_reference(const std::vector<Wire>& wires) const {
  unsigned checked = 0;
  for (std::size_t i = 0; i < wires.size() && checked < slowly_checked; i += wires.size() / slowly_checked + 1) {
    const std::vector<std::uint8_t>& frame = *wires[i].pristine;
    const int family = frame[12] == 0x08 ? 4 : 6;
    const auto address = RouteReference::Address::of(family, frame.data() + 14 + (family == 4 ? 16 : 24));
    const auto* quick = reference_.find(address);
    const auto* slow = reference_.find_slowly(address);
    if (quick == nullptr || slow == nullptr || *quick != *slow) {
      return make_error("the reference table contradicts itself");
    }
    ++checked;
  }
  return checked;
}

Expected<FrameVerifier::Verified> FrameVerifier::verify(const BenchOptions& options, int family,
                                                        const std::string& device, std::uint64_t frames,
                                                        const Tamper& tamper) const {
  const Progress progress("verifying frames as they leave");
  RigOptions of_rig = router_rig(options, *table_, family, engine::Mode::full, device);
  of_rig.ports = 2;
  of_rig.settings = table_->settings_on_ports(of_rig.ports);
  of_rig.frames = std::min(of_rig.frames, most_frames);
  auto rig = Rig::make(of_rig);
  if (!rig) {
    return tl::unexpected(rig.error());
  }
  if (auto added = add_ecmp(**rig); !added) {
    return tl::unexpected(added.error());
  }
  auto leaving = LeavingFrames::watch(**rig, of_rig, reference_, of_rig.refresh, tamper);
  if (!leaving) {
    return tl::unexpected(leaving.error());
  }
  const std::vector<Wire>& wires = (*leaving)->wires();
  const auto slowly = check_reference(wires);
  if (!slowly) {
    return tl::unexpected(slowly.error());
  }
  auto done = start_when_routes_are_there(**rig, of_rig.ports);
  if (!done) (void)(*rig)->finish();  // what looks at its frames goes before it does
  done = done ? run_until(**rig, (*leaving)->frames(), frames) : done;
  done = done ? (*leaving)->judge() : done;
  done = done ? check_shares(wires) : done;
  if (!done) {
    return tl::unexpected(done.error());
  }
  if (const std::uint64_t dropped = (*rig)->engine().stats().total.dropped; dropped != 0) {
    return make_error(std::to_string(dropped) + " frames were dropped, and every one has a route");
  }
  return Verified{(*leaving)->frames(), (*leaving)->ecmp_frames(), static_cast<unsigned>(wires.size()), *slowly};
}

}  // namespace sluice::cli::bench
