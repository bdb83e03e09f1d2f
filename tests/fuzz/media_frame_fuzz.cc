// Any bytes as a frame on its way to the stage "srtp": what reads it stays inside it, also where it asks whether the
// frame is RTSP's. And a frame that is plain stays one, with right lengths and checksums, when its payload gets
// shorter.
//
// Input: two bytes of a length for the payload, then a frame.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "function/srtp/media_frame.h"
#include "function/srtp/rtsp_flows.h"
#include "require.h"

using namespace sluice;
using namespace sluice::function;

namespace {

// At the end of what is allocated, so that a byte behind it is found.
struct Exact {
  explicit Exact(std::vector<std::uint8_t> from) : bytes(std::move(from)) { bytes.shrink_to_fit(); }
  std::uint8_t* data() { return bytes.data(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(bytes.size()); }
  std::vector<std::uint8_t> bytes;
};

RtspFlows flows() {
  RtspOptions options;
  options.servers = {*packet::IpPrefix::parse("10.0.0.0/8"), *packet::IpPrefix::parse("2001:db8::/32")};
  return RtspFlows(options);
}

std::uint16_t checksum_of(const Exact& frame, const MediaFrame& media) {
  std::uint16_t sum = 0;
  std::memcpy(&sum, frame.bytes.data() + media.udp_offset + 6, sizeof sum);
  return sum;
}

// What a change of the payload's length leaves: of IPv4 a datagram without a checksum has none afterwards either.
void check_shorter(Exact frame, const MediaFrame& media, std::uint32_t wanted) {
  const std::uint32_t before = udp_payload_length(frame.data(), media);
  REQUIRE(media.payload_offset() + before <= frame.size());
  const bool had_none = media.key.family == 4 && checksum_of(frame, media) == 0;
  const std::uint32_t length = wanted % (before + 1);
  const std::uint32_t size = set_udp_payload_length(frame.data(), media.udp_offset, length);
  REQUIRE(size <= frame.size() && size >= media.payload_offset() + length);
  frame.bytes.resize(size);
  frame.bytes.shrink_to_fit();
  MediaFrame after;
  read_media_frame(frame.data(), frame.size(), after);
  REQUIRE(after.kind == MediaFrameKind::plain && after.key == media.key);
  REQUIRE(udp_payload_length(frame.data(), after) == length);
  REQUIRE(udp_checksum_ok(frame.data(), after));
  REQUIRE((after.key.family == 4 && checksum_of(frame, after) == 0) == had_none);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const RtspFlows rtsp = flows();
  if (size < 2) return 0;
  const std::uint32_t wanted = data[0] * 256U + data[1];
  Exact frame({data + 2, data + size});
  const RtspFrame is_rtsp = rtsp.look_at(frame.data(), frame.size());
  MediaFrame media;
  read_media_frame(frame.data(), frame.size(), media);
  if (media.kind == MediaFrameKind::other) return 0;
  REQUIRE(is_rtsp == RtspFrame::none);  // that is UDP
  REQUIRE(media.key.family == 4 || media.key.family == 6);
  if (media.kind != MediaFrameKind::plain) return 0;
  REQUIRE(media.payload_offset() <= frame.size());
  (void)udp_checksum_ok(frame.data(), media);
  check_shorter(frame, media, wanted);
  return 0;
}
