// Which frames match: IPv4 and IPv6, tags, fragments, other ports and bytes, and frames that end too early.
#include "rule.h"

#include <cstdio>
#include <vector>

namespace {

using Frame = std::vector<std::uint8_t>;
int failed = 0;

void expect(const char* what, bool wanted, const Frame& frame) {
  const udp_prefix::Rule rule{123, 4, {0x17, 0x00, 0x03, 0x2a}};
  // Its own memory, so that a sanitizer sees a byte too far.
  if (udp_prefix::matches(rule, frame.data(), static_cast<unsigned>(frame.size())) == wanted) return;
  std::printf("%s: %s\n", what, wanted ? "has to match" : "must not match");
  ++failed;
}

Frame ethernet(std::uint8_t type_high, std::uint8_t type_low, bool tagged = false) {
  Frame frame(12, 2);
  if (tagged) frame.insert(frame.end(), {0x81, 0x00, 0, 7});
  frame.insert(frame.end(), {type_high, type_low});
  return frame;
}

Frame with_udp(Frame frame, std::uint8_t port = 123, std::uint8_t first = 0x17) {
  frame.insert(frame.end(), {0x80, 0, 0, port, 0, 16, 0, 0, first, 0x00, 0x03, 0x2a, 0, 0, 0, 0});
  return frame;
}

Frame ipv4(std::uint8_t fragment = 0, bool tagged = false) {
  Frame frame = ethernet(0x08, 0x00, tagged);
  frame.insert(frame.end(), {0x45, 0, 0, 44, 0, 1, 0, fragment, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2});
  return frame;
}

Frame ipv6() {
  Frame frame = ethernet(0x86, 0xdd);
  frame.insert(frame.end(), {0x60, 0, 0, 0, 0, 16, 17, 64});
  frame.resize(frame.size() + 32, 1);
  return frame;
}

}  // namespace

int main() {
  expect("IPv4", true, with_udp(ipv4()));
  expect("IPv4 with a tag", true, with_udp(ipv4(0, true)));
  expect("IPv6", true, with_udp(ipv6()));
  expect("another port", false, with_udp(ipv4(), 53));
  expect("another byte", false, with_udp(ipv4(), 123, 0x16));
  expect("a later fragment", false, with_udp(ipv4(8)));
  const Frame whole = with_udp(ipv4());
  for (std::size_t bytes = 0; bytes < 46; ++bytes) {
    expect("a frame that ends early", false, Frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)));
  }
  return failed == 0 ? 0 : 1;
}
