#include "function/srtp/clear_media.h"

#include "packet/metadata.h"

namespace sluice::function {
namespace {

bool is_low(std::uint16_t port) {
  return packet::be16(port) < 1024;
}

bool is_version_2(std::uint8_t first) {
  return first >> 6 == 2;
}

// Behind tags, options and extension headers.
[[gnu::cold, gnu::noinline]] bool odd_begins_so(const std::uint8_t* frame, std::uint32_t length) {
  packet::Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::transport, meta);
  return meta.has_header && meta.payload < meta.payload_end && is_version_2(frame[meta.payload]);
}

}  // namespace

bool may_be_clear_media(const std::uint8_t* frame, std::uint32_t length, const MediaFrame& media) {
  if (media.kind == MediaFrameKind::other || is_low(media.key.source_port) || is_low(media.key.destination_port)) {
    return false;
  }
  if (media.kind == MediaFrameKind::odd) return odd_begins_so(frame, length);
  return media.payload_offset() < length && is_version_2(frame[media.payload_offset()]);
}

}  // namespace sluice::function
