#include "packet/flow_hash.h"

#include "packet/metadata.h"

namespace sluice::packet {

std::uint32_t flow_hash(const std::uint8_t* frame, const Metadata& meta) {
  if (!meta.whole) return 0;
  const std::uint8_t* const ip = frame + meta.network;
  // As they lie in the frame: what a core loads.
  const std::uint64_t source_port = be16(meta.source_port), destination_port = be16(meta.destination_port);
  const bool with_ports = meta.has_ports && !meta.fragment();
  if (meta.family == 4) {
    const std::uint64_t source = detail::load<std::uint32_t>(ip + offsetof(Ipv4Header, source));
    const std::uint64_t destination = detail::load<std::uint32_t>(ip + offsetof(Ipv4Header, destination));
    return detail::hash_ends(source | (with_ports ? source_port << 32 : 0),
                             destination | (with_ports ? destination_port << 32 : 0), meta.protocol);
  }
  // What is in front of the fragment header, and behind it, may be another for each fragment of a datagram.
  if (meta.fragment()) return detail::hash_ipv6(ip, 0, 0, protocol_fragment);
  return detail::hash_ipv6(ip, with_ports ? source_port : 0, with_ports ? destination_port : 0, meta.protocol);
}

std::uint32_t detail::hash_by_metadata(const std::uint8_t* frame, std::uint32_t length) {
  Metadata meta;
  read_metadata(frame, length, Depth::transport, meta);
  return flow_hash(frame, meta);
}

}  // namespace sluice::packet
