// What the headers of a frame say, for rules: packet/header_facts.h, and its numbers by the names that rules have.
//
// Thread-safety: any thread. Cost: that of read_headers().
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "match/rules/rule.h"
#include "packet/header_facts.h"

namespace sluice::match {

struct PacketFacts : packet::HeaderFacts {
  // Absent: this packet has no such field.
  std::optional<std::uint32_t> field(HeaderField which) const;
};

inline PacketFacts facts_of(std::string_view frame) {
  PacketFacts facts;
  packet::read_headers(frame, facts);
  return facts;
}

struct PacketEnd {
  const void* address;  // in network order
  std::uint16_t port;   // host order
};
// Of a packet that says no more than its ends.
PacketFacts packet_of(std::uint8_t family, std::uint8_t protocol, const PacketEnd& source,
                      const PacketEnd& destination);

}  // namespace sluice::match
