#include "ipsec/packet_key.h"

namespace sluice::ipsec {
namespace {

packet::IpAddress prefix_mask(const packet::IpPrefix& prefix) {
  packet::IpAddress mask{.family = prefix.address.family};
  for (unsigned bit = 0; bit < prefix.length; ++bit) {
    mask.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80U >> (bit % 8));
  }
  return mask;
}

}  // namespace

PacketKey packet_key(const FlowKey& flow) {
  return packet_key(flow.source.family, flow.source.bytes.data(), flow.destination.bytes.data(), flow.protocol,
                    flow.has_ports, flow.source_port, flow.destination_port);
}

FlowKey flow_key(const PacketKey& key) {
  FlowKey flow;
  const int family = key.family();
  const auto* const addresses = reinterpret_cast<const std::uint8_t*>(&key.word[1]);
  flow.source = packet::IpAddress::from_bytes(family, addresses);
  flow.destination = packet::IpAddress::from_bytes(family, addresses + (family == 4 ? 4 : 16));
  flow.protocol = key.protocol();
  flow.has_ports = (key.word[0] >> has_ports_shift & 1) != 0;
  flow.source_port = static_cast<std::uint16_t>(key.word[0]);
  flow.destination_port = static_cast<std::uint16_t>(key.word[0] >> destination_port_shift);
  return flow;
}

MaskedKey masked_key(const Selector& selector) {
  MaskedKey masked;
  const bool ports = selector.source_port.mask != 0 || selector.destination_port.mask != 0;
  const packet::IpAddress from = prefix_mask(selector.source), to = prefix_mask(selector.destination);
  masked.mask = packet_key(from.family, from.bytes.data(), to.bytes.data(), selector.protocol != 0 ? 0xff : 0, ports,
                           selector.source_port.mask, selector.destination_port.mask);
  masked.mask.word[0] |= std::uint64_t{0xff} << family_shift;
  masked.value =
      packet_key(from.family, selector.source.address.bytes.data(), selector.destination.address.bytes.data(),
                 selector.protocol, ports, selector.source_port.value, selector.destination_port.value);
  for (std::size_t i = 0; i < masked.value.word.size(); ++i) masked.value.word[i] &= masked.mask.word[i];
  return masked;
}

}  // namespace sluice::ipsec
