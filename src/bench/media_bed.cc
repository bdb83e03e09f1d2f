#include "bench/media_bed.h"

#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include "bench/verify.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint64_t verified_frames = 100'000;
constexpr std::uint32_t largest_frame = 2048;
constexpr std::uint32_t headers = 42;  // in front of RTP: they stay where they are
constexpr double tolerated_drops = 1e-4;

// Of frames that leave unprotected the tag is missing.
double moved_bytes(const RtpStreams& streams, double frames, double bytes) {
  return bytes - frames * headers + (streams.both ? frames / 2 * streams.overhead() : 0);
}

Expected<void> none_dropped(engine::Engine& engine) {
  const engine::EngineStats stats = engine.stats();
  std::uint64_t all = 0;
  std::string text;
  for (const packet::Reason reason :
       {function::srtp_auth_failed, function::srtp_replayed, function::srtp_too_old, function::srtp_key_expired,
        function::srtp_no_key, function::srtp_no_ssrc, function::srtp_too_many_in_flight, function::srtp_malformed,
        function::srtp_not_media, function::srtp_bad_checksum, function::srtp_too_big, function::srtp_not_plain,
        function::srtp_other_lane}) {
    if (stats.drops[reason] == 0) continue;
    all += stats.drops[reason];
    text += fmt::format(" {} {}", packet::reason_name(reason), stats.drops[reason]);
  }
  if (!text.empty()) std::printf("  dropped:%s\n", text.c_str());
  if (static_cast<double>(all) > tolerated_drops * static_cast<double>(stats.total.rx_frames)) {
    return make_error(fmt::format("the element dropped frames that were right:{}", text));
  }
  return {};
}

}  // namespace

double moved_gbytes(const RtpStreams& streams, const Outcome& outcome) {
  return moved_bytes(streams, static_cast<double>(outcome.frames), static_cast<double>(outcome.bytes)) /
         outcome.seconds / 1e9;
}

double frame_share(const RtpStreams& streams, const std::string& mix) {
  const double left = mean_frame(mix) + streams.overhead() * (streams.both ? 0.5 : 1.0);
  return left / moved_bytes(streams, 1, left);
}

function::Srtp::SrtpOptions srtp_options(const RtpStreams& streams) {
  function::Srtp::SrtpOptions options;
  options.streams = streams.settings();
  options.max_keys = streams.keys() + streams.spare_keys;
  options.largest_frame = largest_frame;
  return options;
}

std::unique_ptr<MediaBed> MediaBed::make(const BenchOptions& options, const HeldCase& one, const std::string& device,
                                         double ceiling) {
  auto bed = std::make_unique<MediaBed>();
  bed->device = device;
  RigOptions& rig = bed->rig;
  rig.function = "bridge";
  rig.lanes = default_lanes(options);
  fill_in(options, one, ceiling, rig);
  rig.engine.device = device;
  RtpStreams& streams = bed->streams;
  streams.lanes = rig.lanes;
  streams.frames = rig.frames;
  streams.streams = options.rtp_streams;
  streams.suite = srtp::suite_named(options.suite).value();
  streams.both = options.direction == "both";
  streams.checksums = options.checksums;
  rig.elements = {{"srtp", [&streams](const engine::PortTable&) {
                     return std::make_unique<function::Srtp>(srtp_options(streams));
                   }}};
  MediaBed& made = *bed;
  rig.in_front.emplace_back([&made] {
    const bool returns = made.rig.engine.mode == engine::Mode::collector_only;
    auto source = std::make_unique<MediaSource>(made.streams, returns);
    made.source = source.get();
    return source;
  });
  return bed;
}

Expected<void> MediaBed::verify() {
  RigOptions verified = rig;
  verified.engine.admission = engine::Admit::all;  // to check takes time
  auto running = Rig::make(verified);
  if (!running) return tl::unexpected(running.error());
  if (auto ok = source->check((*running)->replay()); !ok) return ok;
  if (auto ran = run_until(**running, source->checked, verified_frames); !ran) return ran;
  if (const std::string wrong = source->wrong(); !wrong.empty()) return make_error(wrong);
  const std::uint64_t checked = source->checked, opened = source->opened;
  if (streams.both && opened < checked / 4) {
    return make_error(fmt::format("only {} of {} frames were unprotected", opened, checked));
  }
  const std::uint64_t by_libsrtp = source->opened_by_libsrtp;
  const std::string why_not = source->why_no_libsrtp();
  if (why_not.empty() && by_libsrtp == 0) return make_error("libsrtp has opened none of the frames");
  std::printf(
      "verified on %s: %lu frames left protected and opened on a core as they went in, %lu left unprotected; %s\n",
      device.c_str(), checked - opened, opened,
      why_not.empty() ? fmt::format("libsrtp opened {} of them, too", by_libsrtp).c_str()
                      : ("not asked: " + why_not).c_str());
  return {};
}

Expected<void> MediaBed::finish(Rig& running) const {
  if (auto finished = running.finish(); !finished) return finished;
  return none_dropped(running.engine());
}

Expected<Outcome> MediaBed::measure(engine::Mode mode, double seconds, unsigned rounds) {
  rig.engine.mode = mode;
  auto running = Rig::make(rig);
  if (!running) return tl::unexpected(running.error());
  std::vector<Outcome> outcomes{(*running)->measure(0.5, seconds)};
  while (outcomes.size() < rounds) outcomes.push_back((*running)->measure(0, seconds));
  if (auto finished = finish(**running); !finished) return tl::unexpected(finished.error());
  return middle_of(outcomes);
}

}  // namespace sluice::cli::bench
