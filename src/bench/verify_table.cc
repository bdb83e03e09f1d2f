#include "bench/verify_table.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "bench/progress.h"
#include "bench/route_reference.h"

namespace sluice::cli::bench {
namespace {

using Address = RouteReference::Address;
constexpr std::size_t least_prefixes = 10'000;  // of the file

void append_edges(const RouteReference::Prefix& prefix, std::vector<Address>& out) {
  const unsigned bytes = prefix.address.family == 4 ? 4 : 16;
  Address last = prefix.address;
  for (unsigned bit = prefix.length; bit < bytes * 8; ++bit) {
    last.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80U >> bit % 8);
  }
  const auto beside = [bytes](Address address, int step) {
    for (unsigned at = bytes; at-- != 0;) {
      address.bytes[at] = static_cast<std::uint8_t>(address.bytes[at] + step);
      if (address.bytes[at] != (step > 0 ? 0 : 0xff)) {
        break;
      }
    }
    return address;
  };
  out.insert(out.end(), {prefix.address, last, beside(prefix.address, -1), beside(last, 1)});
}

// Where the gateways themselves are, the answer is a neighbour or the link, which the file does not name.
bool on_link(const Address& address) {
  constexpr std::uint8_t link4[] = {198, 19, 0};
  constexpr std::uint8_t link6[] = {0x20, 0x01, 0, 2, 0, 0, 0, 0x19};
  return address.family == 4 ? std::equal(std::begin(link4), std::end(link4), address.bytes.begin())
                             : std::equal(std::begin(link6), std::end(link6), address.bytes.begin());
}

std::vector<lookup::NextHopId> live_answers(const lookup::Fib& fib, int family, const std::vector<Address>& addresses) {
  std::vector<lookup::NextHopId> out(addresses.size());
  if (family == 4) {
    std::vector<std::uint32_t> keys;
    for (const Address& a : addresses) {
      keys.push_back(static_cast<std::uint32_t>(a.bytes[0]) << 24 | static_cast<std::uint32_t>(a.bytes[1]) << 16 |
                     static_cast<std::uint32_t>(a.bytes[2]) << 8 | a.bytes[3]);
    }
    fib.lookup4(keys.data(), out.data(), static_cast<unsigned>(keys.size()));
  } else {
    std::vector<std::array<std::uint8_t, 16>> keys;
    for (const Address& a : addresses) {
      keys.push_back(a.bytes);
    }
    fib.lookup6(reinterpret_cast<const std::uint8_t(*)[16]>(keys.data()), out.data(),
                static_cast<unsigned>(keys.size()));
  }
  return out;
}

// The gateway's last byte, as the file and the updates name it; 0: not one gateway.
unsigned gateway_of(const function::RouteTable& table, int family, lookup::NextHopId id) {
  const std::vector<function::NextHop> hops = table.next_hops(id);
  if (hops.size() != 1 || hops.front().gateway.family != family) {
    return 0;
  }
  return hops.front().gateway.bytes[family == 4 ? 3 : 15];
}

Expected<void> compare(function::Router& router, const RouteReference& reference, int family,
                       const std::vector<Address>& addresses) {
  const auto live = live_answers(router.fib(), family, addresses);
  std::unordered_map<lookup::NextHopId, unsigned> gateways;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto [at, fresh] = gateways.try_emplace(live[i]);
    if (fresh) {
      at->second = gateway_of(router.table(), family, live[i]);
    }
    const auto* set = reference.find(addresses[i]);
    const unsigned expected = set == nullptr ? 0U : set->front();
    if (at->second != expected) {
      return make_error("the live table sends " +
                        packet::IpAddress::from_bytes(family, addresses[i].bytes.data()).str() + " to gateway " +
                        std::to_string(at->second) + ", a table built from scratch to gateway " +
                        std::to_string(expected));
    }
  }
  return {};
}

}  // namespace

Expected<std::uint64_t> verify_table(function::Router& router, const RouterTable& table,
                                     const std::map<packet::IpPrefix, std::uint8_t>& updates) {
  const Progress progress("verifying the table");
  RouteReference reference;
  std::vector<RouteReference::Prefix> probed;
  std::size_t number = 0;
  const std::size_t every = std::max<std::size_t>(
      1, (router.table().size(4) + router.table().size(6)) / std::max(least_prefixes, updates.size()));
  const auto read = reference.read(table.routes_path(), [&](const std::string& prefix, const std::string&) {
    if (number++ % every == 0) {
      probed.push_back(RouteReference::Prefix::parse(prefix));
    }
  });
  if (!read) {
    return tl::unexpected(read.error());
  }
  for (const auto& [prefix, gateway] : updates) {
    const RouteReference::Prefix parsed = RouteReference::Prefix::parse(prefix.str());
    probed.push_back(parsed);
    if (gateway != 0) {
      reference.set(parsed, {gateway});
    }
  }
  std::vector<Address> edges;
  for (const RouteReference::Prefix& prefix : probed) {
    append_edges(prefix, edges);
  }
  std::erase_if(edges, on_link);
  for (const int family : {4, 6}) {
    std::vector<Address> of_family;
    std::copy_if(edges.begin(), edges.end(), std::back_inserter(of_family),
                 [family](const Address& address) { return address.family == family; });
    if (auto same = compare(router, reference, family, of_family); !same) {
      return tl::unexpected(same.error());
    }
  }
  return edges.size();
}

}  // namespace sluice::cli::bench
