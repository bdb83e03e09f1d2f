#include "packet/ecn.h"

#include <cstring>

#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/metadata.h"

namespace sluice::packet {
namespace {

constexpr std::uint8_t ecn_mask = 0x3;

}  // namespace

std::optional<Ecn> ecn_unwrapped(Ecn inner, Ecn outer) {
  switch (inner) {
    case not_ect:
      return outer == ce ? std::nullopt : std::optional(not_ect);
    case ect0:
      return outer == ce || outer == ect1 ? outer : ect0;
    case ect1:
      return outer == ce ? ce : ect1;
    case ce:
      return ce;
  }
  return inner;
}

InnerIp inner_ip(const std::uint8_t* frame, std::uint32_t length) {
  Metadata meta;
  read_metadata(frame, length, Depth::network, meta);
  if (meta.family == 4) {
    const auto& header = header_at<Ipv4Header>(frame, meta.network);
    return {meta.network, 4, header.tos, header.ttl, (be16(header.fragment) & ipv4_dont_fragment) != 0};
  }
  if (meta.family == 6) {
    const std::uint8_t* const header = frame + meta.network;
    return {meta.network, 6, ipv6_traffic_class(header), header_at<Ipv6Header>(header, 0).hop_limit, true};
  }
  return {};
}

void set_ecn(std::uint8_t* frame, const InnerIp& ip, Ecn ecn) {
  std::uint8_t* const header = frame + ip.offset;
  if (ip.family == 6) {
    header[1] = static_cast<std::uint8_t>((header[1] & ~(ecn_mask << 4)) | ecn << 4);
    return;
  }
  std::uint16_t before, after;
  std::memcpy(&before, header, sizeof before);
  header[1] = static_cast<std::uint8_t>((header[1] & ~ecn_mask) | ecn);
  std::memcpy(&after, header, sizeof after);
  auto& ipv4 = header_at<Ipv4Header>(header, 0);
  ipv4.checksum = update_checksum(ipv4.checksum, before, after);
}

}  // namespace sluice::packet
