#include "control/stream_demands.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "base/machine.h"
#include "base/units.h"
#include "control/rtsp/medium_deadlines.h"
#include "engine/engine.h"
#include "function/srtp/media_stream.h"
#include "function/srtp/rtsp_options.h"
#include "function/srtp/stream_settings.h"
#include "media/sdp/crypto_attribute.h"
#include "media/secret.h"
#include "media/srtp/suite.h"

namespace sluice::control {
namespace {

constexpr std::uint64_t rtcp_part = 20;  // of the stream's rate, as it is policed (function/srtp/stream_settings.cc)
constexpr std::int64_t most_rate = 1'000'000'000'000;

bool has_srtp(const Config& config) {
  return std::ranges::find(config.engine.chain, "srtp") != config.engine.chain.end();
}

std::vector<Settings> srtp_streams(Config& config) {
  return has_srtp(config) ? config.section("srtp").sections("stream") : std::vector<Settings>();
}

// In alphabetical order with commas between.
std::string suites(Config& config) {
  std::vector<std::string> all = stream_suites(config);
  if (std::string rtsp = rtsp_suite(config); !rtsp.empty()) all.push_back(std::move(rtsp));
  const std::set<std::string> names(all.begin(), all.end());
  return fmt::format("{}", fmt::join(names, ","));
}

constexpr std::uint32_t ethernet = 14;

std::uint32_t largest_frame(const Config& config) {
  unsigned mtu = 0;
  for (const port::PortOptions& port : config.engine.ports) mtu = std::max(mtu, port.mtu);
  return mtu + ethernet;
}

// w of a stream, or what it would be without packet_bytes.
std::uint32_t largest_in_clear(Settings& settings, std::uint32_t frame, bool as_it_says) {
  function::MediaStreamSettings stream;
  if (settings.text("action", "") == "unprotect") stream.direction = srtp::Direction::unprotect;
  const media::WipedString line(settings.text("crypto", ""));
  if (auto crypto = media::sdp::parse_crypto(media::sdp::crypto_value(line.text()))) stream.crypto = std::move(*crypto);
  const std::int64_t packet = as_it_says ? settings.integer("packet_bytes", 0, 0, frame) : 0;
  stream.rate = {0, 0, static_cast<std::uint32_t>(packet)};
  return stream.largest_in_clear(frame);
}

}  // namespace

std::uint32_t rtsp_largest_packet(Config& config) {
  const auto suite = srtp::suite_named(rtsp_suite(config));
  return suite ? largest_frame(config) - srtp::facts(*suite).rtp_tag_length : 0;
}

std::uint32_t largest_packet(Config& config) {
  std::uint32_t largest = rtsp_largest_packet(config);
  for (Settings& settings : srtp_streams(config)) {
    largest = std::max(largest, largest_in_clear(settings, largest_frame(config), false));
  }
  return largest;
}

std::vector<std::string> stream_suites(Config& config) {
  std::set<std::string> names;
  for (Settings& settings : srtp_streams(config)) {
    const media::WipedString line(settings.text("crypto", ""));
    std::istringstream words{std::string(media::sdp::crypto_value(line.text()))};
    std::string tag, name;
    if (!(words >> tag >> name)) continue;
    const auto suite = srtp::suite_named(name);
    names.insert(suite ? std::string(srtp::facts(*suite).name) : name);
  }
  return {names.begin(), names.end()};
}

std::string rtsp_suite(Config& config) {
  if (!has_srtp(config) || !config.section("srtp").has("rtsp")) return {};
  const std::string usual(srtp::facts(function::RtspOptions().suite).name);
  const std::string name = config.section("srtp").section("rtsp").text("suite", usual);
  const auto suite = srtp::suite_named(name);
  return suite ? std::string(srtp::facts(*suite).name) : name;
}

std::vector<std::string> media_kinds(Config& config) {
  std::set<std::string> kinds;
  const auto add = [&kinds](const std::string& action, const std::string& address) {
    if (!address.empty()) kinds.insert(action + (address.find(':') == std::string::npos ? " IPv4" : " IPv6"));
  };
  for (Settings& one : srtp_streams(config)) add(one.text("action", ""), one.text("source", ""));
  if (rtsp_suite(config).empty()) return {kinds.begin(), kinds.end()};
  Settings rtsp = config.section("srtp").section("rtsp");
  for (const char* const key : {"servers", "listen"}) {
    for (const std::string& address : rtsp.texts(key)) add("protect", address);
  }
  return {kinds.begin(), kinds.end()};
}

engine::ProfileSubject profile_subject(Config& config, const std::string& device) {
  engine::ProfileSubject subject;
  subject.machine = machine_text();
  subject.device = device;
  subject.chain = config.engine.chain;
  subject.suite = suites(config);
  for (const port::PortOptions& port : config.engine.ports) subject.lanes += port.lane_count();
  subject.overlap = device == "cpu" ? 0 : config.engine.overlap;
  subject.stagger = device != "cpu" && engine::staggers(config.engine);
  return subject;
}

std::vector<StreamSection> stream_demands(Config& config) {
  std::vector<StreamSection> all;
  for (Settings& settings : srtp_streams(config)) {
    engine::StreamDemand demand;
    demand.deadline = settings.duration("deadline", config.engine.deadline);
    demand.largest_packet = largest_in_clear(settings, largest_frame(config), true);
    demand.rate = static_cast<std::uint64_t>(settings.integer("rate", 0, 0, most_rate));
    const auto burst = static_cast<std::uint64_t>(settings.integer("burst", 0, 0, function::largest_stream_burst));
    if (demand.rate != 0) demand.burst = function::stream_burst(demand.rate, burst, largest_frame(config));
    if (settings.has("rtcp_source_port")) {
      demand.rate += demand.rate / rtcp_part;
      demand.burst *= 2;  // its bucket holds as much
    }
    demand.share = function::share_of(settings);
    all.push_back({settings, demand});
  }
  return all;
}

Expected<std::unique_ptr<engine::StreamAdmission>> make_admission(Config& config, const engine::ProfileSubject& now,
                                                                  const engine::Timing& timing,
                                                                  std::vector<std::string>& notes) {
  if (!config.profile.profile) return nullptr;
  const engine::Profile& profile = *config.profile.profile;
  const auto differences = profile.differences(now);
  if (!differences.empty()) {
    const std::string text = fmt::format("[profile] file: {}", fmt::join(differences, "; "));
    if (config.profile.refuses_others) {
      const bool can_set = now.stagger != profile.subject.stagger;
      return make_error(
          fmt::format("{}: run sluice calibrate here, {}or set others = \"warn\"", text,
                      can_set ? fmt::format("set [engine] stagger = {}, ", profile.subject.stagger) : ""));
    }
    notes.push_back(text);
  }
  // Profiles of before did not say it, and were of this.
  const std::vector<std::string> measured =
      profile.media.empty() ? std::vector<std::string>{"protect IPv4"} : profile.media;
  std::vector<std::string> others = media_kinds(config);
  std::erase_if(others, [&](const std::string& one) { return std::ranges::find(measured, one) != measured.end(); });
  if (!others.empty()) {
    notes.push_back(fmt::format(
        "[profile] file: it was measured with streams to {}, and what those to {} cost, which are here, is not "
        "in it",
        fmt::join(measured, ", "), fmt::join(others, ", ")));
  }
  if (const std::uint32_t media = rtsp_largest_packet(config); config.profile.admits && media > profile.packet) {
    return make_error(
        fmt::format("[profile] file: it was measured with packets of {} bytes, and those of [srtp.rtsp]'s media may "
                    "have {}, so that "
                    "none would be admitted: run sluice calibrate without --packets, or with --packets {}",
                    profile.packet, media, media));
  }
  if (config.profile.counts_bursts && timing.cycle.count() == 0) {
    return make_error(
        "[profile] bursts = \"admit\": there is no cycle on the CPU into which bursts could fit: leave it out, or use "
        "a GPU");
  }
  const engine::ProfileCapacity* const capacity = profile.capacity(timing.cycle);
  if (capacity == nullptr) {
    return make_error("[profile] file: no cycle was measured that is as short as this one, " +
                      duration_text(timing.cycle) + ": run sluice calibrate with --cycles " +
                      duration_text(timing.cycle));
  }
  if (timing.cycle.count() != 0 && profile.collect().count() == 0) {
    notes.emplace_back(
        "[profile] file: it does not say what collecting and forwarding take, so the bound has an estimate of µ, "
        "and nothing says that the forwarder keeps up: run sluice calibrate again");
  }
  const std::chrono::nanoseconds forwarding = profile.forwarding(*capacity);
  const bool own_thread = !config.engine.forwarder_cores.empty();
  if (timing.cycle.count() != 0 && !engine::forwards_in_time(forwarding, capacity->cycle, own_thread)) {
    const bool on_one = engine::find_such(config.engine.chain, &engine::ElementType::one_thread) != nullptr;
    notes.push_back(fmt::format(
        "[profile] file: forwarding what a cycle of {} carries takes {}, and the bound needs {} of it within the "
        "cycle: frames may be late before the device carries what was measured; {}",
        duration_text(capacity->cycle), duration_text(forwarding), engine::forwarded_in_a_cycle(own_thread),
        on_one
            ? "give the port more lanes, or take a smaller overlap with a longer cycle, and run sluice calibrate again"
            : "give lanes forwarder_cores"));
  }
  return std::make_unique<engine::StreamAdmission>(
      engine::StreamCapacity{.rate = capacity->rate,
                             .bound = timing.bound,
                             .largest_packet = profile.packet,
                             .cycle = timing.cycle,
                             .counts_bursts = config.profile.counts_bursts},
      config.profile.admits);
}

bool admit_streams(engine::StreamAdmission& admission, const std::vector<engine::StreamDemand>& before,
                   std::vector<StreamSection>& streams, engine::StreamAdmission::Replaced* replaced) {
  std::vector<engine::StreamDemand> demands;
  for (const StreamSection& stream : streams) demands.push_back(stream.demand);
  const auto refused = admission.replace(before, demands, replaced);
  if (!refused) return true;
  const engine::StreamAnswer& answer = refused->answer;
  const char* const key = answer.verdict == engine::StreamVerdict::too_soon     ? "deadline"
                          : answer.verdict == engine::StreamVerdict::too_large  ? "packet_bytes"
                          : answer.verdict == engine::StreamVerdict::too_bursty ? "burst"
                                                                                : "rate";
  streams[refused->index].settings.error(key, answer.text());
  return false;
}

bool check_rtsp_deadlines(const engine::StreamAdmission& admission, Config& config) {
  if (!admission.enforced() || rtsp_suite(config).empty()) return true;
  Settings section = config.section("srtp").section("rtsp");
  return rtsp::check_medium_deadlines(section, admission.state().capacity.bound);
}

void add_figures(const engine::StreamAdmission::State& state, std::vector<FigureSnapshot>& figures) {
  const auto deadline = static_cast<std::uint64_t>(state.shortest_deadline.count());
  figures.push_back({"streams_admitted", "streams for which there is room", state.streams, false});
  figures.push_back({"streams_rate_bits", "bits a second that they may bring together", state.rate, false});
  figures.push_back(
      {"streams_capacity_bits", "bits a second that the device carries in time", state.capacity.rate, false});
  figures.push_back({"streams_shortest_deadline_ns", "the shortest of their deadlines", deadline, false});
  figures.push_back({"streams_burst_bytes", "bytes that they may bring at once", state.bursts, false});
  figures.push_back({"streams_burst_room_bytes",
                     "bytes for which a cycle has room beside their rates; more at once may "
                     "make frames late",
                     state.burst_room, false});
  figures.push_back({"streams_refused", "streams for which there was no room", state.refused, true});
  figures.push_back({"streams_refused_not_measured", "of these, while the device that was measured did not compute",
                     state.refused_not_measured, true});
}

}  // namespace sluice::control
