#include "control/rtsp/stream_settings.h"

#include <string>
#include <utility>

namespace sluice::control::rtsp {
namespace {

using function::Carries;
using function::Keyless;
using function::MediaStreamSettings;

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
  settings.crypto.derivation_rate = key.derivation_rate;
  settings.crypto.keys.push_back(std::move(one));
  return {};
}

}  // namespace

Expected<std::vector<MediaStreamSettings>> streams_of(const media::rtsp::Stream& stream, bool accept_clear_rtcp) {
  const media::rtsp::Leg& leg = stream.client_side;
  const bool together = leg.client_ports.rtp == leg.client_ports.rtcp && leg.server_ports.rtp == leg.server_ports.rtcp;
  std::vector<MediaStreamSettings> all;
  const auto to_client = [&](std::uint16_t from, std::uint16_t to, Carries carries) {
    MediaStreamSettings one = between(leg.server, from, leg.client, to, carries);
    one.direction = srtp::Direction::protect;
    one.crypto.suite = stream.suite;
    one.crypto.keys.push_back({.key = stream.to_client, .lifetime = {}, .mki = {}});
    all.push_back(std::move(one));
  };
  to_client(leg.server_ports.rtp, leg.client_ports.rtp, together ? Carries::both : Carries::rtp);
  if (!together) to_client(leg.server_ports.rtcp, leg.client_ports.rtcp, Carries::rtcp);
  MediaStreamSettings back = between(leg.client, leg.client_ports.rtcp, leg.server, leg.server_ports.rtcp,
                                     together ? Carries::both : Carries::rtcp);
  if (stream.from_client) {
    if (auto ok = take_client_key(*stream.from_client, back); !ok) return tl::unexpected(ok.error());
  } else {
    back.keyless = accept_clear_rtcp ? Keyless::passes_rtcp : Keyless::drops_rtcp;
  }
  all.push_back(std::move(back));
  return all;
}

}  // namespace sluice::control::rtsp
