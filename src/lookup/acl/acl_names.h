// The names that rules are written with: protocols and TCP flags.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::lookup::acl {

inline constexpr std::uint8_t protocol_icmp = 1;
inline constexpr std::uint8_t protocol_tcp = 6;
inline constexpr std::uint8_t protocol_icmpv6 = 58;

struct NamedByte {
  std::string_view text;
  std::uint8_t value;
};
inline constexpr std::array<NamedByte, 8> protocol_names = {{{"tcp", protocol_tcp},
                                                             {"udp", 17},
                                                             {"icmp", protocol_icmp},
                                                             {"icmpv6", protocol_icmpv6},
                                                             {"sctp", 132},
                                                             {"gre", 47},
                                                             {"esp", 50},
                                                             {"ah", 51}}};
inline constexpr std::array<NamedByte, 8> flag_names = {{{"fin", 0x01},
                                                         {"syn", 0x02},
                                                         {"rst", 0x04},
                                                         {"psh", 0x08},
                                                         {"ack", 0x10},
                                                         {"urg", 0x20},
                                                         {"ece", 0x40},
                                                         {"cwr", 0x80}}};

}  // namespace sluice::lookup::acl
