#include "function/srtp/described_streams.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "function/srtp/media_stream.h"
#include "function/srtp/rtsp_options.h"
#include "function/srtp/stream_settings.h"
#include "media/sdp/crypto_attribute.h"
#include "media/secret.h"
#include "media/srtp/suite.h"

namespace sluice::function {
namespace {

constexpr std::uint64_t rtcp_part = 20;  // of the stream's rate, as it is policed (stream_settings.cc)
constexpr std::int64_t most_rate = 1'000'000'000'000;
constexpr std::uint32_t ethernet = 14;

std::uint32_t largest_frame(const engine::SectionView& view) {
  unsigned mtu = 0;
  for (const port::PortOptions& port : view.options.ports) mtu = std::max(mtu, port.mtu);
  return mtu + ethernet;
}

// w of a stream, or what it would be without packet_bytes.
std::uint32_t largest_in_clear(Settings& settings, std::uint32_t frame, bool as_it_says) {
  MediaStreamSettings stream;
  if (settings.text("action", "") == "unprotect") stream.direction = srtp::Direction::unprotect;
  const media::WipedString line(settings.text("crypto", ""));
  if (auto crypto = media::sdp::parse_crypto(media::sdp::crypto_value(line.text()))) stream.crypto = std::move(*crypto);
  const std::int64_t packet = as_it_says ? settings.integer("packet_bytes", 0, 0, frame) : 0;
  stream.rate = {0, 0, static_cast<std::uint32_t>(packet)};
  return stream.largest_in_clear(frame);
}

}  // namespace

std::uint32_t rtsp_largest_packet(engine::SectionView& view) {
  const auto suite = srtp::suite_named(rtsp_suite(view));
  return suite ? largest_frame(view) - srtp::facts(*suite).rtp_tag_length : 0;
}

std::uint32_t largest_packet(engine::SectionView& view) {
  std::uint32_t largest = rtsp_largest_packet(view);
  for (Settings& settings : view.section.sections("stream")) {
    largest = std::max(largest, largest_in_clear(settings, largest_frame(view), false));
  }
  return largest;
}

std::vector<std::string> stream_suites(engine::SectionView& view) {
  std::set<std::string> names;
  for (Settings& settings : view.section.sections("stream")) {
    const media::WipedString line(settings.text("crypto", ""));
    std::istringstream words{std::string(media::sdp::crypto_value(line.text()))};
    std::string tag, name;
    if (!(words >> tag >> name)) continue;
    const auto suite = srtp::suite_named(name);
    names.insert(suite ? std::string(srtp::facts(*suite).name) : name);
  }
  return {names.begin(), names.end()};
}

std::string rtsp_suite(engine::SectionView& view) {
  if (!view.section.has("rtsp")) return {};
  const std::string usual(srtp::facts(RtspOptions().suite).name);
  const std::string name = view.section.section("rtsp").text("suite", usual);
  const auto suite = srtp::suite_named(name);
  return suite ? std::string(srtp::facts(*suite).name) : name;
}

std::vector<std::string> media_kinds(engine::SectionView& view) {
  std::set<std::string> kinds;
  const auto add = [&kinds](const std::string& action, const std::string& address) {
    if (!address.empty()) kinds.insert(action + (address.find(':') == std::string::npos ? " IPv4" : " IPv6"));
  };
  for (Settings& one : view.section.sections("stream")) add(one.text("action", ""), one.text("source", ""));
  if (rtsp_suite(view).empty()) return {kinds.begin(), kinds.end()};
  Settings rtsp = view.section.section("rtsp");
  for (const char* const key : {"servers", "listen"}) {
    for (const std::string& address : rtsp.texts(key)) add("protect", address);
  }
  return {kinds.begin(), kinds.end()};
}

std::vector<engine::StreamSource::Stream> described_streams(engine::SectionView& view) {
  std::vector<engine::StreamSource::Stream> all;
  for (Settings& settings : view.section.sections("stream")) {
    engine::StreamDemand demand;
    demand.deadline = settings.duration("deadline", view.options.deadline);
    demand.largest_packet = largest_in_clear(settings, largest_frame(view), true);
    demand.rate = static_cast<std::uint64_t>(settings.integer("rate", 0, 0, most_rate));
    const auto burst = static_cast<std::uint64_t>(settings.integer("burst", 0, 0, largest_stream_burst));
    if (demand.rate != 0) demand.burst = stream_burst(demand.rate, burst, largest_frame(view));
    if (settings.has("rtcp_source_port")) {
      demand.rate += demand.rate / rtcp_part;
      demand.burst *= 2;  // its bucket holds as much
    }
    demand.share = share_of(settings);
    all.push_back({settings, demand});
  }
  return all;
}

}  // namespace sluice::function
