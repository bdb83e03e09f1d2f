#include "cli/bench/verify_frames.h"

#include <rte_mbuf.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "cli/bench/progress.h"
#include "cli/bench/verify.h"
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

Mac bytes_of(const packet::MacAddress& mac) {
  return mac.bytes;
}

// What left, and how; each queue's frames are one lane's.
struct Counts {
  std::atomic<std::uint64_t> frames{0}, ecmp{0};
  std::array<std::atomic<std::uint64_t>, faults> of{};
};

// Every frame of every queue of every port, in this order, with the next hops that the reference names.
Expected<std::vector<Wire>> wires_of(Rig& rig, const RigOptions& options, int family, const RouteReference& reference) {
  std::vector<Wire> wires;
  for (unsigned port = 0; port < options.ports; ++port) {
    for (unsigned queue = 0; queue < options.lanes; ++queue) {
      for (unsigned index = 0; index < options.frames; ++index) {
        Wire wire;
        wire.pristine = &rig.engine().port(port).replay()->pristine(static_cast<std::uint16_t>(queue), index);
        const std::uint8_t* destination = wire.pristine->data() + 14 + (family == 4 ? 16 : 24);
        const auto* gateways = reference.find(RouteReference::Address::of(family, destination));
        if (gateways == nullptr) {
          return make_error("the file has no route for a frame's destination, not even a default one");
        }
        for (const std::uint8_t g : *gateways) {
          wire.hops.push_back({RouterTable::port_of(g), bytes_of(RouterTable::mac_of(g))});
        }
        wires.push_back(std::move(wire));
      }
    }
  }
  return wires;
}

void observe(Rig& rig, const RigOptions& options, const FrameCheck& check, std::vector<Wire>& wires, Counts& counts,
             const FrameVerifier::Tamper& tamper) {
  auto first = std::make_shared<std::map<const rte_mempool*, std::size_t>>();
  for (unsigned port = 0; port < options.ports; ++port) {
    for (unsigned queue = 0; queue < options.lanes; ++queue) {
      const rte_mempool* pool = rig.engine().port(port).replay()->pool(static_cast<std::uint16_t>(queue));
      (*first)[pool] = (std::size_t{port} * options.lanes + queue) * options.frames;
    }
  }
  for (unsigned port = 0; port < options.ports; ++port) {
    rig.engine().port(port).replay()->observe([&, first, port](const rte_mbuf* frame) {
      Wire& wire = wires[first->find(frame->pool)->second + port::ReplayPort::frame_index(frame)];
      auto left_by = static_cast<std::uint16_t>(port);
      auto* data = rte_pktmbuf_mtod(frame, std::uint8_t*);
      if (tamper) {
        tamper(left_by, data);
      }
      const Fault fault = check.check(wire, left_by, data, rte_pktmbuf_data_len(frame));
      counts.of[static_cast<unsigned>(fault)].fetch_add(1, std::memory_order_relaxed);
      counts.ecmp.fetch_add(wire.hops.size() > 1 ? 1 : 0, std::memory_order_relaxed);
      counts.frames.fetch_add(1, std::memory_order_relaxed);
    });
  }
}

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

Expected<void> judge(const Counts& counts) {
  std::string wrong;
  for (unsigned i = 1; i < faults; ++i) {
    if (const std::uint64_t count = counts.of[i].load(); count != 0) {
      wrong += fmt::format("{}{} with {}", wrong.empty() ? "" : ", ", count, fault_text(static_cast<Fault>(i)));
    }
  }
  return wrong.empty() ? Expected<void>{}
                       : make_error(fmt::format("of {} frames left {}", counts.frames.load(), wrong));
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
  const auto& router = static_cast<const function::Router&>(rig.engine().function());
  const auto end = std::chrono::steady_clock::now() + longest_sync;
  while (!router.device_follows()) {
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
  function::RouteTable& table = static_cast<function::Router&>(rig.engine().function()).table();
  for (const EcmpRoute& one : ecmp_) {
    const auto prefix = packet::IpPrefix::parse(one.prefix);
    if (!prefix) {
      return tl::unexpected(prefix.error());
    }
    function::Route route;
    route.prefix = *prefix;
    for (const std::uint8_t g : one.gateways) {
      const auto gateway = packet::IpAddress::parse(RouterTable::gateway(prefix->address.family, g));
      route.next_hops.push_back({RouterTable::port_of(g), *gateway, 1});
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
  of_rig.settings = table_->settings_on_two_ports();
  of_rig.ports = 2;
  of_rig.frames = std::min(of_rig.frames, most_frames);
  auto rig = Rig::make(of_rig);
  if (!rig) {
    return tl::unexpected(rig.error());
  }
  if (auto added = add_ecmp(**rig); !added) {
    return tl::unexpected(added.error());
  }
  auto wires = wires_of(**rig, of_rig, family, reference_);
  if (!wires) {
    return tl::unexpected(wires.error());
  }
  const auto slowly = check_reference(*wires);
  if (!slowly) {
    return tl::unexpected(slowly.error());
  }
  const FrameCheck check(
      {bytes_of((*rig)->engine().port(0).replay()->mac()), bytes_of((*rig)->engine().port(1).replay()->mac())},
      of_rig.refresh);
  Counts counts;
  observe(**rig, of_rig, check, *wires, counts, tamper);
  auto done = start_when_routes_are_there(**rig, of_rig.ports);
  done = done ? run_until(**rig, counts.frames, frames) : done;
  done = done ? judge(counts) : done;
  done = done ? check_shares(*wires) : done;
  if (!done) {
    return tl::unexpected(done.error());
  }
  if (const std::uint64_t dropped = (*rig)->engine().stats().total.dropped; dropped != 0) {
    return make_error(std::to_string(dropped) + " frames were dropped, and every one has a route");
  }
  return Verified{counts.frames.load(), counts.ecmp.load(), static_cast<unsigned>(wires->size()), *slowly};
}

}  // namespace sluice::cli::bench
