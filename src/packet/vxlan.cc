#include "packet/vxlan.h"

#include <algorithm>
#include <cstring>

#include "packet/checksum.h"
#include "packet/flow_hash.h"
#include "packet/metadata.h"
#include "packet/parse.h"

namespace sluice::packet {
namespace {

constexpr std::uint32_t ethernet = sizeof(EthernetHeader);
constexpr std::uint8_t ecn_mask = 0x3;
constexpr std::uint16_t first_dynamic_port = 49152;

bool udp_checksum_ok(const std::uint8_t* frame, const VxlanView& view, std::uint32_t bytes) {
  // A right checksum makes the sum over itself 0, which is given as 0xffff.
  const std::uint8_t* const udp = frame + view.udp;
  const std::uint16_t sum = view.family == 4
                                ? transport_checksum(header_at<Ipv4Header>(frame, ethernet), udp, bytes)
                                : transport_checksum(header_at<Ipv6Header>(frame, ethernet), protocol_udp, udp, bytes);
  return sum == 0xffff || sum == 0;
}

}  // namespace

bool find_vxlan(const std::uint8_t* frame, std::uint32_t length, VxlanView& view) {
  Metadata meta;
  read_metadata(frame, length, Depth::transport, meta);
  if (meta.family == 0 || meta.tags != 0 || meta.routed) return false;
  view.fragment = meta.fragment();
  if ((view.fragment ? meta.fragment_protocol : meta.protocol) != protocol_udp) return false;
  if (!view.fragment && length < meta.transport + sizeof(UdpHeader)) return false;
  view.family = meta.family;
  view.tos = meta.family == 4 ? header_at<Ipv4Header>(frame, ethernet).tos : ipv6_traffic_class(frame + ethernet);
  view.source = meta.source(frame);
  view.destination = meta.destination(frame);
  view.udp = meta.transport;
  view.fragment_header = meta.fragment_header;
  view.ip_length = meta.ip_length;
  view.port = meta.destination_port;
  return true;
}

VxlanFault check_vxlan(const std::uint8_t* frame, std::uint32_t length, bool zero_checksum6, VxlanView& view) {
  if (view.family == 4) {
    const auto* const ip = frame + ethernet;
    if (internet_checksum(ip, (ip[0] & 0xfU) * 4U) != 0) return VxlanFault::header_checksum;
  }
  const auto& udp = header_at<UdpHeader>(frame, view.udp);
  const std::uint32_t bytes = be16(udp.length);
  constexpr std::uint32_t least = sizeof(UdpHeader) + sizeof(VxlanHeader) + ethernet;
  if (view.ip_length > length - ethernet || view.udp - ethernet + bytes > view.ip_length || bytes < least) {
    return VxlanFault::length;
  }
  if (udp.checksum == 0) {
    if (view.family == 6 && !zero_checksum6) return VxlanFault::zero_checksum;
  } else if (!udp_checksum_ok(frame, view, bytes)) {
    return VxlanFault::udp_checksum;
  }
  const auto& vxlan = header_at<VxlanHeader>(frame, view.udp + sizeof(UdpHeader));
  if ((vxlan.flags & vxlan_has_vni) == 0) return VxlanFault::no_vni;
  view.vni = be32(vxlan.vni) >> 8;
  view.inner = view.udp + sizeof(UdpHeader) + sizeof(VxlanHeader);
  view.inner_length = bytes - (sizeof(UdpHeader) + sizeof(VxlanHeader));
  return VxlanFault::none;
}

std::uint16_t vxlan_source_port(const std::uint8_t* inner, std::uint32_t length) {
  FrameView view;
  std::uint32_t hash = 0;
  if (parse_frame(inner, length, view) == no_reason) hash = flow_hash(inner, length, view);
  if (hash == 0 && length >= ethernet) {
    // No IP: the two stations and the type.
    const std::uint64_t a = mac_word(inner), b = mac_word(inner + 6);
    hash = detail::hash_ends(a, b, inner[13]);
  }
  constexpr std::uint32_t ports = 65536U - first_dynamic_port;
  return static_cast<std::uint16_t>(first_dynamic_port + hash % ports);
}

VxlanFront::VxlanFront(const Options& options) : options_(options), bytes_(vxlan_front(options.local.family)) {
  auto& link = header_at<EthernetHeader>(front_, 0);
  std::copy_n(options.next_hop_mac.bytes.data(), 6, link.destination);
  std::copy_n(options.source_mac.bytes.data(), 6, link.source);
  std::uint32_t udp = ethernet;
  if (options.local.family == 4) {
    link.ethertype = be16(ethertype_ipv4);
    auto& ip = header_at<Ipv4Header>(front_, ethernet);
    ip.version_ihl = 0x45;
    ip.ttl = options.ttl;
    ip.protocol = protocol_udp;
    std::memcpy(&ip.source, options.local.bytes.data(), sizeof ip.source);
    std::memcpy(&ip.destination, options.remote.bytes.data(), sizeof ip.destination);
    udp += sizeof ip;
  } else {
    link.ethertype = be16(ethertype_ipv6);
    auto& ip = header_at<Ipv6Header>(front_, ethernet);
    ip.next_header = protocol_udp;
    ip.hop_limit = options.ttl;
    std::copy_n(options.local.bytes.data(), sizeof ip.source, ip.source);
    std::copy_n(options.remote.bytes.data(), sizeof ip.destination, ip.destination);
    udp += sizeof ip;
  }
  header_at<UdpHeader>(front_, udp).destination_port = be16(options.port);
  auto& vxlan = header_at<VxlanHeader>(front_, udp + sizeof(UdpHeader));
  vxlan.flags = vxlan_has_vni;
  vxlan.vni = be32(options.vni << 8);
}

void VxlanFront::write(std::uint8_t* inner, std::uint32_t inner_length, const InnerIp& inside,
                       std::uint16_t source_port, std::uint16_t ip_id) const {
  std::uint8_t* const frame = inner - bytes_;
  std::memcpy(frame, front_, bytes_);
  const bool has_ip = inside.offset != 0;
  const std::uint8_t dscp = options_.inherit_dscp ? (has_ip ? inside.tos >> 2 : 0) : options_.dscp;
  const auto tos = static_cast<std::uint8_t>(dscp << 2 | (has_ip ? inside.tos & ecn_mask : 0));
  const std::uint8_t ttl = options_.inherit_ttl && has_ip ? inside.ttl : options_.ttl;
  const auto datagram = static_cast<std::uint16_t>(inner_length + sizeof(UdpHeader) + sizeof(VxlanHeader));
  const bool v4 = options_.local.family == 4;
  const std::uint32_t at = ethernet + (v4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header));
  auto& udp = header_at<UdpHeader>(frame, at);
  udp.source_port = be16(source_port);
  udp.length = be16(datagram);
  if (v4) {
    auto& ip = header_at<Ipv4Header>(frame, ethernet);
    const bool keeps_whole = options_.dont_fragment == DontFragment::set ||
                             (options_.dont_fragment == DontFragment::inherit && has_ip && inside.dont_fragment);
    ip.tos = tos;
    ip.ttl = ttl;
    ip.total_length = be16(static_cast<std::uint16_t>(datagram + sizeof ip));
    ip.id = keeps_whole ? std::uint16_t{0} : be16(ip_id);  // RFC 6864 section 4.1
    ip.fragment = keeps_whole ? be16(ipv4_dont_fragment) : std::uint16_t{0};
    ip.checksum = ipv4_header_checksum(ip);
    if (options_.udp_checksum) udp.checksum = transport_checksum(ip, &udp, datagram);
  } else {
    auto& ip = header_at<Ipv6Header>(frame, ethernet);
    ip.version_class_flow = be32(6U << 28 | std::uint32_t{tos} << 20);
    ip.payload_length = be16(datagram);
    ip.hop_limit = ttl;
    if (options_.udp_checksum) udp.checksum = transport_checksum(ip, protocol_udp, &udp, datagram);
  }
}

}  // namespace sluice::packet
