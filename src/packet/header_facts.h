// What the headers of a frame say, read once for all who ask: flows (flow/packet.h) and rules
// (match/confirm/packet_facts.h).
//
//   HeaderFacts facts;
//   read_headers(frame, facts);
//   if (facts.family != 0) ...
//
// Fields, at the places that packet/metadata.h finds, with its limits. What a header cannot give is absent, and `whole`
// says whether all of it was there. Of a fragment that is not the first the transport's header is absent, and its
// payload is what lies behind the IP headers. Checksums are not verified: parse_frame() does that for the IP header.
//
// Thread-safety: any thread. Reads nothing behind the frame. Cost: some 8 ns for TCP and UDP.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "packet/headers.h"
#include "packet/ip_address.h"
#include "packet/metadata.h"

namespace sluice::packet {

// Of which HeaderFacts reads ports: those that rules and alerts, as Suricata's, know the ports of. More protocols have
// some (has_ports()).
constexpr bool facts_have_ports(std::uint8_t protocol) {
  return protocol == protocol_tcp || protocol == protocol_udp || protocol == protocol_sctp;
}

struct HeaderFacts {
  // Not defaulted: then all of it would be cleared by one string instruction, which takes as long as the reading.
  HeaderFacts() {}  // NOLINT(modernize-use-equals-default)

  std::uint8_t family = 0;    // 4 or 6; 0: no IP, or no IP header, and nothing else is there
  bool whole = false;         // the IP packet is not longer than the frame, and no extension header than the packet; of
                              // a fragment these may go on in others
  std::uint8_t protocol = 0;  // of the transport, behind IPv6's extension headers
  std::uint8_t ttl = 0;
  std::uint8_t tos = 0;
  std::uint8_t fragment_bits = 0;      // 4 = reserved, 2 = don't fragment, 1 = more fragments
  std::uint16_t fragment_offset = 0;   // in units of eight bytes
  bool behind_atomic = false;          // Metadata::behind_atomic
  std::uint8_t fragment_protocol = 0;  // of an IPv6 fragment, first or later: what its fragment header names
  bool has_ports = false;              // facts_have_ports(), and the header is whole
  bool has_tcp = false;
  bool has_icmp = false;
  std::uint8_t icmp_type = 0, icmp_code = 0;
  std::uint8_t tcp_flags = 0;
  std::uint16_t tcp_window = 0;
  std::uint16_t source_port = 0, destination_port = 0;
  std::uint32_t tcp_sequence = 0, tcp_acknowledgement = 0;
  // IPv6, from the IP header on: of the fragment header, and of the byte that announces it; 0: there is none.
  std::uint32_t fragment_header = 0, fragment_named_at = 0;
  std::uint32_t ip_length = 0;  // bytes of the IP packet as its header says (ipv6_length.h)
  std::optional<std::uint32_t> ip_id;
  std::optional<std::uint16_t> icmp_id, icmp_sequence;  // of messages that have them
  IpAddress source, destination;
  // In the frame's memory. payload: behind the transport's header, or behind IP where that is not read; of UDP as much
  // as its length says, or all where it says 0 over IPv6, as hosts take it.
  std::string_view ip_header, ip_options, transport_header, payload;

  bool fragment() const { return fragment_offset != 0 || (fragment_bits & 1) != 0; }
};

// Of a frame whose metadata is there, to the depth `transport`. `facts` must be as made, here and below.
void take_facts(std::string_view frame, const Metadata& meta, HeaderFacts& facts);
// From the Ethernet header on.
void read_headers(std::string_view frame, HeaderFacts& facts);
// From the IP header on, of the version that it says.
void read_ip_headers(std::string_view packet, HeaderFacts& facts);

}  // namespace sluice::packet
