// How far the action of a rule reaches, and what its checks are about; as Suricata distinguishes rules by type
// (docs/matching.md).
//
// Thread-safety: any thread. Cost: some ns for each check of the rule.
#pragma once

#include "match/rules/rule.h"

namespace sluice::match {

// The rule is about packets, whatever stream they belong to: it looks at no payload, or its protocol is tcp-pkt, or its
// flow is no_stream, or it asks for headers of packets (ipv4.hdr, tcp.hdr, ..., or dsize, flags, ttl and the like, but
// where it is of streams by name) and not for HTTP.
bool is_about_packets(const Rule& rule);

// The rule names places in the payload that are counted from its beginning: offset or depth of a content, isdataat and
// numbers that do not follow a match. In a stream they are meant of each packet's payload as well as of the stream.
bool is_about_places(const Rule& rule);

// The rule asks for addresses, ports and an IP protocol alone: what it says of one packet of a flow it says of all
// others of that direction. What it counts (threshold, detection_filter) are flows by direction then, not packets.
// Suricata's IP-only signatures (SignatureIsIPOnly), and of those with negated addresses, which Suricata tries with
// each packet, the ones that count nothing. (Negated: more than half of a family, and not all.)
bool is_about_addresses(const Rule& rule);

bool names_ports(const Rule& rule);

// Whether drop, reject or pass hold for the rest of the flow, not for the packet alone: for rules that looked at a
// stream or at HTTP (`reassembled`: what was inspected is such), and for rules that ask for nothing but addresses and
// ports, or nothing but an application protocol (Suricata's signature_properties of IP-only, like-IP-only and app-layer
// signatures).
bool acts_on_flow(const Rule& rule, bool reassembled);

}  // namespace sluice::match
