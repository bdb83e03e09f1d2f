// IPv4 and IPv6 addresses and prefixes as values, with parsing and printing. Control path only: the packet path works
// on the bytes of frames.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::packet {

// `bytes` is in network order; an IPv4 address uses the first four and leaves the others 0. family: 4 or 6, 0 = none.
struct IpAddress {
  std::uint8_t family = 0;
  std::array<std::uint8_t, 16> bytes{};

  static IpAddress v4(std::uint32_t host_order);
  static IpAddress from_bytes(int family, const void* network_order);
  static Expected<IpAddress> parse(std::string_view text);
  std::string str() const;
  std::uint32_t v4_host_order() const;
  unsigned bits() const { return family == 4 ? 32 : 128; }
  bool empty() const { return family == 0; }
  auto operator<=>(const IpAddress&) const = default;
};

// A prefix with its host bits cleared.
struct IpPrefix {
  IpAddress address;
  std::uint8_t length = 0;

  static IpPrefix host(const IpAddress& address) { return {address, static_cast<std::uint8_t>(address.bits())}; }
  static IpPrefix of(IpAddress address, unsigned length);  // clears host bits
  // "10.0.0.0/8", "2001:db8::/32", or a bare address (host prefix). Host bits that are set are an error.
  static Expected<IpPrefix> parse(std::string_view text);
  std::string str() const;
  bool contains(const IpAddress& other) const;
  auto operator<=>(const IpPrefix&) const = default;
};

// For unordered containers.
std::size_t hash_of(const IpPrefix& prefix);

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};
  static Expected<MacAddress> parse(std::string_view text);
  std::string str() const;
  // As mac_word() of packet/headers.h reads it from a frame.
  std::uint64_t word() const {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    return word;
  }
  bool operator==(const MacAddress&) const = default;
};

}  // namespace sluice::packet
