// Any bytes as a frame that may be a tunnel's: nothing outside it is read, what is found good lies within it, and what
// was in it comes out again when it is put into a tunnel and taken out.
#include <cstdint>
#include <vector>

#include "packet/vxlan.h"
#include "require.h"

using namespace sluice::packet;

namespace {

void check_round_trip(const std::vector<std::uint8_t>& inner, int family, bool checksum) {
  VxlanFront::Options options;
  options.local = family == 4 ? IpAddress::v4(0x0a000001) : *IpAddress::parse("2001:db8::1");
  options.remote = family == 4 ? IpAddress::v4(0x0a000002) : *IpAddress::parse("2001:db8::2");
  options.vni = 77;
  options.udp_checksum = checksum;
  options.inherit_dscp = options.inherit_ttl = true;
  const VxlanFront front(options);
  std::vector<std::uint8_t> frame(front.bytes());
  frame.insert(frame.end(), inner.begin(), inner.end());
  const auto length = static_cast<std::uint32_t>(inner.size());
  std::uint8_t* const at = frame.data() + front.bytes();
  front.write(at, length, inner_ip(at, length), vxlan_source_port(at, length), 1);
  VxlanView view;
  const auto whole = static_cast<std::uint32_t>(frame.size());
  REQUIRE(find_vxlan(frame.data(), whole, view));
  REQUIRE(check_vxlan(frame.data(), whole, !checksum, view) == VxlanFault::none);
  REQUIRE(view.vni == 77 && view.inner == front.bytes() && view.inner_length == length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Of its own, so that a read behind it is seen.
  std::vector<std::uint8_t> frame(data, data + size);
  const auto length = static_cast<std::uint32_t>(size);
  VxlanView view;
  if (find_vxlan(frame.data(), length, view) && !view.fragment &&
      check_vxlan(frame.data(), length, true, view) == VxlanFault::none) {
    REQUIRE(view.inner + view.inner_length <= length && view.inner_length >= sizeof(EthernetHeader));
    std::uint8_t* const inner = frame.data() + view.inner;
    const InnerIp ip = inner_ip(inner, view.inner_length);
    if (ip.offset != 0) set_ecn(inner, ip, ce);
  }
  constexpr std::size_t most = 9600;
  if (size < sizeof(EthernetHeader) || size > most) return 0;
  for (const int family : {4, 6}) {
    for (const bool checksum : {false, true}) check_round_trip(frame, family, checksum);
  }
  return 0;
}
