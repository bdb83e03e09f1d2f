// For the room's tests: addresses, selectors and policies as one reads them, and random ones of few values, so that
// they meet.
#pragma once

#include <random>
#include <string>
#include <string_view>

#include "ipsec/security_association.h"
#include "ipsec/selector.h"

namespace sluice::ipsec::test {

inline packet::IpAddress ip(std::string_view text) {
  return packet::IpAddress::parse(text).value();
}
inline packet::IpPrefix prefix(std::string_view text) {
  return packet::IpPrefix::parse(text).value();
}

inline Selector selector(std::string_view source, std::string_view destination, std::uint8_t protocol = 0,
                         PortMatch source_port = {}, PortMatch destination_port = {}) {
  return {prefix(source), prefix(destination), protocol, source_port, destination_port};
}

inline FlowKey flow(std::string_view source, std::string_view destination, std::uint8_t protocol = 17,
                    std::uint16_t source_port = 1000, std::uint16_t destination_port = 2000) {
  return {ip(source), ip(destination), protocol, true, source_port, destination_port};
}

// An address within 10.0.0.0/14 or 2001:db8::/32, one of a hundred or so.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }
  bool once_in(std::uint32_t n) { return below(n) == 0; }

  packet::IpAddress address(bool ipv4) {
    packet::IpAddress address = ip(ipv4 ? "10.0.0.0" : "2001:db8::");
    const std::size_t last = ipv4 ? 3 : 15;
    address.bytes[ipv4 ? 1 : 4] = static_cast<std::uint8_t>(below(4));
    address.bytes[last - 1] = static_cast<std::uint8_t>(below(3));
    address.bytes[last] = static_cast<std::uint8_t>(below(8));
    return address;
  }
  FlowKey flow() {
    const bool ipv4 = !once_in(3);
    FlowKey key{.source = address(ipv4), .destination = address(ipv4)};
    key.protocol = once_in(2) ? 17 : 6;
    if (once_in(4)) key.protocol = 50;
    key.has_ports = key.protocol != 50 && !once_in(8);
    if (key.has_ports) {
      key.source_port = static_cast<std::uint16_t>(below(4));
      key.destination_port = static_cast<std::uint16_t>(below(4));
    }
    return key;
  }
  // Like what flow() gives, with masks of any kind; not `varied`: of a few kinds.
  Selector selector(bool varied = true) {
    const bool ipv4 = !once_in(3);
    const auto length = [&]() -> unsigned {
      constexpr unsigned many4[] = {0, 8, 14, 15, 16, 24, 31, 32}, many6[] = {0, 32, 39, 40, 64, 113, 127, 128};
      constexpr unsigned few4[] = {16, 24, 32}, few6[] = {40, 120, 128};
      if (!varied) return (ipv4 ? few4 : few6)[below(3)];
      return (ipv4 ? many4 : many6)[below(8)];
    };
    Selector selector;
    selector.source = packet::IpPrefix::of(address(ipv4), length());
    selector.destination = packet::IpPrefix::of(address(ipv4), length());
    if (once_in(2)) selector.protocol = once_in(2) ? 17 : 6;
    if (!varied) return selector;
    const auto port = [&] {
      constexpr std::uint16_t masks[] = {0xffff, 0xfffe, 1};
      return PortMatch{static_cast<std::uint16_t>(below(4)), masks[below(3)]};
    };
    if (once_in(4)) selector.source_port = port();
    if (once_in(3)) selector.destination_port = port();
    return selector;
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

inline Template tunnel_template(std::string_view source, std::string_view destination, std::uint32_t reqid = 0) {
  return {.protocol = Protocol::esp,
          .mode = Mode::tunnel,
          .source = ip(source),
          .destination = ip(destination),
          .reqid = reqid};
}

inline Policy protecting(Direction direction, const Selector& selector, std::uint32_t priority, const Template& with) {
  return {.direction = direction, .selector = selector, .priority = priority, .templates = {with}};
}

inline Policy bypassing(Direction direction, const Selector& selector, std::uint32_t priority) {
  return {.direction = direction, .selector = selector, .priority = priority, .action = Action::bypass};
}

// HMAC-SHA1-96 alone, as AH and NULL encryption have it.
inline Transform sha1() {
  Transform transform{.hash = crypto::Hash::hmac_sha1, .icv_length = 12};
  for (std::uint8_t i = 0; i < 20; ++i) transform.auth_key.bytes.bytes[i] = i;
  transform.auth_key.length = 20;
  return transform;
}

// Of ESP in a tunnel.
inline SaSettings sa(Direction direction, std::string_view source, std::string_view destination, std::uint32_t spi,
                     std::uint32_t reqid = 0) {
  return {.id = {ip(destination), spi, Protocol::esp},
          .source = ip(source),
          .direction = direction,
          .reqid = reqid,
          .transform = sha1()};
}

}  // namespace sluice::ipsec::test
