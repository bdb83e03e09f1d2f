#include "media/srtp/header.h"

#include <cstddef>

#include "media/srtp/big_endian.h"

namespace sluice::srtp {
namespace {

constexpr std::uint8_t first_rtcp_type = 192;
constexpr std::uint8_t last_rtcp_type = 223;

bool is_version_2(std::uint8_t first) {
  return first >> 6 == 2;
}
bool is_rtcp_type(std::uint8_t type) {
  return type >= first_rtcp_type && type <= last_rtcp_type;
}

}  // namespace

Status parse_rtp(std::span<const std::uint8_t> packet, RtpHeader& header) {
  if (packet.size() < rtp_fixed_length) {
    return Status::too_short;
  }
  if (!is_version_2(packet[0])) {
    return Status::bad_version;
  }
  std::size_t length = rtp_fixed_length + std::size_t{4} * (packet[0] & 0x0f);
  if ((packet[0] & 0x10) != 0) {  // an extension: its profile, its length in words, the words
    if (packet.size() < length + 4) {
      return Status::bad_header;
    }
    length += 4 + std::size_t{4} * load16(&packet[length + 2]);
  }
  if (length > packet.size() || packet.size() > max_packet_length) {
    return Status::bad_header;
  }
  header = {load32(&packet[8]), load16(&packet[2]), static_cast<std::uint16_t>(length)};
  return Status::ok;
}

Status parse_rtcp(std::span<const std::uint8_t> packet, std::uint32_t& ssrc) {
  if (packet.size() < rtcp_fixed_length) {
    return Status::too_short;
  }
  if (!is_version_2(packet[0])) {
    return Status::bad_version;
  }
  if (!is_rtcp_type(packet[1]) || packet.size() > max_packet_length) {
    return Status::bad_header;
  }
  ssrc = load32(&packet[4]);
  return Status::ok;
}

PacketKind kind_of(std::span<const std::uint8_t> packet) {
  if (packet.size() < 2 || !is_version_2(packet[0])) {
    return PacketKind::other;
  }
  return is_rtcp_type(packet[1]) ? PacketKind::rtcp : PacketKind::rtp;
}

}  // namespace sluice::srtp
