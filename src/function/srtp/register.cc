// The stage's entry in the list of functions: reads [srtp]. No message shows a value of that section.
#include <algorithm>
#include <string>
#include <utility>

#include "engine/function.h"
#include "engine/port_table.h"
#include "function/srtp/srtp.h"

namespace sluice::function {
namespace {

constexpr std::int64_t most_ssrcs = 65536;
constexpr std::uint32_t ethernet = 14;

packet::IpAddress address_of(Settings& settings, const char* key) {
  const std::string text = settings.required_text(key);
  const auto address = packet::IpAddress::parse(text);
  if (address) return *address;
  if (!text.empty()) settings.error(key, address.error().message);
  return {};
}

std::uint16_t port_of(Settings& settings, const char* key) {
  if (!settings.has(key)) settings.error(key, "is missing: give a UDP port");
  return static_cast<std::uint16_t>(settings.integer(key, 1, 1, 65535));
}

// Whether the text has a tag and a known suite where they belong: only then do messages of parse_crypto() name nothing
// that may be a key.
bool begins_as_crypto(const std::string& text) {
  const std::size_t tag = text.find_first_not_of("0123456789");
  if (tag == 0 || tag > 9 || tag == std::string::npos || text[tag] != ' ') return false;
  return srtp::suite_named(std::string_view(text).substr(tag + 1, text.find(' ', tag + 1) - tag - 1)).has_value();
}

void read_crypto(Settings& settings, MediaStreamSettings& stream) {
  const std::string text = settings.required_text("crypto");
  if (text.empty()) return;
  if (!begins_as_crypto(text)) {
    std::string names;
    for (const srtp::SuiteFacts& suite : srtp::suites) names += (names.empty() ? "" : ", ") + std::string(suite.name);
    settings.error("crypto", "give \"1 SUITE inline:KEY\", as in an a=crypto line of SDP; suites are " + names);
    return;
  }
  auto crypto = media::sdp::parse_crypto(text);
  if (crypto) {
    stream.crypto = std::move(*crypto);
  } else {
    settings.error("crypto", crypto.error().message);
  }
}

void read_rollover(Settings& settings, MediaStreamSettings& stream) {
  const bool given = settings.has("roc");
  const auto ssrc = settings.integer("ssrc", 0, 0, 0xffffffff);
  const auto counter = settings.integer("roc", 0, 0, 0xffffffff);
  if (given != settings.has("ssrc")) {
    settings.error("", "ssrc and roc go together: the rollover counter with which this SSRC begins");
  } else if (given) {
    stream.rollover = {static_cast<std::uint32_t>(ssrc), static_cast<std::uint32_t>(counter)};
  }
}

// Of a stream that says no burst: what comes in this part of a second, and two of the largest frames at least.
constexpr std::uint64_t bursts_a_second = 10;
// RTCP's part of a stream's rate (RFC 3550 section 6.2), where it has a 5-tuple of its own.
constexpr std::uint64_t rtcp_part = 20;
constexpr std::int64_t highest_rate = 1'000'000'000'000;
constexpr std::int64_t largest_burst = 1 << 30;

void read_rate(Settings& settings, std::uint32_t largest_frame, MediaStreamSettings& stream) {
  const auto bits = static_cast<std::uint64_t>(settings.integer("rate", 1, 1, highest_rate));
  const auto least = std::uint64_t{2} * largest_frame;
  const auto burst =
      static_cast<std::uint64_t>(settings.integer("burst", 0, static_cast<std::int64_t>(least), largest_burst));
  if (settings.has("rate")) {
    stream.rate = {bits, burst != 0 ? burst : std::max(bits / 8 / bursts_a_second, least)};
  } else if (settings.has("burst")) {
    settings.error("burst", "there is no rate: say how many bits a second the stream may bring");
  }
  settings.duration("deadline", {});  // what it means is the admission's (control/stream_demands.h)
}

std::string name_of(const packet::IpAddress& source, std::uint16_t source_port, const packet::IpAddress& destination,
                    std::uint16_t destination_port) {
  const auto end = [](const packet::IpAddress& address, std::uint16_t port) {
    return (address.family == 6 ? "[" + address.str() + "]" : address.str()) + ":" + std::to_string(port);
  };
  return end(source, source_port) + " -> " + end(destination, destination_port);
}

// One for each 5-tuple: RTCP may have ports of its own.
void read_stream(Settings& settings, std::uint32_t largest_frame, std::vector<MediaStreamSettings>& streams) {
  MediaStreamSettings stream;
  if (!settings.has("action")) settings.error("action", "is missing: \"protect\" or \"unprotect\"");
  stream.direction = settings.choice("action", "protect", {"protect", "unprotect"}) == "protect"
                         ? srtp::Direction::protect
                         : srtp::Direction::unprotect;
  const packet::IpAddress source = address_of(settings, "source"), destination = address_of(settings, "destination");
  if (source.family != destination.family && !source.empty() && !destination.empty()) {
    settings.error("destination", "is of another address family than source");
  }
  const std::uint16_t source_port = port_of(settings, "source_port");
  const std::uint16_t destination_port = port_of(settings, "destination_port");
  read_crypto(settings, stream);
  stream.max_ssrcs = static_cast<std::uint32_t>(settings.integer("max_ssrcs", 16, 1, most_ssrcs));
  stream.passes_others = settings.choice("others", "drop", {"drop", "pass"}) == "pass";
  read_rollover(settings, stream);
  read_rate(settings, largest_frame, stream);

  const auto add = [&](Carries carries, std::uint16_t from, std::uint16_t to) {
    MediaStreamSettings one = stream;
    one.carries = carries;
    one.key = media_key(source, from, destination, to);
    one.name = name_of(source, from, destination, to);
    if (carries == Carries::rtcp) one.rollover.reset();
    if (carries == Carries::rtcp && one.rate) one.rate->bits = std::max<std::uint64_t>(one.rate->bits / rtcp_part, 1);
    const bool known = std::ranges::any_of(streams, [&](const auto& other) { return other.key == one.key; });
    if (known) settings.error("", one.name + " is in the table already");
    streams.push_back(std::move(one));
  };
  const bool own_rtcp = settings.has("rtcp_source_port") || settings.has("rtcp_destination_port");
  add(own_rtcp ? Carries::rtp : Carries::both, source_port, destination_port);
  if (own_rtcp) {
    const std::uint16_t from = port_of(settings, "rtcp_source_port");
    add(Carries::rtcp, from, port_of(settings, "rtcp_destination_port"));
  }
  settings.finish();
}

Expected<std::unique_ptr<engine::Stage>> make_srtp(Settings& settings, const engine::PortTable& ports) {
  settings.hide_values();
  Srtp::SrtpOptions options;
  options.max_keys = static_cast<std::uint32_t>(settings.integer("max_keys", 4096, 2, 1 << 22));
  if (ports.size() != 0) options.largest_frame = 0;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    options.largest_frame = std::max(options.largest_frame, ports[port].mtu + ethernet);
  }
  for (Settings& stream : settings.sections("stream")) read_stream(stream, options.largest_frame, options.streams);
  std::size_t keys = 0;
  for (const MediaStreamSettings& stream : options.streams) {
    keys += stream.crypto.keys.size() * (stream.carries == Carries::both ? 2 : 1);
  }
  if (keys > options.max_keys) {
    settings.error("max_keys", "the streams take " + std::to_string(keys) + " keys: raise it above that");
  }
  return std::make_unique<Srtp>(std::move(options));
}

const bool registered = engine::register_function(
    {.name = "srtp",
     .text = "protects RTP and RTCP of the streams in its table, and unprotects SRTP and SRTCP",
     .make_stage = make_srtp});

}  // namespace
}  // namespace sluice::function
