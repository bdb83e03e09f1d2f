#include <algorithm>
#include <random>
#include <set>
#include <span>

#include "lookup/route_file.h"

namespace sluice::lookup {

namespace {

struct Share {
  unsigned length;
  double weight;
};

constexpr Share lengths4[] = {{8, 0.02}, {12, 0.1}, {13, 0.1},  {14, 0.2}, {15, 0.3},  {16, 2.2},  {17, 1.2},
                              {18, 2.0}, {19, 4.3}, {20, 6.3},  {21, 6.5}, {22, 11.0}, {23, 10.0}, {24, 55.2},
                              {25, 0.1}, {26, 0.1}, {27, 0.05}, {28, 0.1}, {29, 0.1},  {30, 0.1},  {32, 0.03}};
// What registries hand out, and what its holders announce inside it.
constexpr Share allocations6[] = {{20, 0.3}, {24, 0.5}, {28, 2.0}, {29, 12.0}, {32, 85.2}};
constexpr Share inside6[] = {{33, 1.5}, {34, 1.5},  {36, 6.0}, {40, 9.0}, {42, 1.0},   {44, 9.0},  {46, 3.0},
                             {47, 3.0}, {48, 65.0}, {56, 0.5}, {64, 0.4}, {127, 0.05}, {128, 0.05}};
constexpr std::uint16_t registries6[] = {0x2001, 0x2400, 0x2401, 0x2402, 0x2403, 0x2404, 0x2600, 0x2602, 0x2604, 0x2605,
                                         0x2606, 0x2607, 0x2800, 0x2803, 0x2804, 0x2806, 0x2a00, 0x2a01, 0x2a02, 0x2a03,
                                         0x2a04, 0x2a05, 0x2a06, 0x2a07, 0x2a09, 0x2a0a, 0x2a0b, 0x2a0c, 0x2c0f};
constexpr double share_of_allocations6 = 0.3;
constexpr NextHopId next_hops = 128;

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  unsigned pick(std::span<const Share> shares) {
    double total = 0;
    for (const Share& share : shares) {
      total += share.weight;
    }
    double at = static_cast<double>(random_()) / static_cast<double>(std::mt19937_64::max()) * total;
    for (const Share& share : shares) {
      at -= share.weight;
      if (at <= 0) {
        return share.length;
      }
    }
    return shares.back().length;
  }

  packet::IpPrefix prefix4() {
    const unsigned length = pick(lengths4);
    // 1/8 to 223/8 without 127/8: what is announced.
    auto address = static_cast<std::uint32_t>(0x0100'0000 + random_() % 0xdf00'0000);
    if (address >> 24 == 127) {
      address ^= 0x4000'0000;
    }
    return packet::IpPrefix::of(packet::IpAddress::v4(address), length);
  }

  packet::IpPrefix allocation6() {
    packet::IpAddress address = bits6();
    const std::uint16_t registry = registries6[random_() % std::size(registries6)];
    address.bytes[0] = static_cast<std::uint8_t>(registry >> 8);
    address.bytes[1] = static_cast<std::uint8_t>(registry);
    return packet::IpPrefix::of(address, pick(allocations6));
  }

  packet::IpPrefix inside(const packet::IpPrefix& allocation) {
    packet::IpAddress address = bits6();
    // Holders number their networks from the beginning: that keeps the tables as small as the real ones.
    if (random_() % 8 != 0) {
      address.bytes[4] = static_cast<std::uint8_t>(random_() % 2);
    }
    const unsigned whole = allocation.length / 8;
    std::copy_n(allocation.address.bytes.begin(), whole, address.bytes.begin());
    if (const unsigned rest = allocation.length % 8; rest != 0) {
      const auto keep = static_cast<std::uint8_t>(0xff00U >> rest);
      address.bytes[whole] =
          static_cast<std::uint8_t>((allocation.address.bytes[whole] & keep) | (address.bytes[whole] & ~keep));
    }
    return packet::IpPrefix::of(address, pick(inside6));
  }

  std::uint64_t number() { return random_(); }

 private:
  packet::IpAddress bits6() {
    const std::uint64_t bits[2] = {random_(), random_()};
    return packet::IpAddress::from_bytes(6, bits);
  }

  std::mt19937_64 random_;
};

}  // namespace

RouteList make_routes(std::size_t count4, std::size_t count6, std::uint64_t seed) {
  Maker maker(seed);
  RouteList list;
  for (NextHopId i = 1; i <= next_hops; ++i) {
    list.next_hops.push_back("10.254.0." + std::to_string(i));
  }
  for (NextHopId i = 1; i <= next_hops; ++i) {
    list.next_hops.push_back("fd00:fe::" + std::to_string(i));
  }
  std::set<packet::IpPrefix> seen;
  const auto add = [&](const packet::IpPrefix& prefix, NextHopId first) {
    if (seen.insert(prefix).second) {
      list.routes.push_back({prefix, first + static_cast<NextHopId>(maker.number() % next_hops)});
    }
  };
  while (list.routes.size() < count4) {
    add(maker.prefix4(), 1);
  }
  const std::size_t end = count4 + count6;
  const std::size_t allocations_end =
      count4 + static_cast<std::size_t>(static_cast<double>(count6) * share_of_allocations6);
  while (list.routes.size() < allocations_end) {
    add(maker.allocation6(), 1 + next_hops);
  }
  const std::size_t allocations = list.routes.size() - count4;
  while (list.routes.size() < end) {
    // Few holders announce most of the longer prefixes.
    const std::size_t among = maker.number() % 8 != 0 ? allocations / 8 + 1 : allocations;
    const packet::IpPrefix parent = allocations == 0
                                        ? maker.allocation6()
                                        : list.routes[count4 + maker.number() % std::min(among, allocations)].prefix;
    add(maker.inside(parent), 1 + next_hops);
  }
  return list;
}

}  // namespace sluice::lookup
