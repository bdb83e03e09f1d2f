// For tests of the router as a table: a frame in, and where it must come out, changed how, or why it must not. Every
// case runs through the real data path (captures in, captures out) on the CPU and on the GPU's code. Ports have no
// twins, so what would go to the host is a drop under its own name.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>

#include "engine/engine.h"
#include "function/capture_trial_test.h"
#include "function/route/route.h"
#include "packet/builder.h"
#include "packet/checksum.h"

namespace sluice::function {

using packet::Bytes;
using packet::PacketBuilder;

inline constexpr const char* host_mac = "02:00:00:00:00:0a";
inline constexpr const char* router_mac = "02:00:00:00:00:0b";
inline constexpr const char* next_mac = "02:00:00:00:00:99";

struct Case {
  std::string name;
  Bytes frame;
  std::string dropped_as;  // empty: it leaves by "out", with TTL - 1 and new MACs
  std::string mac = next_mac;
  // Not empty: it comes back as an ICMP error whose type, code and second word are these 6 bytes.
  Bytes answer{};
};

inline PacketBuilder v4(const char* to) {
  return PacketBuilder().eth(host_mac, router_mac).ipv4("10.1.0.9", to).ttl(64);
}
inline PacketBuilder from(const char* source, const char* to) {
  return PacketBuilder().eth(host_mac, router_mac).ipv4(source, to).ttl(64);
}
inline PacketBuilder v6(const char* to) {
  return PacketBuilder().eth(host_mac, router_mac).ipv6("2001:db8:1::9", to).ttl(64);
}

inline void add(RouteTable& table, const std::string& prefix, const std::string& gateway,
                RouteKind kind = RouteKind::unicast) {
  Route route;
  route.prefix = *packet::IpPrefix::parse(prefix);
  route.kind = kind;
  if (kind == RouteKind::unicast) {
    route.next_hops = {{1, gateway.empty() ? packet::IpAddress{} : *packet::IpAddress::parse(gateway), 1}};
  }
  ASSERT_TRUE(table.add_route(route));
}

inline void neighbour(RouteTable& table, const std::string& address, const std::string& mac) {
  ASSERT_TRUE(table.add_neighbour(1, *packet::IpAddress::parse(address), *packet::MacAddress::parse(mac)));
}

inline void fill(RouteTable& table) {
  for (const char* on_link : {"10.2.0.0/24", "169.254.2.0/24", "2001:db8:2::/64"}) {
    add(table, on_link, "");
  }
  neighbour(table, "10.2.0.2", next_mac);
  neighbour(table, "10.2.0.3", "02:00:00:00:00:98");
  neighbour(table, "10.2.0.7", "02:00:00:00:00:97");
  neighbour(table, "169.254.2.7", next_mac);
  neighbour(table, "2001:db8:2::2", next_mac);
  neighbour(table, "2001:db8:2::7", "02:00:00:00:00:96");
  add(table, "0.0.0.0/0", "10.2.0.2");
  add(table, "203.0.113.0/24", "10.2.0.2");
  add(table, "203.0.113.128/25", "10.2.0.3");
  add(table, "198.51.100.0/24", "10.2.0.99");
  add(table, "192.0.2.0/24", "", RouteKind::blackhole);
  add(table, "192.0.3.0/24", "", RouteKind::unreachable);
  add(table, "10.1.0.1/32", "", RouteKind::local);
  add(table, "::/0", "2001:db8:2::2");
  add(table, "2001:db8:77::/48", "2001:db8:2::2");
}

struct Result {
  std::vector<Bytes> sent;
  std::vector<Bytes> sent_back;  // by the port that they came in by
  engine::EngineStats stats;
};

// Fails when there is no such reason.
inline std::uint64_t drops_named(const engine::EngineStats& stats, const std::string& name) {
  for (packet::Reason reason = 1; reason < packet::reason_count(); ++reason) {
    if (packet::reason_name(reason) == name) {
      return stats.drops[reason];
    }
  }
  ADD_FAILURE() << "no reason is called " << name;
  return 0;
}

// A pipeline of this element.
inline std::unique_ptr<engine::Pipeline> alone(std::unique_ptr<engine::Element> element) {
  std::vector<std::unique_ptr<engine::Element>> elements;
  elements.push_back(std::move(element));
  return std::make_unique<engine::Pipeline>(std::move(elements));
}

// Sends `frames` through a router of two ports, "in" and "out", and returns what left by "out" and came back. `front`:
// makes an element in front of it.
inline Result route(const std::vector<Bytes>& frames, const std::string& device,
                    const std::function<void(RouteTable&)>& fill_table, bool any_mac = true,
                    const std::function<std::unique_ptr<engine::Element>()>& front = {}) {
  const CaptureTrial trial(device, 256);
  Router::RouterOptions router_options;
  router_options.max_ipv4 = 10000;
  router_options.max_ipv6 = 10000;
  router_options.any_mac = any_mac;
  auto engine = trial.make(frames, [&](const engine::PortTable& ports) {
    std::vector<std::unique_ptr<engine::Element>> elements;
    if (front) elements.push_back(front());
    elements.push_back(std::make_unique<Router>(router_options, ports));
    return std::make_unique<engine::Pipeline>(std::move(elements));
  });
  if (!engine) {
    return {};
  }
  fill_table(engine->pipeline().first<Routing>()->table());
  Result result;
  result.stats = CaptureTrial::run(*engine, frames.size());
  engine.reset();  // closes the captures
  result.sent = trial.sent();
  result.sent_back = trial.back();
  return result;
}

inline std::vector<std::string> devices() {
  return {"cpu", "cuda:0"};
}

// What the router must make of a frame that it forwards (RFC 1812 5.3.1, RFC 8200 3): checked against full
// recomputation.
inline Bytes forwarded(Bytes frame, const std::string& mac, const packet::MacAddress& port_mac) {
  const auto next = packet::MacAddress::parse(mac)->bytes;
  std::copy(next.begin(), next.end(), frame.begin());
  std::copy(port_mac.bytes.begin(), port_mac.bytes.end(), frame.begin() + 6);
  if (frame[12] == 0x86) {
    --frame[14 + 7];
    return frame;
  }
  --frame[14 + 8];
  frame[14 + 10] = frame[14 + 11] = 0;
  std::uint32_t sum = 0;
  const unsigned end = 14 + (frame[14] & 0xfU) * 4;
  for (unsigned at = 14; at < end; at += 2) {
    sum += static_cast<std::uint32_t>(frame[at] << 8 | frame[at + 1]);
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  frame[14 + 10] = static_cast<std::uint8_t>(~sum >> 8);
  frame[14 + 11] = static_cast<std::uint8_t>(~sum);
  return frame;
}

// Whether `sent` is the error that Case::answer says, for `frame` (the bytes are packet/icmp_error_test.cc's matter).
inline void expect_answer(const Bytes& sent, const Bytes& frame, const Bytes& answer) {
  const bool is_v6 = frame[12] == 0x86;
  const std::size_t headers = is_v6 ? 48 : 28;
  ASSERT_GT(sent.size(), 14 + headers);
  const auto part = [](const Bytes& bytes, std::size_t at, std::size_t count) {
    return Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + count));
  };
  EXPECT_EQ(part(sent, 0, 6), part(frame, 6, 6)) << "to the link address that it came from";
  EXPECT_EQ(part(sent, 6, 1), Bytes{0x02}) << "the port's own";
  EXPECT_EQ(part(sent, 12, 2), part(frame, 12, 2));
  const packet::IpAddress source = *packet::IpAddress::parse(is_v6 ? "2001:db8:1::1" : "10.1.0.1");
  const std::size_t size = is_v6 ? 16 : 4, at = is_v6 ? 14 + 8 : 14 + 12;
  EXPECT_EQ(part(sent, at, size), Bytes(source.bytes.begin(), source.bytes.begin() + static_cast<long>(size)));
  EXPECT_EQ(part(sent, at + size, size), part(frame, at, size)) << "to the sender";
  Bytes icmp = part(sent, 14 + headers - 8, 8);
  icmp.erase(icmp.begin() + 2, icmp.begin() + 4);
  EXPECT_EQ(icmp, answer);
  const std::size_t total = is_v6 ? 40U + static_cast<unsigned>(frame[18] << 8 | frame[19])
                                  : static_cast<unsigned>(frame[16] << 8 | frame[17]);
  const std::size_t quote = std::min<std::size_t>(total, is_v6 ? 1280 - 48 : 576 - 28);
  ASSERT_EQ(sent.size(), 14 + headers + quote);
  EXPECT_EQ(part(sent, 14 + headers, quote), part(frame, 14, quote));
}

// Sends the frames of `table` through a router whose routes are those of `fill_table`, on every device.
inline void expect_cases(const std::vector<Case>& table, const std::function<void(RouteTable&)>& fill_table) {
  for (const std::string& device : devices()) {
    if (const std::string why = missing(device); !why.empty()) {
      GTEST_SKIP() << "the CPU's part passed; " << why;
    }
    SCOPED_TRACE(device);
    std::vector<Bytes> frames;
    std::map<std::string, std::uint64_t> drops;
    for (const Case& one : table) {
      frames.push_back(one.frame);
      if (!one.dropped_as.empty()) {
        ++drops[one.dropped_as];
      }
    }
    const Result result = route(frames, device, fill_table);
    EXPECT_EQ(result.stats.imbalance(), 0);
    std::size_t at = 0;
    std::size_t back = 0;
    for (const Case& one : table) {
      if (!one.dropped_as.empty()) {
        continue;
      }
      SCOPED_TRACE(one.name);
      if (!one.answer.empty()) {
        ASSERT_LT(back, result.sent_back.size());
        expect_answer(result.sent_back[back++], one.frame, one.answer);
        continue;
      }
      ASSERT_LT(at, result.sent.size());
      const Bytes& sent = result.sent[at++];
      packet::MacAddress port_mac;
      std::copy(sent.begin() + 6, sent.begin() + 12, port_mac.bytes.begin());
      EXPECT_EQ(sent, forwarded(one.frame, one.mac, port_mac));
    }
    EXPECT_EQ(at, result.sent.size());
    EXPECT_EQ(back, result.sent_back.size());
    EXPECT_EQ(std::accumulate(result.stats.answers.begin(), result.stats.answers.end(), std::uint64_t{0}), back);
    for (const auto& [name, count] : drops) {
      EXPECT_EQ(drops_named(result.stats, name), count) << name;
    }
    EXPECT_EQ(result.stats.total.dropped + result.stats.total.tx_frames, table.size());
  }
}

}  // namespace sluice::function
