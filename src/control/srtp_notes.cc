#include "control/srtp_notes.h"

#include <algorithm>
#include <utility>

#include "control/function_maker.h"
#include "function/srtp/rtsp_settings.h"
#include "function/srtp/shared_keys.h"
#include "function/srtp/stream_settings.h"

namespace sluice::control {
namespace {

constexpr std::uint32_t ethernet = 14;

bool has_srtp(const Config& config) {
  return std::ranges::find(config.engine.chain, "srtp") != config.engine.chain.end();
}

}  // namespace

std::vector<std::string> shared_key_notes(Config& config) {
  if (!has_srtp(config)) return {};
  const engine::PortTable ports = described_ports(config.engine);
  std::vector<function::MediaStreamSettings> streams;
  std::uint32_t largest_frame = 0;
  for (std::size_t port = 0; port < ports.size(); ++port)
    largest_frame = std::max(largest_frame, ports[port].mtu + ethernet);
  for (Settings& stream : config.section("srtp").sections("stream"))
    function::read_stream(stream, largest_frame, ports, streams);
  return function::shared_key_notes(std::move(streams));
}

std::vector<std::string> rtsp_notes(Config& config, const rtsp::HostLimits& limits) {
  if (!has_srtp(config) || !config.section("srtp").has("rtsp")) return {};
  const function::RtspOptions options =
      function::read_rtsp(config.section("srtp").section("rtsp"), described_ports(config.engine));
  std::vector<std::string> notes = {rtsp::files_note(options, limits.files), rtsp::media_ports_note(options, limits)};
  std::erase(notes, "");
  return notes;
}

}  // namespace sluice::control
