#include "function/srtp/address_settings.h"

#include <algorithm>

namespace sluice::function {
namespace {

constexpr unsigned mapped_bits = 96;

bool in(const packet::IpAddress& address, const char* prefix) {
  return packet::IpPrefix::parse(prefix)->contains(address);
}

}  // namespace

packet::IpPrefix without_mapping(const packet::IpPrefix& prefix) {
  if (prefix.length < mapped_bits || !in(prefix.address, "::ffff:0:0/96")) return prefix;
  return packet::IpPrefix::of(packet::IpAddress::from_bytes(4, prefix.address.bytes.data() + mapped_bits / 8),
                              prefix.length - mapped_bits);
}

bool is_of_many(const packet::IpAddress& address) {
  return in(address, "224.0.0.0/4") || in(address, "ff00::/8") || in(address, "255.255.255.255/32");
}

std::string why_in_no_packet(const packet::IpAddress& address, AddressUse use) {
  const packet::IpAddress plain = without_mapping(packet::IpPrefix::host(address)).address;
  if (plain != address) return "is an IPv4 address in IPv6's form, which no packet has: write " + plain.str();
  const auto zero = [](std::uint8_t byte) { return byte == 0; };
  if (std::ranges::all_of(address.bytes, zero)) return "is no host's: give the address that its packets have";
  if (in(address, "127.0.0.0/8") || in(address, "::1/128")) {
    return "never leaves its host: give the address that its packets have on the way through the gateway";
  }
  const bool many = is_of_many(address);
  if (use == AddressUse::source && many)
    return "is of many hosts, and no packet comes from it: give the sender's address";
  if (use == AddressUse::host && many) return "is of many hosts, and none answers there: give an address of one host";
  return "";
}

}  // namespace sluice::function
