// The element's entry in the list of elements: reads [srtp]. No message shows a value of that section.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "engine/element.h"
#include "engine/port_table.h"
#include "function/srtp/rtsp_settings.h"
#include "function/srtp/srtp.h"
#include "function/srtp/srtp_settings.h"
#include "function/srtp/srtp_type.h"
#include "function/srtp/stream_settings.h"
#include "media/srtp/master_keys.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t ethernet = 14;

// In the table (media/srtp/master_keys.h).
std::size_t keys_of(const MediaStreamSettings& stream) {
  const std::size_t each = stream.crypto.derivation_rate == 0 ? 1 : srtp::key_periods;
  return stream.crypto.keys.size() * each * (stream.carries == Carries::both ? 2 : 1);
}

Expected<std::unique_ptr<engine::Element>> make_srtp(Settings& settings, const engine::PortTable& ports) {
  settings.hide_values();
  Srtp::SrtpOptions options;
  option::read(srtp_settings(), settings, options);
  if (ports.size() != 0) options.largest_frame = 0;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    options.largest_frame = std::max(options.largest_frame, ports[port].mtu + ethernet);
  }
  options.ports = ports;
  options.streams = read_streams(settings, options.largest_frame, ports);
  std::size_t keys = 0;
  for (const MediaStreamSettings& stream : options.streams) keys += keys_of(stream);
  if (keys > options.max_keys) {
    settings.error("max_keys", "the streams take " + std::to_string(keys) + " keys: raise it above that");
  }
  if (settings.has("rtsp")) options.rtsp = read_rtsp(settings.section("rtsp"), ports);
  return std::make_unique<Srtp>(std::move(options));
}

std::vector<OptionSection> srtp_sections() {
  std::vector<OptionSection> sections = {
      option::section("[srtp]", srtp_settings(),
                      "What becomes of frames: [srtp.md](srtp.md#the-element). No message shows a value of this "
                      "section, and the API does not show the section; the file is for its owner's eyes alone."),
      stream_section()};
  std::ranges::move(rtsp_sections(), std::back_inserter(sections));
  return sections;
}

const bool registered = engine::register_element(
    {.name = "srtp",
     .text = "protects RTP and RTCP of the streams in its table, and unprotects SRTP and SRTCP",
     .make = make_srtp,
     .options = srtp_sections,
     .one_thread = true,
     .launches_alone = true,
     .divides = true,
     .classify_time = std::chrono::nanoseconds(420),
     .find_trait = find_srtp_type_trait});

}  // namespace
}  // namespace sluice::function
