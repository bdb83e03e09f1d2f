#include "packet/ip_address.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/quote.h"

namespace sluice::packet {

IpAddress IpAddress::v4(std::uint32_t host_order) {
  const std::uint32_t be = htonl(host_order);
  return from_bytes(4, &be);
}

IpAddress IpAddress::from_bytes(int family, const void* network_order) {
  IpAddress a;
  a.family = static_cast<std::uint8_t>(family);
  std::memcpy(a.bytes.data(), network_order, family == 4 ? 4 : 16);
  return a;
}

Expected<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string copy(text);
  IpAddress a;
  a.family = copy.find(':') == std::string::npos ? 4 : 6;
  // inet_pton stops at a NUL that is inside the text.
  if (copy.find('\0') != std::string::npos ||
      inet_pton(a.family == 4 ? AF_INET : AF_INET6, copy.c_str(), a.bytes.data()) != 1) {
    return make_error(in_quotes(text) + " is not an IPv4 or IPv6 address");
  }
  return a;
}

std::string IpAddress::str() const {
  char buffer[INET6_ADDRSTRLEN] = "none";
  if (family != 0) {
    inet_ntop(family == 4 ? AF_INET : AF_INET6, bytes.data(), buffer, sizeof buffer);
  }
  return buffer;
}

std::uint32_t IpAddress::v4_host_order() const {
  std::uint32_t be;
  std::memcpy(&be, bytes.data(), 4);
  return ntohl(be);
}

IpPrefix IpPrefix::of(IpAddress address, unsigned length) {
  const unsigned total = address.bits();
  if (length > total) {
    length = total;
  }
  for (unsigned bit = length; bit < total; ++bit) {
    address.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  }
  return {address, static_cast<std::uint8_t>(length)};
}

Expected<IpPrefix> IpPrefix::parse(std::string_view text) {
  const auto slash = text.find('/');
  auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) {
    return tl::unexpected(address.error());
  }
  unsigned length = address->bits();
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
    if (ec != std::errc() || end != digits.data() + digits.size() || length > address->bits()) {
      return make_error(in_quotes(text) + ": the prefix length must be 0 to " + std::to_string(address->bits()));
    }
  }
  const IpPrefix prefix = of(*address, length);
  if (prefix.address != *address) {
    return make_error(in_quotes(text) + " has host bits set; did you mean " + prefix.str() + "?");
  }
  return prefix;
}

std::string IpPrefix::str() const {
  return address.str() + "/" + std::to_string(length);
}

bool IpPrefix::contains(const IpAddress& other) const {
  return other.family == address.family && of(other, length).address == address;
}

std::size_t hash_of(const IpPrefix& prefix) {
  std::uint64_t words[2];
  std::memcpy(words, prefix.address.bytes.data(), sizeof words);
  return (words[0] * 0x9e3779b97f4a7c15ULL ^ words[1]) * 0xbf58476d1ce4e5b9ULL + prefix.length * 0x94d049bb133111ebULL;
}

Expected<MacAddress> MacAddress::parse(std::string_view text) {
  MacAddress mac;
  bool fine = text.size() == 17;
  for (std::size_t i = 0; fine && i < mac.bytes.size(); ++i) {
    const char* digits = text.data() + 3 * i;
    const auto [end, ec] = std::from_chars(digits, digits + 2, mac.bytes[i], 16);
    fine = ec == std::errc() && end == digits + 2 && (i == 5 || *end == ':');
  }
  if (!fine) {
    return make_error(in_quotes(text) + " is not a MAC address (aa:bb:cc:dd:ee:ff)");
  }
  return mac;
}

std::string MacAddress::str() const {
  char buffer[18];
  std::snprintf(buffer, sizeof buffer, "%02x:%02x:%02x:%02x:%02x:%02x", bytes[0], bytes[1], bytes[2], bytes[3],
                bytes[4], bytes[5]);
  return buffer;
}

}  // namespace sluice::packet
