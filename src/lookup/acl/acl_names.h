// The names that rules are written with: protocols, TCP flags and ICMP types.
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

// By nftables' names.
inline constexpr std::array<NamedByte, 15> icmp_names = {{{"echo-reply", 0},
                                                          {"destination-unreachable", 3},
                                                          {"source-quench", 4},
                                                          {"redirect", 5},
                                                          {"echo-request", 8},
                                                          {"router-advertisement", 9},
                                                          {"router-solicitation", 10},
                                                          {"time-exceeded", 11},
                                                          {"parameter-problem", 12},
                                                          {"timestamp-request", 13},
                                                          {"timestamp-reply", 14},
                                                          {"info-request", 15},
                                                          {"info-reply", 16},
                                                          {"address-mask-request", 17},
                                                          {"address-mask-reply", 18}}};
inline constexpr std::array<NamedByte, 18> icmpv6_names = {{{"destination-unreachable", 1},
                                                            {"packet-too-big", 2},
                                                            {"time-exceeded", 3},
                                                            {"parameter-problem", 4},
                                                            {"echo-request", 128},
                                                            {"echo-reply", 129},
                                                            {"mld-listener-query", 130},
                                                            {"mld-listener-report", 131},
                                                            {"mld-listener-done", 132},
                                                            {"nd-router-solicit", 133},
                                                            {"nd-router-advert", 134},
                                                            {"nd-neighbor-solicit", 135},
                                                            {"nd-neighbor-advert", 136},
                                                            {"nd-redirect", 137},
                                                            {"router-renumbering", 138},
                                                            {"ind-neighbor-solicit", 141},
                                                            {"ind-neighbor-advert", 142},
                                                            {"mld2-listener-report", 143}}};

}  // namespace sluice::lookup::acl
