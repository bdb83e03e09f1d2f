#include "cli/calibrate/made_streams.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <random>
#include <vector>

#include "cli/calibrate/media_traffic.h"
#include "control/stream_demands.h"
#include "media/secret.h"
#include "media/srtp/suite.h"

namespace sluice::cli {
namespace {

constexpr std::size_t usual = 256;       // more than a cache of keys has for nothing
constexpr std::size_t keys_of_each = 2;  // RTP's and RTCP's, on one port
constexpr std::size_t first_port = 20000;

std::string random_key(srtp::Suite suite) {
  std::random_device random;
  std::vector<std::uint8_t> bytes(srtp::facts(suite).key_and_salt_length());
  std::ranges::generate(bytes, [&] { return static_cast<std::uint8_t>(random()); });
  return std::string(media::base64_encode(bytes).view());
}

std::string section_of(std::size_t port, srtp::Suite suite) {
  return fmt::format(
      "\n[[srtp.stream]]\naction = \"protect\"\nsource = \"198.18.0.1\"\nsource_port = {}\ndestination = "
      "\"198.19.0.1\"\ndestination_port = {}\ncrypto = \"1 {} inline:{}\"\n",
      port, port, srtp::facts(suite).name, random_key(suite));
}

}  // namespace

MadeStreams made_streams(control::Config& config) {
  const auto& chain = config.engine.chain;
  if (std::ranges::find(chain, "srtp") == chain.end()) return {};
  Settings srtp = config.section("srtp");
  const bool rtsp = srtp.has("rtsp");
  const std::size_t own = MediaTraffic::usable_streams(config);
  std::size_t lanes = 0;
  for (const port::PortOptions& port : config.engine.ports) lanes += port.lane_count();
  if (!rtsp && own >= lanes) return {};
  std::vector<srtp::Suite> suites;
  for (const std::string& name : rtsp ? std::vector{control::rtsp_suite(config)} : control::stream_suites(config)) {
    if (const auto suite = srtp::suite_named(name)) suites.push_back(*suite);
  }
  if (suites.empty()) suites.push_back(srtp::Suite::aes_cm_128_hmac_sha1_80);

  const auto keys = static_cast<std::size_t>(srtp.integer("max_keys", 4096, 2, 1 << 22));
  const std::size_t taken = srtp.sections("stream").size() * 3;  // at most, but for several master keys
  const std::size_t room = keys > taken ? (keys - taken) / keys_of_each : 0;
  const std::size_t count = std::max(lanes, std::min(usual, room));
  MadeStreams made;
  for (std::size_t i = 0; i < count; ++i) made.text += section_of(first_port + 2 * i, suites[i % suites.size()]);
  std::vector<std::string_view> names;
  for (const srtp::Suite suite : suites) names.push_back(srtp::facts(suite).name);
  made.note =
      fmt::format("traffic is of {} streams made up with random keys, of {}{}: {}", count, fmt::join(names, ", "),
                  own == 0 ? "" : fmt::format(", besides {} of the file's", own),
                  rtsp ? "those of [srtp.rtsp] come with its clients"
                       : fmt::format("[srtp] has {} to be protected over IPv4, and there are {} lanes", own, lanes));
  return made;
}

}  // namespace sluice::cli
