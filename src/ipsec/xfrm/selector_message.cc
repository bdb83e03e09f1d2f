#include <netinet/in.h>

#include <cerrno>

#include "ipsec/xfrm/sa_message.h"

namespace sluice::ipsec::xfrm {
namespace {

PortMatch port_match(__be16 value, __be16 mask) {
  return {static_cast<std::uint16_t>(ntohs(value) & ntohs(mask)), ntohs(mask)};
}

}  // namespace

Result<Selector> read_selector(const xfrm_selector& selector, int family) {
  const unsigned longest = family == 4 ? 32 : 128;
  if (family == 0) return refuse(EINVAL, "a selector is neither of IPv4 nor of IPv6");
  if (selector.prefixlen_s > longest || selector.prefixlen_d > longest) {
    return refuse(EINVAL, "a selector's prefix is longer than an address");
  }
  if (selector.ifindex != 0 || selector.user != 0) {
    return refuse(EOPNOTSUPP, "selectors of an interface or a user are not supported");
  }
  Selector read;
  read.source = packet::IpPrefix::of(packet::IpAddress::from_bytes(family, &selector.saddr), selector.prefixlen_s);
  read.destination = packet::IpPrefix::of(packet::IpAddress::from_bytes(family, &selector.daddr), selector.prefixlen_d);
  read.protocol = selector.proto;
  read.source_port = port_match(selector.sport, selector.sport_mask);
  read.destination_port = port_match(selector.dport, selector.dport_mask);
  return read;
}

xfrm_selector selector_bytes(const Selector& selector) {
  xfrm_selector bytes{};
  bytes.family = address_family(selector.source.address);
  bytes.saddr = bytes_of(selector.source.address);
  bytes.daddr = bytes_of(selector.destination.address);
  bytes.prefixlen_s = selector.source.length;
  bytes.prefixlen_d = selector.destination.length;
  bytes.proto = selector.protocol;
  bytes.sport = htons(selector.source_port.value);
  bytes.sport_mask = htons(selector.source_port.mask);
  bytes.dport = htons(selector.destination_port.value);
  bytes.dport_mask = htons(selector.destination_port.mask);
  return bytes;
}

}  // namespace sluice::ipsec::xfrm
