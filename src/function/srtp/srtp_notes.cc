#include "function/srtp/srtp_notes.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/in_use.h"
#include "function/srtp/rtsp/host_notes.h"
#include "function/srtp/rtsp/transparent_socket.h"
#include "function/srtp/rtsp_settings.h"
#include "function/srtp/shared_keys.h"
#include "function/srtp/stream_settings.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t ethernet = 14;

std::string measured_note(const RtspOptions& options, bool admits) {
  if (!options.measured || options.max_rate != 0 || admits) return "";
  return "rtsp: measured: without max_rate, or a [profile] that admits, media are held to nothing, and none is "
         "measured";
}

std::string default_rate_note(const RtspOptions& options, bool admits) {
  if (options.default_rate != 0 || (!admits && options.max_rate == 0)) return "";
  if (!admits) {
    return "rtsp: max_rate without default_rate: media whose description names no rate (no b=) count as nothing, and "
           "are held to nothing. Give default_rate what such media may bring";
  }
  return "rtsp: there is no default_rate, and [profile] admits streams: media whose description names no rate (no b=) "
         "are refused with 453. Give default_rate what such media may bring, or set [profile] streams = \"all\"";
}

// ffmpeg asks for such media all the same, and plays what it cannot decrypt.
std::string suite_note(const RtspOptions& options) {
  using enum srtp::Suite;
  if (options.suite == aes_cm_128_hmac_sha1_80 || options.suite == aes_cm_128_hmac_sha1_32) return "";
  return fmt::format(
      "rtsp: suite = \"{}\": ffmpeg, and players that are made of it, know {} and {} alone, and play ciphertext as "
      "noise: it is for clients that are known to have it, as GStreamer has",
      srtp::facts(options.suite).name, srtp::facts(aes_cm_128_hmac_sha1_80).name,
      srtp::facts(aes_cm_128_hmac_sha1_32).name);
}

}  // namespace

std::vector<std::string> shared_key_notes(engine::SectionView& view) {
  std::uint32_t largest_frame = 0;
  for (std::size_t port = 0; port < view.ports.size(); ++port) {
    largest_frame = std::max(largest_frame, view.ports[port].mtu + ethernet);
  }
  return shared_key_notes(read_streams(view.section, largest_frame, view.ports));
}

std::vector<std::string> media_notes(const RtspOptions& options, bool admits) {
  std::vector<std::string> notes = {measured_note(options, admits), default_rate_note(options, admits),
                                    suite_note(options)};
  std::erase(notes, "");
  return notes;
}

namespace {

// Of the first setting that the note names, and that the section has; else the section's.
std::string place_of(const Settings& rtsp, std::string_view note) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz_";
  for (std::size_t end = 0, at = 0; (at = note.find_first_of(letters, end)) != std::string_view::npos;) {
    end = std::min(note.find_first_not_of(letters, at), note.size());
    if (rtsp.has(note.substr(at, end - at))) return rtsp.place(note.substr(at, end - at));
  }
  return rtsp.place("");
}

}  // namespace

std::vector<std::string> rtsp_notes(engine::SectionView& view, const HostLimits& limits) {
  if (!view.section.has("rtsp")) return {};
  const RtspOptions options = read_rtsp(view.section.section("rtsp"), view.ports);
  std::vector<std::string> notes = media_notes(options, view.admits);
  notes.push_back(rtsp::files_note(options, limits.files));
  notes.push_back(rtsp::media_ports_note(options, limits));
  std::erase(notes, "");
  const Settings rtsp = view.section.section("rtsp");
  for (std::string& note : notes) note.insert(0, place_of(rtsp, note) + ": ");
  return notes;
}

// A listener on "lo" meets those that listen on no interface of their own, as one on a twin would.
std::vector<std::string> rtsp_lacks(engine::SectionView& view) {
  std::vector<std::string> lacks;
  if (!view.section.has("rtsp")) return lacks;
  for (const std::uint16_t port : read_rtsp(view.section.section("rtsp"), view.ports).ports) {
    const auto is_free = [&](int family) {
      const auto listener = rtsp::listen_on("lo", family, port);
      return listener || !says_in_use(listener.error().message);
    };
    if (is_free(4) && is_free(6)) continue;
    lacks.push_back("[srtp.rtsp] ports: port " + std::to_string(port) + std::string(in_use_by_another) +
                    "program of this host: end what listens there, or take it out of ports");
  }
  return lacks;
}

}  // namespace sluice::function
