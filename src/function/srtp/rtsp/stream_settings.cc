#include "function/srtp/rtsp/stream_settings.h"

#include <string>
#include <utility>

namespace sluice::function::rtsp {
namespace {

using function::Carries;
using function::Keyless;
using function::MediaStreamSettings;
using media::rtsp::Leg;
using media::rtsp::PortPair;

std::string end_text(const packet::IpAddress& address, std::uint16_t port) {
  return (address.family == 6 ? "[" + address.str() + "]" : address.str()) + ':' + std::to_string(port);
}

MediaStreamSettings between(const packet::IpAddress& source, std::uint16_t source_port,
                            const packet::IpAddress& destination, std::uint16_t destination_port, Carries carries) {
  MediaStreamSettings settings;
  settings.origin = function::MediaOrigin::rtsp;
  settings.key = function::media_key(source, source_port, destination, destination_port);
  settings.name = end_text(source, source_port) + " -> " + end_text(destination, destination_port);
  settings.carries = carries;
  return settings;
}

// With these ends in place of those that it comes by.
void leave_by(const packet::IpAddress& source, std::uint16_t source_port, const packet::IpAddress& destination,
              std::uint16_t destination_port, MediaStreamSettings& settings) {
  settings.leaves = function::media_key(source, source_port, destination, destination_port);
  settings.name += " as " + end_text(source, source_port) + " -> " + end_text(destination, destination_port);
}

// RTP and RTCP share their ports.
bool together(const Leg& leg) {
  return leg.client_ports.rtp == leg.client_ports.rtcp && leg.server_ports.rtp == leg.server_ports.rtcp;
}

Expected<void> take_client_key(const media::rtsp::ClientKey& key, MediaStreamSettings& settings) {
  media::sdp::CryptoKey one;
  one.key = key.key;
  if (key.mki.size() > sizeof(std::uint64_t)) {
    return make_error("the client's MKI has " + std::to_string(key.mki.size()) + " bytes, and 8 are the most here");
  }
  if (!key.mki.empty()) {
    std::uint64_t mki = 0;
    for (const std::uint8_t byte : key.mki) mki = mki << 8 | byte;
    one.mki = mki;
    one.mki_length = static_cast<std::uint8_t>(key.mki.size());
  }
  settings.direction = srtp::Direction::unprotect;
  settings.crypto.suite = key.suite;
  settings.crypto.keys.push_back(std::move(one));
  return {};
}

}  // namespace

Expected<std::vector<MediaStreamSettings>> streams_of(const media::rtsp::Stream& stream, bool accept_clear_rtcp,
                                                      const Sides& sides, std::uint32_t max_ssrcs) {
  const Leg &outside = stream.client_side, &inside = stream.server_side;
  const bool is_explicit = outside != inside;
  std::vector<MediaStreamSettings> all;
  const auto to_client = [&](std::uint16_t PortPair::*port, Carries carries) {
    MediaStreamSettings one =
        between(inside.server, inside.server_ports.*port, inside.client, inside.client_ports.*port, carries);
    if (is_explicit) {
      leave_by(outside.server, outside.server_ports.*port, outside.client, outside.client_ports.*port, one);
    }
    one.ingress = sides.server;
    one.max_ssrcs = max_ssrcs;
    one.direction = srtp::Direction::protect;
    one.crypto.suite = stream.suite;
    one.crypto.keys.push_back({.key = stream.to_client, .lifetime = {}, .mki = {}});
    all.push_back(std::move(one));
  };
  const auto to_server = [&](std::uint16_t PortPair::*port, Carries carries) {
    MediaStreamSettings one =
        between(outside.client, outside.client_ports.*port, outside.server, outside.server_ports.*port, carries);
    one.ingress = sides.client;
    if (is_explicit) leave_by(inside.client, inside.client_ports.*port, inside.server, inside.server_ports.*port, one);
    return one;
  };
  to_client(&PortPair::rtp, together(inside) ? Carries::both : Carries::rtp);
  if (!together(inside)) to_client(&PortPair::rtcp, Carries::rtcp);
  if (is_explicit && !together(outside)) {
    all.push_back(to_server(&PortPair::rtp, Carries::rtp));
    all.back().keyless = Keyless::passes;
  }
  MediaStreamSettings back = to_server(&PortPair::rtcp, together(outside) ? Carries::both : Carries::rtcp);
  if (stream.from_client) {
    if (auto ok = take_client_key(*stream.from_client, back); !ok) return tl::unexpected(ok.error());
  } else {
    back.keyless = accept_clear_rtcp ? Keyless::passes_rtcp : Keyless::drops_rtcp;
  }
  all.push_back(std::move(back));
  return all;
}

}  // namespace sluice::function::rtsp
