// IPv6 addresses as DPDK's tables take them: 16 bytes up to DPDK 23.11, an rte_ipv6_addr (of the same 16 bytes)
// since 24.11.
#pragma once

#include <rte_version.h>

#include <cstdint>

#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
#include <rte_ip6.h>
#endif

namespace sluice::lookup {

#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
inline const rte_ipv6_addr* dpdk_ipv6(const std::uint8_t* bytes) {
  return reinterpret_cast<const rte_ipv6_addr*>(bytes);
}
inline rte_ipv6_addr* dpdk_ipv6(std::uint8_t* bytes) {
  return reinterpret_cast<rte_ipv6_addr*>(bytes);
}
inline rte_ipv6_addr* dpdk_ipv6(std::uint8_t (*list)[16]) {
  return reinterpret_cast<rte_ipv6_addr*>(list);
}
#else
inline const std::uint8_t* dpdk_ipv6(const std::uint8_t* bytes) {
  return bytes;
}
inline std::uint8_t* dpdk_ipv6(std::uint8_t* bytes) {
  return bytes;
}
inline std::uint8_t (*dpdk_ipv6(std::uint8_t (*list)[16]))[16] {
  return list;
}
#endif

}  // namespace sluice::lookup
