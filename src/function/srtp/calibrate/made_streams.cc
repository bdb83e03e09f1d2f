#include "function/srtp/calibrate/made_streams.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <random>
#include <vector>

#include "function/srtp/calibrate/media_traffic.h"
#include "function/srtp/described_streams.h"
#include "media/sdp/crypto_attribute.h"
#include "media/secret.h"
#include "media/srtp/suite.h"

namespace sluice::function {
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

struct Kind {
  bool protects = true, six = false;
};

std::string section_of(const char* action, const char* source, const char* destination, std::size_t port,
                       const std::string& crypto) {
  return fmt::format(
      "\n[[srtp.stream]]\naction = \"{}\"\nsource = \"{}\"\nsource_port = {}\ndestination = \"{}\"\n"
      "destination_port = {}\ncrypto = \"{}\"\n",
      action, source, port, destination, port, crypto);
}

std::string section_of(const Kind& kind, std::size_t port, const std::string& crypto) {
  return section_of(kind.protects ? "protect" : "unprotect", kind.six ? "2001:2::1" : "198.18.0.1",
                    kind.six ? "2001:2:0:1::1" : "198.19.0.1", port, crypto);
}

std::string twin_of(bool six, std::size_t number, const std::string& crypto) {
  return section_of("protect", six ? twin_source_v6 : twin_source_v4, six ? "2001:2:0:1::2" : "198.19.0.2",
                    first_twin_port + number, crypto);
}

std::vector<Kind> kinds_of_rtsp(engine::SectionView& view) {
  std::vector<Kind> kinds;
  for (const std::string& kind : media_kinds(view)) kinds.push_back({true, kind.ends_with("6")});
  return kinds.empty() ? std::vector<Kind>(1) : kinds;
}

}  // namespace

engine::Calibration::Made made_streams(engine::SectionView& view) {
  Settings& srtp = view.section;
  const bool rtsp = srtp.has("rtsp");
  std::size_t lanes = 0, twins = 0, own = 0;
  for (const port::PortOptions& port : view.options.ports) lanes += port.lane_count();
  const auto keys = static_cast<std::size_t>(srtp.integer("max_keys", 4096, 2, 1 << 22));
  auto streams = srtp.sections("stream");
  const std::size_t taken = streams.size() * 3;  // at most, but for several master keys
  std::size_t capacity = (keys - std::min(keys, taken)) / keys_of_each;
  engine::Calibration::Made made;
  std::vector<Kind> kinds;
  for (Settings& one : streams) {
    const Kind kind{one.text("action", "") != "unprotect", one.text("source", "").find(':') != std::string::npos};
    own += kind.protects || capacity != 0 ? 1 : 0;
    if (!rtsp) kinds.push_back(kind);
    if (kind.protects || capacity == 0 || twins == most_twins) continue;
    made.text += twin_of(kind.six, twins++, std::string(media::sdp::crypto_value(one.text("crypto", ""))));
    --capacity;
  }
  if (!rtsp && own >= lanes) return made;
  if (rtsp) kinds = kinds_of_rtsp(view);
  if (kinds.empty()) kinds.emplace_back();
  std::vector<srtp::Suite> suites;
  for (const std::string& name : rtsp ? std::vector{rtsp_suite(view)} : stream_suites(view)) {
    if (const auto suite = srtp::suite_named(name)) suites.push_back(*suite);
  }
  if (suites.empty()) suites.push_back(srtp::Suite::aes_cm_128_hmac_sha1_80);

  // Those that unprotect take a twin's keys, too.
  const bool unprotects = std::ranges::any_of(kinds, [](const Kind& kind) { return !kind.protects; });
  const std::size_t count = std::max(lanes, std::min(usual, unprotects ? capacity / 2 : capacity));
  for (std::size_t i = 0; i < count; ++i) {
    // Of several suites and kinds each with each.
    const Kind& kind = kinds[i / suites.size() % kinds.size()];
    const srtp::Suite suite = suites[i % suites.size()];
    const std::string crypto = fmt::format("1 {} inline:{}", srtp::facts(suite).name, random_key(suite));
    made.text += section_of(kind, first_port + 2 * i, crypto);
    if (!kind.protects) made.text += twin_of(kind.six, twins++, crypto);
  }
  std::vector<std::string_view> names;
  for (const srtp::Suite suite : suites) names.push_back(srtp::facts(suite).name);
  made.note = fmt::format("traffic is of {} streams made up with random keys, of {}{}: {}", count,
                          fmt::join(names, ", "), own == 0 ? "" : fmt::format(", besides {} of the file's", own),
                          rtsp ? "those of [srtp.rtsp] come with its clients"
                               : fmt::format("[srtp] has {}, and there are {} lanes", own, lanes));
  return made;
}

}  // namespace sluice::function
