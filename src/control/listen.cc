#include "control/listen.h"

#include <charconv>

#include "packet/ip_address.h"

namespace sluice::control {
namespace {

bool is_loopback(const packet::IpAddress& address) {
  static const packet::IpAddress v6_loopback = *packet::IpAddress::parse("::1");
  return address.family == 4 ? address.bytes[0] == 127 : address == v6_loopback;
}

}  // namespace

std::string ListenAddress::str() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Expected<ListenAddress> parse_listen(std::string_view text) {
  const auto wrong = [] { return make_error("allowed is ADDRESS:PORT, such as \"127.0.0.1:9230\" or \"[::1]:9230\""); };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  ListenAddress result;
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (problem != std::errc{} || end != port.data() + port.size() || result.port < 0 || result.port > 65535)
    return wrong();
  if (host == "localhost") {
    result.host = host;
    result.loopback = true;
    return result;
  }
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  if (brackets) host = host.substr(1, host.size() - 2);
  const auto address = packet::IpAddress::parse(host);
  if (!address || (address->family == 6) != brackets) return wrong();
  result.host = host;
  result.loopback = is_loopback(*address);
  return result;
}

}  // namespace sluice::control
