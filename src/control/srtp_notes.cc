#include "control/srtp_notes.h"

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "control/pipeline_maker.h"
#include "function/srtp/rtsp_settings.h"
#include "function/srtp/shared_keys.h"
#include "function/srtp/stream_settings.h"

namespace sluice::control {
namespace {

constexpr std::uint32_t ethernet = 14;

bool has_srtp(const Config& config) {
  return std::ranges::find(config.engine.chain, "srtp") != config.engine.chain.end();
}

std::string measured_note(const function::RtspOptions& options, bool admits) {
  if (!options.measured || options.max_rate != 0 || admits) return "";
  return "rtsp: measured: without max_rate, or a [profile] that admits, media are held to nothing, and none is "
         "measured";
}

std::string default_rate_note(const function::RtspOptions& options, bool admits) {
  if (options.default_rate != 0 || (!admits && options.max_rate == 0)) return "";
  if (!admits) {
    return "rtsp: max_rate without default_rate: media whose description names no rate (no b=) count as nothing, and "
           "are held to nothing. Give default_rate what such media may bring";
  }
  return "rtsp: there is no default_rate, and [profile] admits streams: media whose description names no rate (no b=) "
         "are refused with 453. Give default_rate what such media may bring, or set [profile] streams = \"all\"";
}

// ffmpeg asks for such media all the same, and plays what it cannot decrypt.
std::string suite_note(const function::RtspOptions& options) {
  using enum srtp::Suite;
  if (options.suite == aes_cm_128_hmac_sha1_80 || options.suite == aes_cm_128_hmac_sha1_32) return "";
  return fmt::format(
      "rtsp: suite = \"{}\": ffmpeg, and players that are made of it, know {} and {} alone, and play ciphertext as "
      "noise: it is for clients that are known to have it, as GStreamer has",
      srtp::facts(options.suite).name, srtp::facts(aes_cm_128_hmac_sha1_80).name,
      srtp::facts(aes_cm_128_hmac_sha1_32).name);
}

}  // namespace

std::vector<std::string> shared_key_notes(Config& config) {
  if (!has_srtp(config)) return {};
  const engine::PortTable ports = described_ports(config.engine);
  std::uint32_t largest_frame = 0;
  for (std::size_t port = 0; port < ports.size(); ++port)
    largest_frame = std::max(largest_frame, ports[port].mtu + ethernet);
  Settings srtp = config.section("srtp");
  return function::shared_key_notes(function::read_streams(srtp, largest_frame, ports));
}

std::string readable_keys_note(Config& config) {
  struct stat facts {};
  if (!has_srtp(config) || !config.section("srtp").has("stream") || stat(config.file().c_str(), &facts) != 0 ||
      (facts.st_mode & S_IROTH) == 0) {
    return "";
  }
  return config.file() + ": every user of this machine can read its keys: chmod o= " + config.file();
}

std::vector<std::string> media_notes(const function::RtspOptions& options, bool admits) {
  std::vector<std::string> notes = {measured_note(options, admits), default_rate_note(options, admits),
                                    suite_note(options)};
  std::erase(notes, "");
  return notes;
}

std::vector<std::string> rtsp_notes(Config& config, const rtsp::HostLimits& limits) {
  if (!has_srtp(config) || !config.section("srtp").has("rtsp")) return {};
  const function::RtspOptions options =
      function::read_rtsp(config.section("srtp").section("rtsp"), described_ports(config.engine));
  std::vector<std::string> notes = media_notes(options, config.profile.profile && config.profile.admits);
  notes.push_back(rtsp::files_note(options, limits.files));
  notes.push_back(rtsp::media_ports_note(options, limits));
  std::erase(notes, "");
  return notes;
}

}  // namespace sluice::control
