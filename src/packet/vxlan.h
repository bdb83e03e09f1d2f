// VXLAN (RFC 7348): an Ethernet frame in UDP over IPv4 or IPv6.
//
//   outer Ethernet 14 | IPv4 20 or IPv6 40 | UDP 8 | VXLAN 8 | inner Ethernet frame without FCS
//
// find_vxlan() says cheaply whether a frame may be one, check_vxlan() whether it is a good one. VxlanFront holds the
// headers of one tunnel to one remote, made once, and writes them in front of a frame.
//
// The ECN field goes through a tunnel as RFC 6040 says (ecn.h).
//
// Sources: RFC 7348; RFC 6935 and RFC 6936 (zero UDP checksums over IPv6).
// Thread-safety: no state but the caller's; any thread. Nothing is read or written outside what is given. No call
// allocates. Cost: the headers alone, and of check_vxlan() and write() a pass over the frame where there is a UDP
// checksum.
#pragma once

#include <cstdint>

#include "packet/ecn.h"
#include "packet/headers.h"
#include "packet/ip_address.h"

namespace sluice::packet {

inline constexpr std::uint16_t vxlan_port = 4789;  // IANA
inline constexpr std::uint32_t most_vni = 0xffffff;
inline constexpr std::uint8_t vxlan_has_vni = 0x08;  // of VxlanHeader::flags, the I flag

struct [[gnu::packed, gnu::may_alias]] VxlanHeader {
  std::uint8_t flags;
  std::uint8_t reserved[3];  // ignored on receipt
  std::uint32_t vni;         // 24 bits, then 8 reserved ones
};
static_assert(sizeof(VxlanHeader) == 8);

// Bytes in front of the inner frame: 50 over IPv4, 70 over IPv6.
constexpr std::uint32_t vxlan_front(int family) {
  const std::size_t ip = family == 4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
  return static_cast<std::uint32_t>(sizeof(EthernetHeader) + ip + sizeof(UdpHeader) + sizeof(VxlanHeader));
}
// By which the MTU of the inner link is less than that of the outer one, whose Ethernet header is its own.
constexpr std::uint32_t vxlan_overhead(int family) {
  return vxlan_front(family);  // the inner Ethernet header takes the place of the outer one
}

// --- In ---

struct VxlanView {
  std::uint8_t family = 0;               // of the outer IP, 4 or 6
  std::uint8_t tos = 0;                  // of the outer IP
  bool fragment = false;                 // of the outer packet: what is behind the IP header is not known
  std::uint16_t port = 0;                // UDP destination, host order
  std::uint32_t udp = 0;                 // offset of the UDP header; of a fragment that has none: of its piece
  std::uint32_t fragment_header = 0;     // offset of IPv6's, of a fragment
  std::uint32_t ip_length = 0;           // bytes of the outer IP packet, as its header says
  const std::uint8_t* source = nullptr;  // outer addresses, in the frame
  const std::uint8_t* destination = nullptr;
  // By check_vxlan():
  std::uint32_t vni = 0;
  std::uint32_t inner = 0;         // offset of the inner frame
  std::uint32_t inner_length = 0;  // bytes
};

// Whether the frame is UDP over IP without VLAN tags and without a routing header, and to whom. A later fragment
// counts, with port 0.
bool find_vxlan(const std::uint8_t* frame, std::uint32_t length, VxlanView& view);

enum class VxlanFault : std::uint8_t {
  none,
  header_checksum,  // of IPv4
  length,           // the IP packet, the datagram or the inner Ethernet header does not fit
  udp_checksum,
  zero_checksum,  // over IPv6, where it was not agreed on (RFC 6936)
  no_vni,         // the I flag is not set
};
// All of it, of a frame that find_vxlan() answered true for and that is no fragment. `zero_checksum6`: IPv6 senders may
// leave the UDP checksum out.
VxlanFault check_vxlan(const std::uint8_t* frame, std::uint32_t length, bool zero_checksum6, VxlanView& view);

// --- Out ---

// RFC 7348 section 5: from the dynamic ports 49152 to 65535, the same for all frames of an inner flow.
std::uint16_t vxlan_source_port(const std::uint8_t* inner, std::uint32_t length);

class VxlanFront {
 public:
  enum class DontFragment : std::uint8_t { unset, set, inherit };
  struct Options {
    IpAddress local, remote;  // of one family
    MacAddress source_mac, next_hop_mac;
    std::uint32_t vni = 0;
    std::uint16_t port = vxlan_port;
    std::uint8_t ttl = 64;
    bool inherit_ttl = false;
    std::uint8_t dscp = 0;
    bool inherit_dscp = false;
    DontFragment dont_fragment = DontFragment::unset;
    bool udp_checksum = false;
    bool operator==(const Options&) const = default;
  };
  VxlanFront() = default;
  explicit VxlanFront(const Options& options);

  std::uint32_t bytes() const { return bytes_; }
  // Writes the bytes() in front of `inner`, which are the caller's. `inner_length` with them is at most 65,535 + 14.
  // `ip_id`: of IPv4 without DF, unlike that of the sender's other packets of the last seconds.
  void write(std::uint8_t* inner, std::uint32_t inner_length, const InnerIp& ip, std::uint16_t source_port,
             std::uint16_t ip_id) const;

 private:
  Options options_;
  std::uint32_t bytes_ = 0;
  std::uint8_t front_[vxlan_front(6)] = {};
};

}  // namespace sluice::packet
